package reports

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestColumnsStayAligned: whatever stands in a table, its separators stand below
// each other and it is as wide as it may be.
func TestColumnsStayAligned(t *testing.T) {
	long := strings.Repeat("héllo-", 40)
	for _, clients := range [][]string{{"client 0"}, {"client 0", "client 1"}, {"a", "b", "c", "client with quite a long name of its own"}} {
		c := Counterexample{Clients: clients}
		for i := range clients {
			c.Steps = append(c.Steps,
				Step{Kind: StepCommand, Client: i, Text: "set " + long + " -> " + long, Marks: []string{MarkEnter}, Redis: long},
				Step{Kind: StepLate, Client: i, Text: "del " + long},
				Step{Kind: StepAdvance, Client: TheClock, AdvanceMS: 1e9, Text: long})
		}
		table := c.table(1)
		var bars []int
		for line := range strings.Lines(table) {
			runes := []rune(strings.TrimRight(line, "\n"))
			if most := max(tableWidth, (len(clients)+1)*(narrowest+3)+20); len(runes) > most {
				t.Errorf("%d runes wide, and may be %d: %s", len(runes), most, line)
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

func TestCutKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"abcdefgh", 8, "abcdefgh"}, {"abcdefgh", 5, "ab…gh"}, {"abcdefgh", 4, "ab…h"}, {"äöüäöü", 3, "ä…ü"}, {"ab", 1, "…"}, {"ab", 0, ""}} {
		got := Cut(c.text, c.width)
		if got != c.want || utf8.RuneCountInString(got) > c.width {
			t.Errorf("cut(%q, %d) = %q; want %q", c.text, c.width, got, c.want)
		}
	}
}
