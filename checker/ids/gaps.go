package ids

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// noGaps judges that every number from 1 to the largest is given out. The largest is the largest that a client received
// or, if the final state is known, the server's last number.
//
// A request without an answer may have used up one missing number, so that many may be missing without a certain gap;
// the verdict says which. An opportunity is a contended number, see [counters]. The smallest bad history:
//
//	client 1  next-id  [1, 2]  2
func (c *counter) noGaps() monitor.Verdict {
	end := c.top.number
	if !c.Ended {
		end = max(end, c.last)
	}
	missing := end - c.distinct
	witness := c.witnesses
	if c.top.taken {
		witness = append(slices.Clone(witness), c.op(&c.top.slot, history.Int(c.top.number)))
	}
	switch {
	case c.n == c.odd && end == 0:
		return monitor.Verdict{Why: nothingNumbered}
	case missing > 0 && c.Ended:
		return monitor.Undecided(fmt.Sprintf("missing from 1 to %s: %s; but %s", say.Thousands(end), c.gaps(end), monitor.CutOff))
	case missing > c.unknown+int64(len(c.told)):
		why := fmt.Sprintf("nobody was given %s of the numbers from 1 to %s: %s", say.Thousands(missing), say.Thousands(end), c.gaps(end))
		if c.unknown > 0 {
			why += fmt.Sprintf("; %s without an answer may have used up as many, no more", say.Count(c.unknown, "request"))
		}
		return monitor.Verdict{Result: monitor.Violated, Count: int(missing - c.unknown), Unit: "number", Opportunities: c.contended, Why: why, Witness: monitor.InOrder(witness...)}
	case len(c.told) > 0:
		return monitor.Undecided(c.unclear())
	case missing > 0:
		return monitor.Undecided(fmt.Sprintf("nobody is known to have been given %s, which %s without an answer may have used up", c.gaps(end), say.Count(c.unknown, "request")))
	case c.odd > 0:
		return monitor.Undecided(fmt.Sprintf("%s that are no numbers from 1 on", say.Count(c.odd, "answer")))
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: c.contended, Why: fmt.Sprintf("every number from 1 to %s was given out, in %s", say.Thousands(end), c.inContention())}
}

// run is a range of numbers.
type run struct{ from, to int64 }

// gaps lists the numbers from 1 to end that no client was given.
func (c *counter) gaps(end int64) string {
	var out []string
	next, hidden := int64(1), 0
	gap := func(from, to int64) {
		switch {
		case from > to:
		case len(out) == 10:
			hidden++
		case from == to:
			out = append(out, say.Thousands(from))
		default:
			out = append(out, say.Thousands(from)+" to "+say.Thousands(to))
		}
	}
	for _, r := range c.given() {
		gap(next, r.from-1)
		if r.to >= end {
			next = 0
			break
		}
		next = r.to + 1
	}
	if next > 0 {
		gap(next, end)
	}
	if hidden > 0 {
		out = append(out, "and "+say.Count(int64(hidden), "gap")+" more")
	}
	return strings.Join(out, ", ")
}

// given lists the numbers from 1 on that were given out.
func (c *counter) given() (list []run) {
	c.numbers.Each(func(n int64, s *slot) {
		if !s.taken || n < 1 {
			return
		}
		if last := len(list) - 1; last >= 0 && list[last].to == n-1 {
			list[last].to = n
		} else {
			list = append(list, run{n, n})
		}
	})
	slices.SortFunc(list, func(a, b run) int { return cmp.Compare(a.from, b.from) })
	return list
}
