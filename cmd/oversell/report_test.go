package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/reports"
)

// TestReportCommand checks that report prints the path of the page, and that errors have the documented exit codes.
func TestReportCommand(t *testing.T) {
	dir := t.TempDir()
	lines := filepath.Join(dir, "run.jsonl")
	if err := os.WriteFile(lines, []byte(`{"schema":"oversell-history/1","scenario":"mutex","promises":[],"expected":"pass"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"report", lines}, reports.ExitPass, filepath.Join(dir, "report.html") + "\n"},
		{[]string{"report", lines, "--out", filepath.Join(dir, "a.html")}, reports.ExitPass, filepath.Join(dir, "a.html") + "\n"},
		{[]string{"report"}, reports.ExitUsage, "an argument is missing"},
		{[]string{"report", dir}, reports.ExitUsage, "holds no history.bin"},
		{[]string{"report", lines, "--out", lines}, reports.ExitUsage, "choose another --out"},
		{[]string{"report", lines, "--out", filepath.Join(dir, "no", "a.html")}, reports.ExitEnvironment, "write the page"},
	} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), x.args, &out, &errs)
		if said := out.String() + errs.String(); code != x.code || !strings.Contains(said, x.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q: code %d, %q; want %d, %q in one line", x.args, code, said, x.code, x.says)
		}
	}
}
