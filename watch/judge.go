package watch

import (
	"fmt"
	"time"

	"oversell/checker"
	"oversell/history"
)

// judge looks for broken promises while a run goes on, with the monitors that judge it
// in the end (see [checker.Running]).
//
// Monitors read operations in completion order. The file has the operations of one
// client in order, but those of different clients as the sweeps found them. So the judge
// holds operations back until none can come any more that returned before them. A sweep
// hands over all that was recorded before it, and operations are recorded right after
// their return; sweeps come every 50 ms. An operation may therefore be judged once the file has
// been read to its end, several times, 100 ms apart, since it first told of something as
// late: whatever returned before that has been recorded and swept meanwhile. Counting
// looks and not time allows for a process that was stopped as a whole: its sweeps stood
// still, too.
//
// Nothing guarantees that, because a goroutine may stand still between the return of an
// operation and its record. When an operation comes too late all the same, the judge
// gives up, rather than say anything of a history that it has seen in the wrong order.
type judge struct {
	running *checker.Running
	// batches are the operations held back, a batch for each look, in a ring; at is the
	// one that is being filled, and the next one is the oldest.
	batches [looks + 1]batch
	at      int
	latest  time.Duration // return of all operations taken
	judged  time.Duration // all that returned by then has been judged
	count   int
	last    time.Duration // return of the operation observed last
	unheard time.Duration // the same, when the monitors were last asked
	ask     time.Time     // when they may be asked again
	found   []Violation   // and not yet told
	quit    string
}

// batch is what one look has found.
type batch struct {
	ops     []history.Op  // in completion order, once the look is over
	next    int           // the first that has not been judged
	reached time.Duration // the latest return of all operations taken by then
}

const (
	// never is before all times.
	never time.Duration = -1 << 63
	// looks is how many looks an operation is held back.
	looks = 6
	// block is how many operations are observed before the monitors may be asked.
	block = 512
	// mostJudged bounds the memory of monitors that are never told what they may
	// forget.
	mostJudged = 4_000_000
)

func newJudge(h history.Header) *judge {
	j := &judge{running: checker.NewRunning(h), judged: never, latest: never, last: never, unheard: never}
	for i := range j.batches {
		j.batches[i].reached = never
	}
	return j
}

// take holds new operations back.
func (j *judge) take(ops []history.Op) {
	b := &j.batches[j.at]
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Return > j.judged:
			b.ops = append(b.ops, *op)
			j.latest = max(j.latest, op.Return)
		case op.Kind == history.Join:
			// A client records its place in the line when it is served, long after. It
			// is looked up by the acquisition that it belongs to only, which comes later.
			j.running.Observe(op)
		default:
			j.giveUp("an operation was recorded too late to be judged in order")
			return
		}
	}
}

// looked says that the file was read to its end. Then the oldest batch is ripe, and with
// it what has returned as early and was found later.
func (j *judge) looked() {
	if j.quit != "" {
		return
	}
	b := &j.batches[j.at]
	b.reached = j.latest
	history.SortByCompletion(b.ops)
	j.at = (j.at + 1) % len(j.batches)
	oldest := &j.batches[j.at]
	if oldest.reached > j.judged {
		j.judged = oldest.reached
		j.observe()
		j.asks()
	}
	oldest.ops, oldest.next = oldest.ops[:0], 0
	if j.count > mostJudged {
		j.giveUp(fmt.Sprintf("more than %d operations are judged at the end only", mostJudged))
	}
}

// observe judges what returned by j.judged, in completion order.
func (j *judge) observe() {
	for op := j.first(); op != nil; op = j.first() {
		j.running.Observe(op)
		j.last = op.Return
		if j.count++; j.count%block == 0 {
			j.asks()
		}
	}
}

// first takes the operation that comes first of those that are ripe; nil: none is left.
func (j *judge) first() (op *history.Op) {
	var from *batch
	for i := range j.batches {
		b := &j.batches[i]
		if b.next == len(b.ops) || b.ops[b.next].Return > j.judged {
			continue
		}
		if o := &b.ops[b.next]; op == nil || history.ByCompletion(o, op) < 0 {
			op, from = o, b
		}
	}
	if from != nil {
		from.next++
	}
	return op
}

// asks asks the monitors what is broken. When that takes long, it is done seldom.
func (j *judge) asks() {
	began := time.Now()
	if began.Before(j.ask) {
		return
	}
	for _, v := range j.running.Broken() {
		j.found = append(j.found, Violation{Verdict: v, Within: j.when(v)})
	}
	j.unheard = j.last
	j.ask = time.Now().Add(2 * pauses * time.Since(began))
}

// when is by when a promise was broken: when the last operation had returned that shows
// it. If that is one of long ago, which only explains it, nobody knows better than that
// it was not broken when the monitors were asked before.
func (j *judge) when(v checker.Verdict) time.Duration {
	shown := never
	for i := range v.Witness {
		shown = max(shown, v.Witness[i].Return)
	}
	if shown <= j.unheard || shown > j.last {
		return j.last
	}
	return shown
}

// broken returns what was found broken since the last call.
func (j *judge) broken() (vs []Violation) {
	vs, j.found = j.found, nil
	return vs
}

func (j *judge) giveUp(why string) {
	j.quit = why
	j.batches, j.running = [looks + 1]batch{}, nil
}
