package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/history"
	"oversell/reports"
)

// TestStopOnViolation checks, in each scenario, that a planted flaw is reported while the run goes on and stops it
// long before its time. The verdict is that of the whole history, and check repeats it.
func TestStopOnViolation(t *testing.T) {
	for _, args := range []string{
		"--scenario mutex --lock incr-max --clients 8 --duration 10m",
		"--lock none --sale plain --clients 8 --stock 200 --hold 10ms",
		"--scenario queue --queue range-run-remove --clients 8 --duration 10m",
		"--scenario ids --lock none --ids get-set --clients 8 --duration 10m",
		"--scenario floors --lock none --ids get-set --clients 8 --duration 10m",
		"--scenario dispatch --lock none --dispatch dispatch-locked --clients 8",
		"--scenario seckill-queued --queue range-run-remove --clients 8 --stock 100 --ops 0",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "runs")
			code, stdout, stderr := cli(t, append(strings.Fields(args), "run", "--target", "embedded", "--stop-on-violation", "--json", "--out", dir)...)
			if code != reports.ExitViolated || !strings.Contains(stderr, " broken within ") {
				t.Fatalf("%d\n%s", code, stderr)
			}
			var d reports.Document
			if err := json.Unmarshal([]byte(stdout), &d); err != nil {
				t.Fatal(err)
			}
			if r := d.Runs[0]; r.Verdict != reports.Violated || r.ElapsedMS > 60_000 {
				t.Errorf("%s after %v ms, notes %q", r.Verdict, r.ElapsedMS, r.Notes)
			}
			if code, again, stderr := cli(t, "check", "--json", dir); code != reports.ExitViolated || again != stdout {
				t.Errorf("judged again: %d\n%s%s\nand when it was made:\n%s", code, again, stderr, stdout)
			}
		})
	}
}

// TestStopOnViolationLetsSoundRunsEnd checks that runs without a violation are not stopped.
func TestStopOnViolationLetsSoundRunsEnd(t *testing.T) {
	for _, args := range []string{
		"--scenario mutex --lock lua-release --clients 8 --duration 300ms",
		"--lock none --sale lua --clients 8 --stock 300",
		"--scenario queue --queue zset-atomic --clients 8 --ops 400",
		"--scenario ids --lock none --ids incr --clients 8 --ops 400",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "runs")
			_, stdout, stderr := cli(t, append(strings.Fields(args), "run", "--target", "embedded", "--stop-on-violation", "--json", "--out", dir)...)
			var d reports.Document
			if err := json.Unmarshal([]byte(stdout), &d); err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			if r := d.Runs[0]; r.Interrupted || r.Verdict == reports.Violated || strings.Contains(stderr, "broken within") {
				t.Errorf("%+v\n%s", r, stderr)
			}
		})
	}
}

// TestStopOnViolationEndsEachRunAtItsOwn checks that a violation stops only its own run.
func TestStopOnViolationEndsEachRunAtItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	code, stdout, stderr := cli(t, strings.Fields("run --target embedded --scenario mutex --lock incr-max,lua-release --clients 8 --duration 2s --stop-on-violation --json --out "+dir)...)
	var d reports.Document
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != reports.ExitViolated || len(d.Runs) != 2 {
		t.Fatalf("%d %v\n%s", code, err, stderr)
	}
	if !d.Runs[0].Interrupted || d.Runs[1].Interrupted {
		t.Errorf("interrupted: %v, %v\n%s", d.Runs[0].Interrupted, d.Runs[1].Interrupted, stderr)
	}
	h, err := history.Read(filepath.Join(dir, "01-mutex-incr-max", "history.bin"))
	if err != nil || h.Trailer == nil || !strings.Contains(strings.Join(h.Trailer.Notes, "\n"), "stopped at a violation: ") {
		t.Errorf("%v, %+v", err, h)
	}
	if _, err := os.Stat(filepath.Join(dir, "01-mutex-incr-max", "report.html")); err != nil {
		t.Error(err)
	}
	if bytes.Count([]byte(stderr), []byte("judged at the end only: progress of the lock")) != 2 {
		t.Error(stderr)
	}
}
