package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/reports"
)

// exploring runs explore with a temporary directory for pages and traces.
func exploring(t *testing.T, args ...string) (code int, stdout, stderr, dir string) {
	t.Helper()
	dir = t.TempDir()
	code, stdout, stderr = cli(t, append(append([]string{"explore", "--out", dir, "--time", "20s"}, small(args)...), args...)...)
	return code, stdout, stderr, dir
}

// small returns the bounds of most searches in these tests and of those that docs/explore.md lists.
func small(args []string) []string {
	bounds := []string{"--crashes", "0", "--lost", "0", "--late", "0", "--advances", "1"}
	if others := regexp.MustCompile(`--(sale|queue|ids|scenario)\b`); !others.MatchString(strings.Join(args, " ")) {
		bounds = append(bounds, "--hold", "0s")
	}
	return bounds
}

func TestExploreExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--lock php-lock-printed", reports.ExitViolated, "violated: mutual-exclusion of lock php-lock-printed"},
		{"--lock lua-release --sale plain", reports.ExitViolated, "*SOLD"},
		{"--lock none --property mutual-exclusion", reports.ExitViolated, "mutual-exclusion violated"},
		{"--lock lua-release --tries 1", reports.ExitPass, "holds within these bounds"},
		{"--queue range-run-remove", reports.ExitViolated, "violated: "},
		{"--lock lua-release --clients 6 --tries 5 --stalls 2 --time 1ms", reports.ExitInconclusive, "ended after 1ms, its"},
		{"--lock lua-release,php-lock-printed --tries 1", reports.ExitViolated, "1 hold, 1 violated, 0 inconclusive"},
	} {
		code, stdout, stderr, _ := exploring(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout, c.want) {
			t.Errorf("explore %s exits with %d; want %d and %q\n%s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}
}

func TestExploreRefusesInOneLine(t *testing.T) {
	_, _, _, searched := exploring(t, "--lock", "lua-release", "--tries", "1")
	proved := filepath.Join(searched, "explore-01-mutex-lua-release.json")
	_, _, _, searched = exploring(t, "--lock", "php-lock-printed")
	trace := filepath.Join(searched, "explore-01-mutex-php-lock-printed.json")
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, taken := file("text.json", "hello"), file("taken_test.go", "package taken\n")
	for _, c := range []struct {
		args string
		want string
	}{
		{"--lock lua-relase", "did you mean lua-release"},
		{"--sale plian", "did you mean plain"},
		{"--scenario mutx", "did you mean mutex"},
		{"--clients 0", "--clients 0: must be 1 to 6"},
		{"--clients 9", "--clients 9: must be 1 to 6"},
		{"--tries 0", "--tries 0: must be 1 to 100"},
		{"--crashes -1", "--crashes -1: must be 0 to"},
		{"--lost -1", "--lost -1: must be 0 to"},
		{"--late -1", "--late -1: must be 0 to"},
		{"--advances -1", "--advances -1: must be 0 to"},
		{"--stalls -1", "--stalls -1: must be 0 to"},
		{"--depth -1", "--depth -1: must be 0 to"},
		{"--memory -1", "--memory -1: must be 0 to"},
		{"--time -1s", "--time -1s: must be 0 to"},
		{"--masters -1", "--masters -1: must be 0 to"},
		{"--hold -1s", "--hold -1s: must be 0 to"},
		{"--lock redlock --masters 1", "redlock needs 3 masters"},
		{"--sale plain --resends 2", "must be 0 to 1"},
		{"--resends 1", "leave out --resends: in scenario mutex"},
		{"--stock 5", "leave out --stock: in scenario mutex"},
		{"--sale plain --stock 0", "--stock 0: must be 1 to"},
		{"--sale plain --quantity 2", "nothing could be sold"},
		{"--sale sql-plain", "a search cannot step SQL: use oversell run"},
		{"--scenario dispatch", "a search cannot step SQL: use oversell run"},
		{"--sale fenced --lock lua-release", "like fenced"},
		{"--property no-such-thing", "oversell list properties"},
		{"--property no-oversell", "--sale"},
		{"--queue reliable --property mutual-exclusion", "oversell list properties"},
		{"--lock fair --property fifo", "cannot judge fifo"},
		{"--lock none", "promise nothing that a search can judge (see --property)"},
		{"--lock php-lock --ttl 1500ms", "leases of whole seconds, not of 1.5s"},
		{"--lock php-lock,lua-release --ttl 1500ms", "leases of whole seconds, not of 1.5s"},
		{"--ttl 0s", "Redis counts in whole milliseconds"},
		{"--ttl 100h", "--ttl 100h: must be 1ms to 15m"},
		{"--times 2", "--times goes with --replay"},
		{"--target embedded", "--target goes with --replay"},
		{"--lock lua-release --emit-test lock.go", "ends in _test.go"},
		{"--lock lua-release --emit-test " + taken, "the file exists already"},
		{"--emit-test " + filepath.Join(dir, "new_test.go"), "name one lock or queue"},
		{"--replay " + filepath.Join(dir, "missing.json"), "no such file"},
		{"--replay " + dir, "is a directory"},
		{"--replay " + text, "not what oversell explore writes"},
		{"--replay " + file("other.json", `{"schema":"oversell/1"}`), `its schema is "oversell/1"`},
		{"--replay " + file("none.json", `{"schema":"oversell-explorations/1","explorations":[]}`), "none of its searches found a counterexample"},
		{"--replay " + proved, `no counterexample: that search ended as "pass"`},
		{"--replay " + trace + " --times 0", "--times 0: must be 1 to 10000"},
		{"--replay " + trace + " --lock lua-release", "--lock has no effect"},
		{"--replay " + trace + " --json", "--json has no effect"},
		{"--replay " + trace + " --target redis://127.0.0.1:1", "only on servers started for it"},
		{"--replay " + trace + " --target nowhere", "unknown target"},
	} {
		args := append([]string{"explore"}, strings.Fields(c.args)...)
		code, stdout, stderr := cli(t, args...)
		if code != reports.ExitUsage {
			t.Errorf("%q exits with %d; want 2\n%s", args, code, stderr)
		}
		if !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "oversell: ") {
			t.Errorf("%q says %q; want one line that says %q", args, stderr, c.want)
		}
		if stdout != "" {
			t.Errorf("%q prints %q on stdout", args, stdout)
		}
	}
}

func TestExploreWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		out  string
		code int
	}{
		{filepath.Join(file, "runs"), reports.ExitUsage},      // the parent is a file: another name is needed
		{"/proc/self/oversell/runs", reports.ExitEnvironment}, // the file system takes no files
	} {
		code, stdout, stderr := cli(t, "explore", "--lock", "lua-release", "--tries", "1", "--out", c.out)
		if code != c.code || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("--out %s: exit %d, %q, %q; want %d and one line", c.out, code, stderr, stdout, c.code)
		}
	}
}

