package freeport

import (
	"errors"
	"net"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

// TestDrawPort checks that no port of docker-compose.yml is drawn.
func TestDrawPort(t *testing.T) {
	file, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	published := regexp.MustCompile(`127\.0\.0\.1:(\d+)(?:-(\d+))?:\d+`).FindAllStringSubmatch(string(file), -1)
	if len(published) < 6 {
		t.Fatalf("docker-compose.yml publishes %d ports or ranges of them; want one for each profile at least", len(published))
	}
	for _, m := range published {
		for _, text := range m[1:] {
			if text == "" {
				continue
			}
			if port, err := strconv.Atoi(text); err != nil || port < firstComposePort || port > lastComposePort {
				t.Errorf("docker-compose.yml publishes port %s; want one from %d to %d", text, firstComposePort, lastComposePort)
			}
		}
	}
	for _, highest := range []int{highestPort, highestPort - busOffset} {
		seen := map[int]bool{}
		for range 500000 {
			seen[drawPort(highest)] = true
		}
		for p := range seen {
			if p < lowestPort || p > highest || p >= firstComposePort && p <= lastComposePort {
				t.Errorf("port %d was drawn up to %d", p, highest)
			}
		}
		for _, p := range []int{lowestPort, firstComposePort - 1, lastComposePort + 1, highest} {
			if !seen[p] {
				t.Errorf("port %d was never drawn up to %d", p, highest)
			}
		}
	}
}

// TestListenBelow checks that Listen goes on below the ports of connections when those are used up, and not after another
// error.
func TestListenBelow(t *testing.T) {
	var asked []string
	err := Listen(func(addr string) error {
		if asked = append(asked, addr); len(asked) < 3 {
			return &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
		}
		return nil
	})
	if err != nil || len(asked) != 3 || asked[0] != "127.0.0.1:0" {
		t.Fatalf("%v after %q; want port 0 first, and then two others", err, asked)
	}
	for _, addr := range asked[1:] {
		_, text, _ := net.SplitHostPort(addr)
		if port, err := strconv.Atoi(text); err != nil || port < lowestPort || port > highestPort {
			t.Errorf("asked for %s; want a port from %d to %d", addr, lowestPort, highestPort)
		}
	}
	calls, denied := 0, errors.New("denied")
	if err := Listen(func(string) error { calls++; return denied }); !errors.Is(err, denied) || calls != 1 {
		t.Errorf("%v after %d calls; want another error at once", err, calls)
	}
	l, err := ListenTCP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
