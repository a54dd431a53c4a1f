package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report holds the measurements of one session.
type report struct {
	Machine string     `json:"machine"`
	Began   time.Time  `json:"began"`
	Groups  []measured `json:"groups"`
}

// measured holds the results of a group.
type measured struct {
	Title   string   `json:"title"`
	About   string   `json:"about"`
	Results []result `json:"results"`
	// Shares shows the CPU time of one benchmark by package, the largest first.
	Shares   []share `json:"shares,omitempty"`
	Profiled string  `json:"profiled,omitempty"`
}

// result is one line of go test -bench.
type result struct {
	Name    string             `json:"name"`
	Metrics map[string]float64 `json:"metrics"` // by unit
	units   []string           // in the order of the line
}

// share is a share of the CPU time, in percent.
type share struct {
	Package string  `json:"package"`
	Percent float64 `json:"percent"`
}

func (g group) measure(ctx context.Context, length string) (m measured, err error) {
	m = measured{Title: g.title, About: g.about}
	out, err := goTest(ctx, g.pkg, "-bench", g.pattern, "-benchtime", length)
	if err != nil {
		return m, err
	}
	if m.Results = parse(out); len(m.Results) == 0 {
		return m, fmt.Errorf("go test printed no result:\n%s", out)
	}
	if g.profiled != "" {
		m.Profiled = g.profiled
		m.Shares, err = g.profile(ctx, length)
	}
	return m, err
}

// goTest runs only benchmarks, no tests.
func goTest(ctx context.Context, pkg string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-run", "^$", "-timeout", "30m"}, args, []string{pkg})...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w:\n%s", err, out)
	}
	return out, nil
}

// parse parses the benchmark lines: a name, the number of iterations, and pairs of a number and its unit.
func parse(out []byte) (all []result) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name, _, _ := cutLast(strings.TrimPrefix(words[0], "Benchmark"), "-") // the number of processors
		r := result{Name: name, Metrics: map[string]float64{}}
		for i := 2; i+1 < len(words); i += 2 {
			n, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				break
			}
			r.Metrics[words[i+1]] = n
			r.units = append(r.units, words[i+1])
		}
		if len(r.units) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// cutLast cuts a text at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// profile runs the profiled benchmark again, and adds up its CPU time by package.
func (g group) profile(ctx context.Context, length string) ([]share, error) {
	dir, err := os.MkdirTemp("", "oversell-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cpu, binary := filepath.Join(dir, "cpu"), filepath.Join(dir, "test")
	if _, err := goTest(ctx, g.pkg, "-bench", g.profiled, "-benchtime", length, "-cpuprofile", cpu, "-o", binary); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount", "100000", "-nodefraction", "0", binary, cpu).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w", err)
	}
	return shares(out), nil
}

// top matches a line of pprof's table: flat share, and function.
var top = regexp.MustCompile(`^\s*\S+\s+([0-9.]+)%\s+[0-9.]+%\s+\S+\s+[0-9.]+%\s+(.+)$`)

// shares adds up a table of functions by package, and leaves out shares below one percent.
func shares(table []byte) (all []share) {
	sums := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		if m := top.FindStringSubmatch(lines.Text()); m != nil {
			percent, _ := strconv.ParseFloat(m[1], 64)
			sums[packageOf(m[2])] += percent
		}
	}
	for name, percent := range sums {
		if percent >= 1 {
			all = append(all, share{name, percent})
		}
	}
	slices.SortFunc(all, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Package, b.Package))
	})
	return all
}

// packageOf returns the package of a function named by pprof: path/name.Function.
func packageOf(function string) string {
	function, _, _ = strings.Cut(function, "[") // type arguments contain paths, too
	dir, name := "", function
	if i := strings.LastIndex(function, "/"); i >= 0 {
		dir, name = function[:i+1], function[i+1:]
	}
	name, _, _ = strings.Cut(name, ".")
	return dir + name
}

// write writes the tables in Markdown.
func (r report) write(w io.Writer) {
	fmt.Fprintf(w, "Measured %s: %s.\n", r.Began.Format("2006-01-02 15:04 MST"), r.Machine)
	for _, m := range r.Groups {
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n", m.Title, m.About)
		m.table(w)
		if len(m.Shares) > 0 {
			fmt.Fprintf(w, "\nWhere the processor time of `%s` goes:\n\n", m.Profiled)
			t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
			fmt.Fprintln(t, "| package\t| % |\n|---\t|---|")
			for _, s := range m.Shares {
				fmt.Fprintf(t, "| %s\t| %.1f |\n", s.Package, s.Percent)
			}
			t.Flush()
		}
	}
}

// table has a row for each benchmark and a column for each unit.
func (m measured) table(w io.Writer) {
	var units []string
	for _, r := range m.Results {
		for _, u := range r.units {
			if !slices.Contains(units, u) && u != "B/op" && u != "allocs/op" {
				units = append(units, u)
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(t, "| benchmark\t| %s\t|\n|---%s\t|\n", strings.Join(units, "\t| "), strings.Repeat("\t|---", len(units)))
	for _, r := range m.Results {
		row := "| " + r.Name
		for _, u := range units {
			cell := ""
			if n, is := r.Metrics[u]; is {
				cell = number(n)
			}
			row += "\t| " + cell
		}
		fmt.Fprintln(t, row+"\t|")
	}
	t.Flush()
}

// number formats a number with three significant digits and a thousands separator.
func number(n float64) string {
	if n < 1000 {
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	s := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// serverVersion returns the version of the redis-server on the PATH; empty: there is none.
func serverVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return ""
	}
	for _, word := range strings.Fields(string(out)) {
		if v, is := strings.CutPrefix(word, "v="); is {
			return v
		}
	}
	return ""
}
