package campaign

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/reports/text"
)

// TestMatrix runs the cells of every failure on real servers. In CI it runs a sample with one seed; OVERSELL_MATRIX
// sets another number of seeds and runs every cell. With ten seeds or more, as in "make matrix", the results are
// written to docs/faults.md.
func TestMatrix(t *testing.T) {
	servertest.NeedServer(t)
	seeds, err := strconv.Atoi(cmp.Or(os.Getenv("OVERSELL_MATRIX"), "1"))
	if err != nil || seeds < 1 {
		t.Fatalf("OVERSELL_MATRIX=%s: must be a number of seeds", os.Getenv("OVERSELL_MATRIX"))
	}
	book := &book{}
	t.Run("cells", func(t *testing.T) {
		for i, f := range Failures {
			for j, c := range f.Cells {
				if seeds == 1 && !f.sampled(i, j) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(f.Mode, "/", "-"), j+1), func(t *testing.T) {
					t.Parallel()
					for seed := range seeds {
						book.note(i, j, judgeCell(t, c, uint64(seed+1), seeds == 1))
					}
				})
			}
		}
	})
	if seeds >= 10 {
		book.write(t, filepath.Join("..", "docs", "faults.md"))
	}
}

// sampled reports whether cell j of this failure, the i-th, runs in CI: one of the cells that break and one of those
// that hold, chosen by i.
func (f Failure) sampled(i, j int) bool {
	alike, before := 0, 0
	for k, c := range f.Cells {
		if c.Breaks != f.Cells[j].Breaks {
			continue
		}
		if k < j {
			before++
		}
		alike++
	}
	return before == i%alike
}

// measured returns the cell's property in the report of a run.
func (c Cell) measured(t *testing.T, r reports.Run) reports.Property {
	t.Helper()
	i := slices.IndexFunc(r.Properties, func(p reports.Property) bool { return p.Of == c.Of && p.Name == c.Property })
	if i < 0 {
		t.Fatalf("%s: %s of the %s was not judged", c.command(), c.Property, c.Of)
	}
	return r.Properties[i]
}

// judgeCell runs a cell once and fails the test if the result is not the expected one. With patience, a run in which
// the flaw did not show or nothing was decided is repeated up to twice, since a busy machine can cause that. An
// unexpected violation is never excused.
func judgeCell(t *testing.T, c Cell, seed uint64, patience bool) reports.Run {
	t.Helper()
	r := runCell(t, c, seed)
	want := reports.Holds
	if c.Breaks {
		want = reports.Broken
	}
	p := c.measured(t, r)
	for again := 0; patience && again < 2 && p.Measured != want && (c.Breaks || p.Measured == reports.Unknown); again++ {
		t.Logf("%s --seed %d had no power, and is run again: %s", c.command(), seed, p.Why)
		seed++
		r = runCell(t, c, seed)
		p = c.measured(t, r)
	}
	if p.Measured != want {
		t.Errorf("%s --seed %d: %s of the %s: %s, and must be %s: %s\n%s", c.command(), seed, p.Name, p.Of, p.Measured, want, p.Why, story(r))
	}
	if c.Whole && r.Verdict == reports.Violated {
		t.Errorf("%s --seed %d: no promise may be broken:\n%s", c.command(), seed, story(r))
	}
	for _, f := range r.Faults {
		if f.Fired == 0 || f.Failed != "" {
			t.Errorf("%s --seed %d: fault %q fired %d times; %s", c.command(), seed, f.Name, f.Fired, f.Failed)
		}
	}
	return r
}

// story returns what a terminal shows of a run.
func story(r reports.Run) string {
	var b strings.Builder
	text.Terminal{W: &b}.Explain(reports.Document{Runs: []reports.Run{r}})
	return b.String()
}

func runCell(t *testing.T, c Cell, seed uint64) reports.Run {
	t.Helper()
	o, err := Parse(append(slices.Clone(c.Args), "--seed", fmt.Sprint(seed), "--target", "process"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := NewPlan(ctx, *o)
	if err != nil {
		t.Fatalf("%s: %v", c.command(), err)
	}
	p.Dir = t.TempDir()
	d, err := Run(ctx, p, silent{})
	if err != nil {
		t.Fatalf("%s: %v", c.command(), err)
	}
	if len(d.Runs) != 1 {
		t.Fatalf("%s: %d runs, and a cell is one", c.command(), len(d.Runs))
	}
	return d.Runs[0]
}

// command returns the cell as a command line.
func (c Cell) command() string {
	words := []string{"oversell", "run"}
	for _, a := range c.Args {
		if strings.ContainsAny(a, " *") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
