package freeport

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestDrawPort checks that no server of ours takes a port of docker-compose.yml.
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
