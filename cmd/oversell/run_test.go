package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

// memoryLock is a sound lock in the memory of one process.
const memoryLock = `import json, sys, time
holder = None
for line in sys.stdin:
    r = json.loads(line)
    a = {"ok": True}
    if r["op"] == "acquire":
        if holder and holder[1] > time.time() * 1000:
            a = {"refused": "held"}
        else:
            holder = (r["id"], time.time() * 1000 + r["ttl_ms"])
            a = {"ok": True, "lock": r["id"], "until_ms": holder[1]}
    elif r["op"] == "release":
        if holder and holder[0] == r["lock"]:
            holder = None
        else:
            a = {"refused": "lost"}
    print(json.dumps({"id": r["id"], **a}), flush=True)
`

// TestRunsOfASystemExitWithTheirVerdict checks that a violation under a system's lock gives exit code 1, even if a
// declared flaw of the shipped sale explains it: such a run is no demonstration.
func TestRunsOfASystemExitWithTheirVerdict(t *testing.T) {
	python := servertest.Python(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"s.yaml": "name: s\nobject: lock\nclients: 100\ncommand: [" + python + ", s.py]\n", "s.py": memoryLock} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := strings.Fields("run --target embedded --clients 4 --stock 10 --ttl 50ms --hold 90ms --wait 10s --sale plain --system " + filepath.Join(dir, "s.yaml"))
	code, stdout, stderr := cli(t, append(args, "--out", filepath.Join(dir, "runs"))...)
	if code != reports.ExitViolated || !strings.Contains(stdout, "violated, as its flaws declare") {
		t.Errorf("%d; want 1\n%s%s", code, stdout, stderr)
	}
}
