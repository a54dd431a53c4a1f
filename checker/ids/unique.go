package ids

import (
	"fmt"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// twice records the numbers that were given out twice.
type twice struct {
	count   int
	why     string
	witness []history.Op
}

// later returns the first answer that gives a number out again, unless a try without an answer is
// still to come.
func (c *counter) later() *history.Op {
	if len(c.again) == 0 {
		return nil
	}
	return &c.again[0]
}

// add notes that a number was given out again.
func (t *twice) add(c *counter, first *slot, op *history.Op) {
	if t.count++; t.count > 1 {
		return
	}
	before := c.op(first, op.Result)
	t.why = fmt.Sprintf("%s of %s was given to %s between %s and %s, and to %s between %s and %s", op.Result, say.Titled("counter", c.key),
		say.Client(&before), say.At(before.Call), say.At(before.Return), say.Client(op), say.At(op.Call), say.At(op.Return))
	t.witness = monitor.InOrder(before, *op)
}

// unique judges that no number is given out twice. A request that is sent again may
// get its number again, see [request]. An opportunity is a contended number, see [counters]. The
// smallest bad history:
//
//	client 1  next-id  [1, 2]  7
//	client 2  next-id  [3, 4]  7
func (c *counter) unique() monitor.Verdict {
	t := c.twice
	for i := range c.again {
		t.add(c, c.numbers.At(c.again[i].Result), &c.again[i])
	}
	unclear := c.unclear()
	switch {
	case c.twice.count == 0 && t.count > 0 && c.Ended:
		return monitor.Undecided(t.why + "; but " + monitor.CutOff)
	case t.count > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: t.count, Opportunities: c.contended, Why: t.why, Witness: t.witness}
	case unclear != "":
		return monitor.Undecided(unclear)
	case c.n == 0:
		return monitor.Verdict{Why: nothingNumbered}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: c.contended, Why: fmt.Sprintf("%s, none given out twice in %s", say.Count(c.n, "number"), c.inContention())}
}
