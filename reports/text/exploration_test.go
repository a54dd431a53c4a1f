package text

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/reports"
	"oversell/reports/reportstest"
)

// TestColumnsStayAligned checks that the separators of a table stand below each other and that the table fits its
// width, whatever is in it.
func TestColumnsStayAligned(t *testing.T) {
	long := strings.Repeat("héllo-", 40)
	for _, clients := range [][]string{{"client 0"}, {"client 0", "client 1"}, {"a", "b", "c", "client with quite a long name of its own"}} {
		c := reports.Counterexample{Clients: clients}
		for i := range clients {
			c.Steps = append(c.Steps,
				reports.Step{Kind: reports.StepCommand, Client: i, Text: "set " + long + " -> " + long, Marks: []string{reports.MarkEnter}, Redis: long},
				reports.Step{Kind: reports.StepLate, Client: i, Text: "del " + long},
				reports.Step{Kind: reports.StepAdvance, Client: reports.TheClock, AdvanceMS: 1e9, Text: long})
		}
		g := gridOf(c, 1)
		s := Terminal{Width: 200}.sheet()
		if !g.fit(s.width) {
			t.Fatalf("%d clients have no room", len(clients))
		}
		g.write(s)
		table := s.String()
		var bars []int
		for line := range strings.Lines(table) {
			runes := []rune(strings.TrimRight(line, "\n"))
			if len(runes) > s.width {
				t.Errorf("%d runes wide, and may be %d: %s", len(runes), s.width, line)
			}
			var here []int
			for i, r := range runes {
				if r == '|' {
					here = append(here, i)
				}
			}
			if bars == nil {
				bars = here
			}
			for _, i := range here {
				if !slices.Contains(bars, i) {
					t.Errorf("a separator at %d; the head has them at %v:\n%s", i, bars, table)
				}
			}
		}
	}
}

var update = flag.Bool("update", false, "write testdata anew")

func TestExplorationText(t *testing.T) {
	for name, e := range reportstest.Explorations() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := (Terminal{W: &b}).Exploration(e); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "exploration-"+name+".txt"), b.Bytes())
			for line := range strings.Lines(b.String()) {
				if strings.TrimRight(line, " \n")+"\n" != line {
					t.Errorf("a line ends in blanks: %q", line)
				}
			}
		})
	}
}

// golden compares got with the content of a file; with -update it writes the file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./reports/text -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (go test ./reports/text -update writes it anew) has:\n%s\ngot:\n%s", path, want, got)
	}
}

func TestColourDoesNotMoveAnExploration(t *testing.T) {
	for name, e := range reportstest.Explorations() {
		var plain, colour bytes.Buffer
		if err := (Terminal{W: &plain}).Exploration(e); err != nil {
			t.Fatal(err)
		}
		if err := (Terminal{W: &colour, Color: true}).Exploration(e); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(colour.String(), "\x1b[3") {
			t.Errorf("%s: nothing is coloured", name)
		}
		stripped := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colour.String())
		if stripped != plain.String() {
			t.Errorf("%s: without its colours the text differs:\n%s\n%s", name, stripped, plain.String())
		}
	}
}
