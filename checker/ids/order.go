package ids

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// ascent tracks the numbers in the order of time.
type ascent struct {
	peaks    []rung // numbers larger than all received before them
	suspects []inversion
	broken   int
	first    inversion
}

// inversion is a number that is lower than one received before it was asked for, unless its
// request had been tried before that.
type inversion struct {
	before rung
	since  time.Duration
	number int64
	op     history.Op
}

// before returns the largest number received strictly before a time, or nil: a request that is
// called when an answer comes may have been served before it.
func (a *ascent) before(t time.Duration) *rung {
	i := sort.Search(len(a.peaks), func(i int) bool { return a.peaks[i].ret >= t })
	if i == 0 {
		return nil
	}
	return &a.peaks[i-1]
}

func (a *ascent) give(r rung, op *history.Op) {
	if before := a.before(r.call); before != nil && before.number > r.number {
		d := inversion{*before, r.call, r.number, *op}
		if r.request == (history.Value{}) {
			a.found(d)
		} else {
			a.suspects = append(a.suspects, d)
		}
	}
	if n := len(a.peaks); n == 0 || r.number > a.peaks[n-1].number {
		a.peaks = append(a.peaks, r)
	}
}

// lose clears the descents that an earlier try of their request explains.
func (a *ascent) lose(op *history.Op) {
	a.suspects = slices.DeleteFunc(a.suspects, func(d inversion) bool {
		if d.op.Arg != op.Arg || d.since <= op.Call {
			return false
		}
		before := a.before(op.Call)
		return before == nil || before.number <= d.number
	})
}

func (a *ascent) found(d inversion) {
	if a.broken++; a.broken == 1 {
		a.first = d
	}
}

func (a *ascent) pass(lowWater, firstTry time.Duration) {
	known := 0
	for known < len(a.suspects) && a.suspects[known].op.Return < lowWater {
		a.found(a.suspects[known])
		known++
	}
	a.suspects = a.suspects[known:]
	for _, d := range a.suspects {
		lowWater = min(lowWater, d.since)
	}
	lowWater = min(lowWater, firstTry)
	if i := sort.Search(len(a.peaks), func(i int) bool { return a.peaks[i].ret >= lowWater }); i > 1 {
		a.peaks = slices.Delete(a.peaks, 0, i-1)
	}
}

// inRealTime judges that numbers rise in real time: a client that asks after a number was
// received is never given a lower one. An opportunity is a number that was asked for when
// another client had received one, or a violation. The smallest bad history:
//
//	client 1  next-id  [1, 2]  8
//	client 2  next-id  [3, 4]  7
func (c *counter) inRealTime() monitor.Verdict {
	broken, d := c.order.broken, c.order.first
	if !c.Ended { // no try can come any more
		for _, s := range c.order.suspects {
			if broken++; broken == 1 {
				d = s
			}
		}
	}
	switch {
	case broken > 0:
		before := c.op(&d.before.slot, history.Int(d.before.number))
		return monitor.Verdict{Result: monitor.Violated, Count: broken, Opportunities: max(c.followed, int64(broken)), Witness: monitor.InOrder(before, d.op),
			Why: fmt.Sprintf("%s asked for a number of %s only at %s and was given %s, though %s had been given %s by %s",
				say.Client(&d.op), say.Titled("counter", c.key), say.At(d.op.Call), say.Thousands(d.number), say.Client(&before), say.Thousands(d.before.number), say.At(before.Return))}
	case len(c.order.suspects) > 0:
		return monitor.Undecided(fmt.Sprintf("%s was given a lower number than one received before it asked; but %s", say.Client(&c.order.suspects[0].op), monitor.CutOff))
	case len(c.told) > 0:
		return monitor.Undecided(c.unclear())
	case c.n == 0:
		return monitor.Verdict{Why: nothingNumbered}
	case c.texts > 0:
		return monitor.Undecided(fmt.Sprintf("%s that are no numbers, and have no order", say.Count(c.texts, "answer")))
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: c.followed,
		Why: fmt.Sprintf("%s, none lower than one received before it was asked for, in %s after another client had one", say.Count(c.n, "number"), say.Count(c.followed, "request"))}
}