func TestExploreJSONIsOneDocument(t *testing.T) {
	for _, locks := range []string{"lua-release", "php-lock-printed", "lua-release,php-lock-printed"} {
		_, stdout, stderr, _ := exploring(t, "--json", "--tries", "1", "--lock", locks)
		d := json.NewDecoder(strings.NewReader(stdout))
		var all reports.Explorations
		if err := d.Decode(&all); err != nil || d.More() {
			t.Fatalf("--lock %s: %v, and more: %v\n%s", locks, err, d.More(), stderr)
		}
		if n := strings.Count(locks, ",") + 1; all.Schema != "oversell-explorations/1" || len(all.Explorations) != n {
			t.Errorf("--lock %s: schema %q, %d searches; want %d", locks, all.Schema, len(all.Explorations), n)
		}
		for _, e := range all.Explorations {
			if e.Schema != "oversell-exploration/1" || e.Command == "" || len(e.Properties) == 0 || (e.Counterexample != nil) != (e.Verdict == reports.Violated) {
				t.Errorf("--lock %s: incomplete: %+v", locks, e)
			}
		}
	}
}

// TestExploreWithoutFlags checks that every lock has a line, and that none is left out silently. Slow searches end at
// their time limit.
func TestExploreWithoutFlags(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := cli(t, "explore", "--time", "300ms", "--out", dir)
	if code != reports.ExitViolated {
		t.Errorf("exit %d; want 1\n%s", code, stderr)
	}
	left := "left out: lock none, which cannot be searched: "
	if !strings.HasPrefix(stderr, left) || strings.Count(stderr, "left out") != 1 {
		t.Errorf("it says %q; want that only none is left out", stderr)
	}
	for _, v := range lockimpl.Variants[1:] {
		if !strings.Contains(stdout, "\n"+v.Name+" ") && !strings.HasPrefix(stdout, v.Name+" ") {
			t.Errorf("there is no line for %s:\n%s", v.Name, stdout)
		}
		for _, ext := range []string{"json", "html"} {
			if found, _ := filepath.Glob(filepath.Join(dir, "explore-??-mutex-"+v.Name+"."+ext)); len(found) != 1 {
				t.Errorf("%s has %d %s files", v.Name, len(found), ext)
			}
		}
	}
}

