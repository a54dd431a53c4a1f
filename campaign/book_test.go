package campaign

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"oversell/reports"
)

// book collects the results of the matrix for docs/faults.md.
type book struct {
	mu   sync.Mutex
	runs map[[2]int][]reports.Run
}

func (b *book) note(row, cell int, r reports.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[[2]int][]reports.Run{}
	}
	b.runs[[2]int{row, cell}] = append(b.runs[[2]int{row, cell}], r)
}

func (b *book) write(t *testing.T, path string) {
	t.Helper()
	var text strings.Builder
	text.WriteString(preface)
	for i, f := range Failures {
		fmt.Fprintf(&text, "\n## %s\n\nTrigger: %s.\n\n", f.Mode, f.Trigger)
		text.WriteString("| command | promise | result | faults fired |\n|---|---|---|---|\n")
		for j, c := range f.Cells {
			if len(b.runs[[2]int{i, j}]) == 0 {
				continue // not run, because of -run
			}
			fmt.Fprintf(&text, "| `%s` | %s (%s) | %s | %s |\n", strings.ReplaceAll(c.command(), "|", `\|`), c.Property, c.Of, b.result(i, j, c), b.fired(i, j))
		}
		for j, c := range f.Cells {
			if c.Breaks && len(b.runs[[2]int{i, j}]) > 0 {
				fmt.Fprintf(&text, "\nWhat the first of them prints (seed 1):\n\n```\n%s\n```\n", strings.TrimSpace(story(b.runs[[2]int{i, j}][0])))
				break
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

const preface = `# Faults and failures

Each section is a way in which locks, sales and queues on Redis fail: the smallest
trigger, a command for each variant that must break, and commands for variants
that must not. The results are those of the last ` + "`make matrix`" + `: ten seeds a
command, each on servers of its own. ` + "`oversell list faults`" + ` shows the language of the
faults.
`

// result says in how many runs the property had the expected result.
func (b *book) result(i, j int, c Cell) string {
	want := reports.Holds
	if c.Breaks {
		want = reports.Broken
	}
	n, runs := 0, b.runs[[2]int{i, j}]
	for _, r := range runs {
		for _, p := range r.Properties {
			if p.Of == c.Of && p.Name == c.Property && p.Measured == want {
				n++
			}
		}
	}
	return fmt.Sprintf("%s %d/%d", want, n, len(runs))
}

// fired returns how often the faults fired: the fewest and the most times in a run.
func (b *book) fired(i, j int) string {
	low, high := int64(-1), int64(0)
	for _, r := range b.runs[[2]int{i, j}] {
		n := int64(0)
		for _, f := range r.Faults {
			n += f.Fired
		}
		if low < 0 || n < low {
			low = n
		}
		high = max(high, n)
	}
	switch {
	case high == 0:
		return "none needed"
	case low == high:
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}
