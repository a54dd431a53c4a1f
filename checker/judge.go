package checker

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// Judgement is the result for a history: the verdicts, and measured facts.
type Judgement struct {
	Verdicts []Verdict
	// Ops is the number of operations, of all kinds.
	Ops int
	// Sold is how many pieces were surely sold, including refunded ones.
	Sold int64
	// Unknown is how many more pieces may have been sold by operations without an answer.
	Unknown int64
	// Overruns counts the sections that outlived their lease: their release was
	// called after its end.
	Overruns int
	// FirstOverrun describes the first overrun in a sentence; empty if there is none.
	FirstOverrun string
	// Refusals counts the refused operations of all kinds by reason.
	Refusals map[history.Reason]int64
	// Fairness is Jain's index over the acquisitions of the clients that tried:
	// 1 when all obtained the lock equally often, 1/n when one of n had it
	// alone; 0 when no client obtained it.
	Fairness float64
	// Acquired is how often the lock was obtained.
	Acquired int64
}

// judgeBlock is how many operations are observed between two calls of Advance.
const judgeBlock = 4096

// Judge judges a history with all its monitors. It reads the history once, in batches. Each batch goes concurrently to
// the monitors of each object, which share their state, and to each function of also. The same history always gives
// the same judgement.
//
// A history that was cut off (without a trailer) is judged up to the cut. Operations in
// flight at the cut are missing from it, so nothing is concluded from the absence of an
// operation, and a verdict that needs the final state is Unknown.
func Judge(h *history.History, also ...func([]history.Op)) Judgement {
	monitors := Monitors(h.Header)
	verdicts := make([]Verdict, len(monitors))
	for i, m := range monitors {
		verdicts[i] = m.Verdict() // to know its object
	}
	facts := new(facts)
	readers := append(slices.Clone(also), facts.read)
	cut := h.Trailer == nil
	var low time.Duration                  // of the batch under way
	for from := 0; from < len(monitors); { // those of one object share state
		to := from + 1
		for to < len(monitors) && verdicts[to].Of == verdicts[from].Of {
			to++
		}
		group := monitors[from:to]
		readers = append(readers, func(ops []history.Op) { judge(group, ops, low, cut) })
		from = to
	}
	out := Judgement{}
	for ops, next := range h.Batches(judgeBlock) {
		low, out.Ops = next, out.Ops+len(ops)
		atOnce(readers, ops)
	}
	for i, m := range monitors {
		if c, ok := m.(monitor.CutAware); ok && cut {
			c.Cut(true)
		} else if !cut {
			m.Advance(history.Forever)
		}
		verdicts[i] = witnessed(m.Verdict())
	}
	out.Verdicts, out.Overruns, out.FirstOverrun, out.Refusals, out.Fairness, out.Acquired = verdicts, facts.overruns, facts.first, facts.refusals(), facts.fairness(), facts.acquired()
	for _, m := range monitors {
		if n, ok := m.(seller); ok {
			out.Sold, out.Unknown = n.SoldPieces()
			break
		}
	}
	return out
}

// seller is a monitor that counts the pieces surely sold, and perhaps sold.
type seller interface {
	SoldPieces() (certain, perhaps int64)
}

// atOnce gives a batch to all readers, each in a goroutine of its own, and waits for them.
func atOnce(readers []func([]history.Op), ops []history.Op) {
	var work sync.WaitGroup
	for _, read := range readers[1:] {
		work.Go(func() { read(ops) })
	}
	readers[0](ops)
	work.Wait()
}

// judge feeds monitors a batch; low is the earliest call after it.
func judge(monitors []Monitor, ops []history.Op, low time.Duration, cut bool) {
	for _, m := range monitors {
		observe(m, ops)
	}
	if len(ops) < judgeBlock || cut {
		return
	}
	for _, m := range monitors {
		m.Advance(low)
	}
}

// observe feeds one monitor a batch.
func observe(m Monitor, ops []history.Op) {
	if b, ok := m.(monitor.Batcher); ok {
		b.ObserveAll(ops)
		return
	}
	for i := range ops {
		m.Observe(&ops[i])
	}
}

// facts are the measurements without a verdict.
type facts struct {
	overruns int
	first    string          // overrun
	refused  [256]int64      // by reason
	grants   []int64         // by client; -1: it never tried
	others   map[int32]int64 // clients with numbers that are not indices
}

func (f *facts) read(ops []history.Op) {
	for i := range ops {
		f.observe(&ops[i])
	}
}

func (f *facts) observe(op *history.Op) {
	if op.Outcome == history.Refused {
		f.refused[op.Reason]++
	}
	switch op.Kind {
	case history.Release:
		if op.Until > 0 && op.Call > op.Until {
			if f.overruns++; f.overruns == 1 {
				f.first = fmt.Sprintf("%s released %s at %s, %s after the end of its lease", say.Client(op), say.Titled("lock", op.Key), say.At(op.Call), say.At(op.Call-op.Until))
			}
		}
	case history.Acquire:
		if op.Reason == history.Stopped {
			return
		}
		won := int64(0)
		if op.Outcome == history.OK {
			won = 1
		}
		if op.Client < 0 || op.Client > 1<<22 {
			if f.others == nil {
				f.others = make(map[int32]int64)
			}
			f.others[op.Client] += won
			return
		}
		for int(op.Client) >= len(f.grants) {
			f.grants = append(f.grants, -1)
		}
		g := &f.grants[op.Client]
		*g = max(*g, 0) + won
	}
}

// refusals returns how many operations were refused, by reason.
func (f *facts) refusals() map[history.Reason]int64 {
	all := make(map[history.Reason]int64)
	for reason, n := range f.refused {
		if n > 0 {
			all[history.Reason(reason)] = n
		}
	}
	return all
}

// acquired returns how often the lock was obtained.
func (f *facts) acquired() (sum int64) {
	for _, g := range f.grants {
		sum += max(g, 0)
	}
	for _, g := range f.others {
		sum += g
	}
	return sum
}

// fairness returns Jain's index: the square of the sum over n times the sum of squares.
func (f *facts) fairness() float64 {
	var n, sum, squares float64
	add := func(g int64) {
		n++
		sum += float64(g)
		squares += float64(g) * float64(g)
	}
	for _, g := range f.grants {
		if g >= 0 {
			add(g)
		}
	}
	for _, g := range f.others {
		add(g)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (n * squares)
}