// TestExploreAgain checks that the command that a sweep gives for one of its searches makes just that search.
func TestExploreAgain(t *testing.T) {
	_, stdout, _, _ := exploring(t, "--json", "--tries", "1", "--lock", "lua-release,set-nx-ex")
	var all reports.Explorations
	if err := json.Unmarshal([]byte(stdout), &all); err != nil {
		t.Fatal(err)
	}
	e := all.Explorations[1]
	if want := "oversell explore --time=20s --crashes=0 --lost=0 --late=0 --advances=1 --hold=0s --tries=1 --lock=set-nx-ex"; e.Command != want {
		t.Fatalf("the command is %q; want %q", e.Command, want)
	}
	_, stdout, _ = cli(t, append(strings.Fields(e.Command)[1:], "--json", "--out", t.TempDir())...)
	var again reports.Explorations
	if err := json.Unmarshal([]byte(stdout), &again); err != nil {
		t.Fatal(err)
	}
	if len(again.Explorations) != 1 || again.Explorations[0].Verdict != e.Verdict || again.Explorations[0].Why != e.Why {
		t.Errorf("%q came to %+v; want %s: %s", e.Command, again.Explorations, e.Verdict, e.Why)
	}
}

// TestExploreInterrupted checks that an interrupt reports the results so far, and that they decide the exit code.
func TestExploreInterrupted(t *testing.T) {
	for _, c := range []struct {
		locks string
		code  int
		want  []string
	}{
		// The search of redlock on three masters takes longer than the test.
		{"redlock", reports.ExitInconclusive, []string{"inconclusive: "}},
		{"lua-release,redlock", reports.ExitInconclusive, []string{"lua-release  holds within", "1 hold, 0 violated, 1 inconclusive"}},
		{"php-lock-printed,redlock,lua-release", reports.ExitViolated, []string{"violated      progress of lock php-lock-printed", "1 violated, 1 inconclusive"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var stdout, stderr strings.Builder
		dir := t.TempDir()
		over := make(chan int)
		go func() {
			over <- execute(ctx, strings.Fields("explore --time 0s --lock "+c.locks+" --out "+dir), &stdout, &stderr)
		}()
		servertest.Await(t, "the searches before the long one are filed", func() bool {
			filed, _ := filepath.Glob(filepath.Join(dir, "*.html"))
			return len(filed) == strings.Count(strings.TrimSuffix(c.locks, ",lua-release"), ",")
		})
		servertest.Await(t, "the long search has begun", func() bool {
			stacks := make([]byte, 1<<20)
			return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "explore.(*search).layer")
		})
		cancel()
		code := <-over
		if code != c.code {
			t.Errorf("--lock %s: exit %d; want %d\n%s%s", c.locks, code, c.code, &stdout, &stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("--lock %s prints\n%s\nwant %q", c.locks, &stdout, want)
			}
		}
		if left := strings.HasSuffix(c.locks, "redlock,lua-release"); strings.Contains(stderr.String(), "interrupted: 2 of 3 searches") != left {
			t.Errorf("--lock %s says %q", c.locks, &stderr)
		}
	}
}

// TestExploreThenReplay checks that the file of one search or of several can be replayed on a real server with the
// same result.
func TestExploreThenReplay(t *testing.T) {
	servertest.NeedServer(t)
	code, _, stderr, dir := exploring(t, "--lock", "set-nx-ex")
	if code != reports.ExitViolated {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	page, err := os.ReadFile(filepath.Join(dir, "explore-01-mutex-set-nx-ex.html"))
	if err != nil || !strings.Contains(string(page), "owner-only-release") {
		t.Errorf("the page does not name the property (%v)", err)
	}
	trace := filepath.Join(dir, "explore-01-mutex-set-nx-ex.json")
	if !strings.Contains(stderr, "oversell explore --replay "+trace) {
		t.Errorf("it says %q; want how to replay %s", stderr, trace)
	}
	if code, _, stderr := cli(t, "explore", "--lock", "lua-release", "--out", dir); code != reports.ExitUsage || !strings.Contains(stderr, " holds an earlier search: choose another --out") {
		t.Errorf("exit %d, %q; want 2: the directory is in use", code, stderr)
	}
	_, all, _, _ := exploring(t, "--json", "--lock", "lua-release,set-nx-ex", "--tries", "1")
	document := filepath.Join(t.TempDir(), "all.json")
	if err := os.WriteFile(document, []byte(all), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{trace, document} {
		code, stdout, stderr := cli(t, "explore", "--replay", path, "--times", "2")
		if code != reports.ExitViolated || !strings.Contains(stdout, "2 of 2 times") {
			t.Errorf("exit %d: %q %q; want 1, confirmed 2 of 2 times", code, stdout, stderr)
		}
	}
	// With a sound lock in its place, the code behaves differently.
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(strings.Replace(string(text), `"lock": "set-nx-ex"`, `"lock": "lua-release"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := cli(t, "explore", "--replay", other)
	if code != reports.ExitInconclusive || !strings.HasPrefix(stdout, "not confirmed") || !strings.Contains(stdout, "did not follow the schedule") {
		t.Errorf("exit %d: %q %q; want 3, not confirmed, and why", code, stdout, stderr)
	}
}

func TestExploreEmitsTests(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one_test.go")
	code, _, stderr, searched := exploring(t, "--lock", "set-nx-ex", "--emit-test", one)
	if code != reports.ExitViolated || !strings.Contains(stderr, "wrote "+one) {
		t.Errorf("exit %d: %q", code, stderr)
	}
	two := filepath.Join(t.TempDir(), "two_test.go")
	trace := filepath.Join(searched, "explore-01-mutex-set-nx-ex.json")
	code, stdout, stderr := cli(t, "explore", "--replay", trace, "--emit-test", two)
	if code != reports.ExitPass || !strings.Contains(stderr, "wrote "+two) || stdout != "" {
		t.Errorf("exit %d: %q, %q", code, stdout, stderr)
	}
	first, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(two)
	if err != nil || string(first) != string(second) {
		t.Errorf("the test from the search and that from its trace differ (%v)", err)
	}
	none := filepath.Join(dir, "none_test.go")
	code, _, stderr, _ = exploring(t, "--lock", "lua-release", "--tries", "1", "--emit-test", none)
	if _, err := os.Stat(none); code != reports.ExitPass || err == nil || !strings.Contains(stderr, "found no counterexample") {
		t.Errorf("exit %d, %q, %v; want 0, and that there is nothing to write", code, stderr, err)
	}
	code, _, stderr, _ = exploring(t, "--lock", "set-nx-ex", "--emit-test", filepath.Join(dir, "no", "where_test.go"))
	if code != reports.ExitEnvironment || !strings.Contains(stderr, "there is no directory") {
		t.Errorf("exit %d, %q; want 5, since there is no such directory", code, stderr)
	}
}

// TestDrawings checks that the drawing in the documents matches a search that is made now, and that only the
// counterexample of a single search can be drawn. With OVERSELL_EXPLORE_DOCS=1 it is redrawn.
func TestDrawings(t *testing.T) {
	dir := t.TempDir()
	searched, drawn := filepath.Join(dir, "explore.json"), filepath.Join(dir, "drawn.svg")
	search := func(args ...string) {
		_, stdout, _ := cli(t, append([]string{"explore", "--json", "--out", t.TempDir()}, args...)...)
		if err := os.WriteFile(searched, []byte(stdout), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	search("--lock", "lua-release", "--sale", "plain")
	if code, _, stderr := cli(t, "report", searched, "--out", drawn); code != reports.ExitPass {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	const document = "../../docs/lua-release.svg"
	got, err := os.ReadFile(drawn)
	if err == nil && os.Getenv("OVERSELL_EXPLORE_DOCS") == "1" {
		err = os.WriteFile(document, got, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the search finds: OVERSELL_EXPLORE_DOCS=1 draws it anew", document)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(got)); err != io.EOF; {
		if _, err = decoder.Token(); err != nil && err != io.EOF {
			t.Fatalf("%s is no XML: %v", document, err)
		}
	}
	search("--lock", "lua-release", "--sale", "plain", "--clients", "1", "--tries", "1")
	if code, _, stderr := cli(t, "report", searched, "--out", drawn); code != reports.ExitUsage || !strings.Contains(stderr, "no counterexample") {
		t.Errorf("exit %d, %q; want 2, since nothing was found", code, stderr)
	}
	search("--lock", "lua-release,fenced", "--sale", "plain", "--clients", "2", "--tries", "1")
	if code, _, stderr := cli(t, "report", searched, "--out", drawn); code != reports.ExitUsage || !strings.Contains(stderr, "single search") {
		t.Errorf("exit %d, %q; want 2, since there are two searches", code, stderr)
	}
}

// TestDocumentedSearches makes the searches that docs/explore.md lists, except the large ones, and except those that took
// longer than half a second unless OVERSELL_LONG=1. With OVERSELL_EXPLORE_DOCS=1 it measures them all, and replays their
// counterexamples.
func TestDocumentedSearches(t *testing.T) {
	const doc = "../../docs/explore.md"
	write := os.Getenv("OVERSELL_EXPLORE_DOCS") == "1"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	lines, searches := strings.Split(string(text), "\n"), 0
	var replays errgroup.Group
	replays.SetLimit(8) // replays wait most of the time
	for i, line := range lines {
		cells := strings.Split(line, " | ")
		columns := strings.Count(line, "|") - 1
		if !strings.HasPrefix(line, "| `--") || columns < 5 || columns > 6 || !write && (cells[1] == reports.Inconclusive || columns == 6) {
			continue
		}
		searches++
		took, err := time.ParseDuration(strings.Trim(cells[4], "| "))
		if err != nil {
			t.Error(err)
		}
		if !write && took > 500*time.Millisecond && os.Getenv("OVERSELL_LONG") != "1" {
			continue
		}
		args := strings.Fields(strings.Trim(cells[0], "|` "))
		limit := "30s"
		if columns == 6 {
			limit = "3m"
		}
		_, stdout, stderr := cli(t, append(append([]string{"explore", "--json", "--time", limit, "--out", t.TempDir()}, small(args)...), args...)...)
		var all reports.Explorations
		if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all.Explorations) != 1 {
			t.Errorf("%q: %v\n%s", args, err, stderr)
			continue
		}
		row := documented(args, all.Explorations[0])
		if columns == 6 {
			row = documentedLarge(args, all.Explorations[0])
		}
		if write {
			lines[i] = row
			path := filepath.Join(t.TempDir(), "all.json")
			replays.Go(func() error { return replayed(t, all.Explorations[0], stdout, path) })
			continue
		}
		// The time differs from run to run, and so may the number of states.
		same := 4
		if all.Explorations[0].Counterexample == nil {
			same = 3
		}
		if got := strings.Split(row, " | "); !slices.Equal(got[:same], cells[:same]) {
			t.Errorf("the search came to\n%s\nand documented is\n%s", row, line)
		}
	}
	if err := replays.Wait(); err != nil {
		t.Error(err)
	}
	if searches < 40 {
		t.Errorf("%s lists only %d searches", doc, searches)
	}
	if write && !t.Failed() {
		if err := os.WriteFile(doc, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// documented returns the line of a search in the tables.
func documented(args []string, e reports.Exploration) string {
	verdict, broken, size := e.Verdict, "-", reports.Thousands(e.Stats.States)+" states"
	if verdict == reports.Pass {
		verdict = "holds"
	}
	if cx := e.Counterexample; cx != nil {
		broken, size = fmt.Sprintf("%s (%s)", cx.Property, cx.Of), fmt.Sprintf("%d steps", len(cx.Steps))
	}
	took := (time.Duration(e.Stats.ElapsedMS) * time.Millisecond).String()
	if e.Stats.ElapsedMS >= 1000 {
		took = fmt.Sprintf("%.1fs", e.Stats.ElapsedMS/1000)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |", strings.Join(args, " "), verdict, broken, size, took)
}

// documentedLarge returns the line of a large search.
func documentedLarge(args []string, e reports.Exploration) string {
	verdict := e.Verdict
	if verdict == reports.Pass {
		verdict = "holds"
	}
	s := e.Stats
	return fmt.Sprintf("| `%s` | %s | %s | %s | %.1fs | %.0f MB |", strings.Join(args, " "), verdict,
		reports.Thousands(s.States), reports.Thousands(s.Transitions), s.ElapsedMS/1000, float64(s.States)*s.BytesPerState/(1<<20))
}

// replayed confirms the counterexample of a search on a real server.
func replayed(t *testing.T, e reports.Exploration, document, path string) error {
	if e.Counterexample == nil {
		return nil
	}
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		return err
	}
	if code, stdout, stderr := cli(t, "explore", "--replay", path, "--times", "20"); code != reports.ExitViolated {
		return fmt.Errorf("%s is not confirmed: %s%s", e.Command, stdout, stderr)
	}
	return nil
}
