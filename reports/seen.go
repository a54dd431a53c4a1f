package reports

import (
	"fmt"
	"math"
	"strings"

	"oversell/history"
)

// A pass says what was seen: no violation, in so many opportunities for one. It does not
// say that there can be none. What flaws declare to break under conditions that were not
// brought stands in the same line.

// Below bounds, to 95 %, in what part of all cases something happens that never happened
// in n: 1 - 0.05^(1/n). From 30 cases on that is the rule of three, 3/n, which is never
// less.
func Below(n int64) string {
	if n < ruleOfThree {
		return Percent(1 - math.Pow(0.05, 1/float64(n)))
	}
	return fmt.Sprintf("3/%s = %s", Thousands(n), Percent(3/float64(n)))
}

// ruleOfThree is from how many cases on 3/n is as good as exact.
const ruleOfThree = 30

// noViolation says that nothing broke in n cases, which are so called.
func noViolation(n int64, cases string) string {
	return fmt.Sprintf("no violation seen in %s (95 %%: below %s)", cases, Below(n))
}

// fewest is the smallest number of opportunities that any promise had to break, and
// whether there are several promises.
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

// Seen says of a run that passed what that rests on, and what it says nothing about.
func (r Run) Seen() string {
	n, several := r.fewest()
	return seen(n, several, r.KnownToBreak)
}

// seen is what a pass rests on: the promise that had the fewest opportunities.
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

// NotTried names the conditions that are known to break a promise and were not tried;
// empty if there are none.
func NotTried(untried []history.Untried) string {
	if len(untried) == 0 {
		return ""
	}
	return "known to break under: " + Conditions(untried) + "; not tried"
}

// DeclaredNotSeen is the sentence about promises that flaws declare broken and that held;
// empty if there are none.
func DeclaredNotSeen(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "declared, not seen: " + strings.Join(names, ", ")
}

// NotTried returns the untried conditions of a run that broke no promise; empty for other
// runs.
func (r Run) NotTried() string {
	if r.Verdict == Violated {
		return ""
	}
	return NotTried(r.KnownToBreak)
}

// Seen says of a promise that held what that rests on; empty if nothing was counted.
func (p Property) Seen() string {
	if p.Opportunities == 0 {
		return ""
	}
	return noViolation(p.Opportunities, Count(p.Opportunities, "opportunity"))
}

// Conditions are the names of what was not tried.
func Conditions(untried []history.Untried) string {
	var names []string
	for _, u := range untried {
		names = append(names, u.Under)
	}
	return strings.Join(names, ", ")
}
