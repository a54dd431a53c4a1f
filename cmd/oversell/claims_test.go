package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
)

func TestClaimsRefuseBadInput(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "C25"), 0o755); err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(dir, "claims.txt")
	if err := os.WriteFile(notes, []byte("what must not be lost"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"C27"}, "they are C1 to C26"},
		{[]string{"C1", "locks"}, `"locks" is not known`},
		{[]string{""}, "C1 to C26"},
		{[]string{"C24", "--target", "embedded"}, "not the emulation"},
		{[]string{"C24", "--target", "nowhere"}, "unknown target"},
		{[]string{"C24", "--target", "redis://192.0.2.1:6379"}, "--allow-remote"},
		{[]string{"C24", "--markdown", ""}, "name of a file"},
		{[]string{"C24", "--markdown", dir}, "is a directory"},
		{[]string{"C24", "--markdown", filepath.Join(dir, "missing", "claims.md")}, "there is no directory"},
		{[]string{"C24", "--markdown", notes}, "exists and is not a page of claims"},
		{[]string{"C24", "--fast"}, "--fast"},
		{[]string{"C25"}, "holds an earlier measurement"},
	} {
		code, stdout, stderr := cli(t, append([]string{"claims", "--out", dir}, c.args...)...)
		if code != reports.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q: exit %d, %q, %q; want 2 and one line that says %q", c.args, code, stderr, stdout, c.want)
		}
	}
}

func TestClaimsWithoutAServer(t *testing.T) {
	code, _, stderr := cli(t, "claims", "C24", "--target", "redis://127.0.0.1:1", "--out", t.TempDir())
	if code != reports.ExitEnvironment || !strings.Contains(stderr, "refused") {
		t.Errorf("exit %d, %q; want 5", code, stderr)
	}
}

func TestClaimsAreShownAndWritten(t *testing.T) {
	servertest.NeedServer(t)
	dir := t.TempDir()
	page := filepath.Join(dir, "claims.md")
	code, stdout, stderr := cli(t, "claims", "c25", "C24", "--out", filepath.Join(dir, "runs"), "--markdown", page)
	if code != reports.ExitPass {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	for _, want := range []string{"C24  confirmed", "C25  confirmed", "2 claims: 2 confirmed", "oversell claims C24"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("missing %q in\n%s", want, stdout)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "`oversell claims c25 C24`") {
		t.Errorf("the page: %v\n%s", err, text)
	}
	code, stdout, _ = cli(t, "claims", "C24", "--json", "--out", filepath.Join(dir, "more"), "--markdown", page)
	var all reports.Claims
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != reports.ExitPass || all.Schema != reports.ClaimsSchema || len(all.Claims) != 1 {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
}
