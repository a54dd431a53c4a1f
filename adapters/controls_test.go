//go:build unix

package adapters

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oversell/reports"
)

// sabotage is a way in which the adapter of redis-py breaks that library's lock on purpose.
type sabotage struct {
	name, what string
	// caught lists the cases in which some run must break a promise, as the document says.
	caught []string
}

var sabotages = []sabotage{
	{"any-release", "a release deletes the key, whosever it is", []string{"overrun"}},
	{"no-release", "a release does nothing", []string{"overrun"}},
	{"no-expiry", "the lock has no expiry", []string{"crash", "lost replies"}},
	{"long-lease", "the lease is told to be twice as long as it is", []string{"overrun"}},
}

// breaking lists the cases in which the lock breaks even without sabotage, so that they can show nothing.
var breaking = []string{"data loss"}

// peer returns the sabotaged library.
func (s sabotage) peer() peer {
	p := peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == "redis-py Lock" })]
	p.name += ", sabotaged: " + s.name
	p.env = []string{"SABOTAGE=" + s.name}
	return p
}

// controlled writes the table of the sabotages.
func controlled(b *strings.Builder, controls []outcome) {
	b.WriteString(sabotaged)
	var names []string
	for _, h := range hardships {
		if !slices.Contains(breaking, h.name) {
			names = append(names, h.name)
		}
	}
	fmt.Fprintf(b, "| sabotage | `SABOTAGE=` | %s |\n|---|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, s := range sabotages {
		fmt.Fprintf(b, "| %s | `%s` |", s.what, s.name)
		for _, o := range controls {
			if o.peer.name == s.peer().name {
				fmt.Fprintf(b, " %s |", o.cell())
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// cell returns the table's entry that says whether a case caught a sabotage.
func (o outcome) cell() string {
	caught := 0
	for _, v := range o.verdicts {
		if v == reports.Violated {
			caught++
		}
	}
	switch {
	case caught > 0:
		return fmt.Sprintf("caught in %d/%d: %s", caught, len(o.verdicts), strings.Join(o.broke, ", "))
	case slices.Contains(o.verdicts, reports.Inconclusive):
		return "not decided"
	}
	return "not caught"
}

const sabotaged = `## Controls

These runs use redis-py's Lock with an adapter that breaks it on purpose: put ` + "`SABOTAGE=…`" + ` before the commands of redis-py below. The cases differ in
what they can catch: overrun catches what a release does wrong and a lease that is told too long, crash and lost replies catch a lock without
an expiry, and load catches none of these. A case that is not decided does not count as one that holds. Data loss is left out, since the whole
lock breaks, too.

`

// searchedBefore returns the part of the document that TestSearched wrote.
func searchedBefore() string {
	text, _ := os.ReadFile("../docs/peers.md")
	return strings.TrimSuffix(regexp.MustCompile(`(?s)## Searched\n.*?\n## `).FindString(string(text)), "## ")
}

// TestMixedVerdicts checks that the document says once that a case broke only in some runs.
func TestMixedVerdicts(t *testing.T) {
	for _, note := range []string{"", "It takes a race.", "It takes a race and " + rare} {
		var b strings.Builder
		p := peer{name: "x", notes: map[string]string{"load": note}}
		details(&b, []outcome{{peer: p, hardship: "load", verdicts: []string{reports.Pass, reports.Violated}}})
		if strings.Count(b.String(), rare) != 1 {
			t.Errorf("%q: %s", note, b.String())
		}
		b.Reset()
		details(&b, []outcome{{peer: peer{name: "x"}, hardship: "load", verdicts: []string{reports.Violated}}})
		if strings.Contains(b.String(), rare) {
			t.Errorf("broken in each run: %s", b.String())
		}
	}
}
