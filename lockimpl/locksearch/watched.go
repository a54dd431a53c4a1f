package locksearch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"oversell/explore"
	"oversell/reports"
)

// The time that a search has beyond its bound, and the interval of checks for a client that waits for a mutex.
const (
	overtime  = 15 * time.Second
	lookEvery = time.Second
)

// watched runs a search and makes sure that it ends. A client may wait for an event that never comes, and then the
// search waits too: it is ended at once if the client waits for a mutex, and otherwise a while after its time is over.
func watched(ctx context.Context, c explore.Config) (reports.Exploration, error) {
	type result struct {
		r   reports.Exploration
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan result, 1)
	own := make(chan string, 1) // the search's goroutine
	go func() {
		id, _, _ := strings.Cut(string(debug.Stack()), " [")
		own <- id
		r, err := explore.Run(ctx, c)
		over <- result{r, err}
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var end <-chan time.Time
	if limit := reports.FromMS(c.Bounds.TimeMS); limit > 0 {
		end = time.After(limit + overtime)
	}
	search := <-own
	before := map[string]int{} // for how many checks a goroutine has stood there
	for {
		select {
		case r := <-over:
			return r.r, r.err
		case <-end:
			return reports.Exploration{}, fmt.Errorf("the search did not end within %v after its bound of %v: a client computes for long, or waits for something that is neither a command nor its variant.Env", overtime, reports.FromMS(c.Bounds.TimeMS))
		case <-look.C:
		}
		now := map[string]int{}
		for id, at := range atMutex(stacks(), search) {
			if now[id] = before[id] + 1; now[id] > 2 {
				return reports.Exploration{}, fmt.Errorf("%w: one client waits for a mutex at %s", errMutex, at)
			}
		}
		before = now
	}
}

// errMutex says why such a search was ended.
var errMutex = errors.New("a mutex is held while the clock is read or a command is sent, and a search steps one client at a time: the client that holds the mutex cannot continue while another one waits for it. " +
	"If clients share the mutex, like one in a variable of the package, give each that New returns its own; else read Env.Clock, and send commands, before it is locked or after it is unlocked")

// stacks returns the stacks of all goroutines, up to a limit.
func stacks() string {
	text := make([]byte, 16<<20)
	return string(text[:runtime.Stack(text, true)])
}

// threadOf marks the stack of a client's thread in a search.
const threadOf = "oversell/internal/coro.(*thread).main("

// atMutex returns the clients' threads of a search that wait for a mutex, by the heads of their goroutines, with the places
// where they wait. A search that was ended may have left others.
func atMutex(stacks, search string) map[string]string {
	found, creators := map[string]string{}, map[string]string{}
	for one := range strings.SplitSeq(stacks, "\n\n") {
		head, frames, _ := strings.Cut(one, "\n")
		id, state, _ := strings.Cut(head, " [")
		if _, creator, ok := strings.Cut(frames, " in goroutine "); ok {
			number, _, _ := strings.Cut(creator, "\n")
			creators[id] = "goroutine " + number
		}
		if !strings.HasPrefix(state, "sync.Mutex.") && !strings.HasPrefix(state, "sync.RWMutex.") || !strings.Contains(frames, threadOf) {
			continue
		}
		lines := strings.Split(frames, "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			if f := lines[i]; !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "internal/sync.") && !strings.HasPrefix(f, "runtime.") {
				at, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
				found[id] = at
				break
			}
		}
	}
	maps.DeleteFunc(found, func(id, _ string) bool {
		for id != search && id != "" {
			id = creators[id]
		}
		return id != search
	})
	return found
}
