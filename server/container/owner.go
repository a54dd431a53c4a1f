package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// A child dies with this program, even by SIGKILL; a container does not. So each has a label that names its process,
// and opening a host removes the containers of dead processes.

// ownerLabel names the process that owns a container, as machine/pid/start.
const ownerLabel = "oversell.owner"

// ownLabel returns the value for our own containers. Our start time distinguishes us from a later process with the same
// id.
func ownLabel() string {
	start, err := processStart(os.Getpid())
	if err != nil {
		start = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", thisMachine(), os.Getpid(), start)
}

// orphaned reports whether the process that a label names is surely dead. Nothing is known about processes on other
// machines or in other containers.
func orphaned(label string) bool {
	rest, start, _ := cutLast(label)
	machine, text, _ := cutLast(rest)
	pid, err := strconv.Atoi(text)
	if err != nil || machine != thisMachine() || start == "unknown" {
		return false
	}
	now, err := processStart(pid)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return now != start
}

func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}

// sweepContainers removes the containers whose owner was killed. It is called whenever a host is opened. It ignores
// failures: the next call tries again.
func sweepContainers(ctx context.Context, c client.APIClient) {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	removeLabelled(ctx, c, ownerLabel, func(s container.Summary) bool { return orphaned(s.Labels[ownerLabel]) })
}

// removeLabelled removes the containers with a label that meets a condition.
func removeLabelled(ctx context.Context, c client.APIClient, label string, which func(container.Summary) bool) {
	list, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	for _, s := range list.Items {
		if which(s) {
			wg.Go(func() { removeContainer(ctx, c, s.ID) })
		}
	}
	wg.Wait()
}
