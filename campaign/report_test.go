package campaign

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/reports"
	"oversell/reports/page"
)

// contents returns the text of a file.
func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReport checks that a run gets its page when it ends, and that the page can be made again from its directory,
// from its history, and from its history as JSON lines.
func TestReport(t *testing.T) {
	o := options("none", "lua-release")
	o.JSONL, o.Hold = true, time.Millisecond // a delay between reading the stock and writing it
	p, _ := ran(t, o)
	dirs := []string{filepath.Join(p.Dir, runName(0, p.Runs[0])), filepath.Join(p.Dir, runName(1, p.Runs[1]))}
	first := contents(t, filepath.Join(dirs[0], pageFile))
	for _, want := range []string{page.Mark, "Oversold: ", "oversell run --lock none --sale plain --target embedded", "oversell check "} {
		if !strings.Contains(first, want) {
			t.Errorf("the page of the run lacks %q", want)
		}
	}
	for _, from := range []string{dirs[0], filepath.Join(dirs[0], HistoryFile), filepath.Join(dirs[0], jsonlFile)} {
		out := filepath.Join(dirs[0], "again.html")
		written, err := Report([]string{from}, out)
		if err != nil || !slices.Equal(written, []string{out}) {
			t.Fatalf("%s: wrote %q, %v", from, written, err)
		}
		again := contents(t, out)
		again = strings.ReplaceAll(again, filepath.Join(dirs[0], jsonlFile), dirs[0])
		if again != first {
			t.Errorf("%s gives another page than the run had", from)
		}
	}

	// Several runs give one page with links, and pages that are missing are written.
	if err := os.Remove(filepath.Join(dirs[1], pageFile)); err != nil {
		t.Fatal(err)
	}
	written, err := Report([]string{p.Dir}, "")
	if want := []string{filepath.Join(p.Dir, pageFile), filepath.Join(dirs[1], pageFile)}; err != nil || !slices.Equal(written, want) {
		t.Fatalf("wrote %q, %v; want %q", written, err, want)
	}
	overview := contents(t, written[0])
	for _, dir := range dirs {
		if link := `href="` + filepath.Base(dir) + `/report.html"`; !strings.Contains(overview, link) {
			t.Errorf("the overview lacks %s", link)
		}
	}
	if !strings.Contains(overview, "1 of 2 runs broke a promise") {
		t.Error("the overview lacks its verdict")
	}
}

// TestReportOfJSON checks that the schema in a JSON file decides what page is made of it.
func TestReportOfJSON(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, v any) string {
		var b bytes.Buffer
		if err := reports.WriteJSON(&b, v); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	search := reports.Exploration{Schema: reports.ExplorationSchema, Scenario: "mutex", Lock: "a", Verdict: reports.Pass, Why: "nothing breaks it"}
	for _, x := range []struct{ path, says string }{
		{put("comparison.json", reports.Comparison{Schema: reports.ComparisonSchema, Scenario: "seckill"}), "nothing was compared"},
		{put("trace.json", search), "nothing breaks it"},
		{put("one.json", reports.Explorations{Schema: reports.ExplorationsSchema, Explorations: []reports.Exploration{search}}), "nothing breaks it"},
		{put("two.json", reports.Explorations{Schema: reports.ExplorationsSchema, Explorations: []reports.Exploration{search, search}}), "No violation seen in 2 searches"},
	} {
		out := filepath.Join(dir, "out.html")
		if _, err := Report([]string{x.path}, out); err != nil {
			t.Errorf("%s: %v", x.path, err)
		} else if !strings.Contains(contents(t, out), x.says) {
			t.Errorf("the page of %s lacks %q", x.path, x.says)
		}
	}
	// The directory of a comparison also holds runs; the page is of the comparison.
	written, err := Report([]string{dir}, "")
	if err != nil || len(written) != 1 || !strings.Contains(contents(t, written[0]), "nothing was compared") {
		t.Errorf("of the comparison's directory: %q, %v", written, err)
	}
}

// TestReportRefuses checks that input without a page is refused, and that no file of the user is overwritten.
func TestReportRefuses(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines := put("run.jsonl", `{"schema":"oversell-history/1","scenario":"mutex","promises":[],"expected":"pass"}`+"\n")
	for _, x := range []struct {
		paths []string
		out   string
		says  string
	}{
		{nil, "", "name the input of the page"},
		{[]string{filepath.Join(dir, "nothing")}, "", "no such file"},
		{[]string{dir}, "", "holds no history.bin"},
		{[]string{put("empty", "")}, "", "is empty"},
		{[]string{put("notes.txt", "hello, world")}, "", "neither a history nor JSON"},
		{[]string{put("other.json", `{"schema":"other/1"}`)}, "", `its schema is "other/1"`},
		{[]string{put("runs.json", `{"schema":"oversell-report/1","runs":[]}`)}, "", "name the run directory"},
		{[]string{put("bad.json", `{"schema":"oversell-comparison/1","rounds":"x"}`)}, "", "bad.json"},
		{[]string{put("broken.jsonl", `{"schema":"oversell-history/1"}`+"\n{\n{}\n")}, "", "broken.jsonl"},
		{[]string{lines}, dir, "is a directory"},
		{[]string{lines}, put("mine.html", "<p>my own page"), "choose another --out"},
	} {
		_, err := Report(x.paths, x.out)
		if err == nil || !strings.Contains(err.Error(), x.says) || errors.Is(err, ErrUnwritten) {
			t.Errorf("%q to %q: %v; want %q", x.paths, x.out, err, x.says)
		}
	}
	if contents(t, filepath.Join(dir, "mine.html")) != "<p>my own page" {
		t.Error("somebody's own page was overwritten")
	}
	if _, err := Report([]string{lines}, filepath.Join(dir, "no", "such", "page.html")); !errors.Is(err, ErrUnwritten) {
		t.Errorf("a page that cannot be written: %v", err)
	}
	for range 2 { // a page that this program wrote is overwritten
		if _, err := Report([]string{lines}, filepath.Join(dir, "page.html")); err != nil {
			t.Error(err)
		}
	}
}
