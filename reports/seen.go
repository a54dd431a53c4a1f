package reports

import (
	"fmt"
	"math"
	"strings"

	"oversell/history"
)

// A pass says what was seen: no violation in a number of opportunities. It does not say that violations are
// impossible. Conditions that were not part of the run, and under which flaws declare violations, are in the same
// line.

// Below bounds, with 95 % confidence, the frequency of an event that did not happen in n cases: 1 - 0.05^(1/n).
// From 30 cases on it uses the rule of three, 3/n, which is never less.
func Below(n int64) string {
	if n < ruleOfThree {
		return Percent(1 - math.Pow(0.05, 1/float64(n)))
	}
	return fmt.Sprintf("3/%s = %s", Thousands(n), Percent(3/float64(n)))
}

// ruleOfThree is the number of cases from which on 3/n is close enough.
const ruleOfThree = 30

// noViolation says that nothing broke in n cases, with their name.
func noViolation(n int64, cases string) string {
	return fmt.Sprintf("no violation seen in %s (95 %%: below %s)", cases, Below(n))
}

// fewest returns the smallest number of opportunities of any promise, and whether there are several promises.
func (r Run) fewest() (n int64, several bool) {
	promises := 0
	for _, p := range r.Properties {
		if p.Result == NotClaimed {
			continue
		}
		if promises++; promises == 1 || p.Opportunities < n {
			n = p.Opportunities
		}
	}
	return n, promises > 1
}

// Seen describes what a pass is based on, and what it does not cover.
func (r Run) Seen() string {
	n, several := r.fewest()
	return seen(n, several, r.KnownToBreak)
}

// seen describes what a pass is based on: the promise with the fewest opportunities.
func seen(fewest int64, several bool, untried []history.Untried) string {
	s := "no violation seen"
	switch {
	case fewest > 0 && several:
		s = noViolation(fewest, Count(fewest, "opportunity")+" or more for each promise")
	case fewest > 0:
		s = noViolation(fewest, Count(fewest, "opportunity"))
	}
	return Joined("; ", s, NotTried(untried))
}

// NotTried names the untried conditions that are known to break a promise; may be empty.
func NotTried(untried []history.Untried) string {
	if len(untried) == 0 {
		return ""
	}
	return "known to break under: " + Conditions(untried) + "; not tried"
}

// DeclaredNotSeen returns the sentence about promises that flaws declare broken and that held; may be empty.
func DeclaredNotSeen(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "declared, not seen: " + strings.Join(names, ", ")
}

// NotTried returns the untried conditions of a run without a violation; empty for other runs.
func (r Run) NotTried() string {
	if r.Verdict == Violated {
		return ""
	}
	return NotTried(r.KnownToBreak)
}

// Seen describes what the result of a promise that held is based on; empty if nothing was counted.
func (p Property) Seen() string {
	if p.Opportunities == 0 {
		return ""
	}
	return noViolation(p.Opportunities, Count(p.Opportunities, "opportunity"))
}

// Conditions returns the names of untried conditions.
func Conditions(untried []history.Untried) string {
	var names []string
	for _, u := range untried {
		names = append(names, u.Under)
	}
	return strings.Join(names, ", ")
}
