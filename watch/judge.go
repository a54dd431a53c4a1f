package watch

import (
	"fmt"
	"math"
	"sort"
	"time"

	"oversell/checker"
	"oversell/history"
	"oversell/variant"
)

// judge looks for broken promises while a run goes on, with the monitors that judge it
// in the end (see [checker.Running]).
//
// Monitors read operations in completion order. The file has the operations of one
// client in order, but those of different clients as the sweeps found them. The log knows
// up to when what it has written is complete ([history.Watermark]): what returned before that
// is judged, and the rest held back. The same knowledge tells the monitors what they may
// forget, so that neither the judge nor the monitors of locks grow with the run.
type judge struct {
	running *checker.Running
	held    []history.Op      // taken, and not judged
	taken   int64             // operations of the file
	water   history.Watermark // not applied yet: operations that it covers have not been read
	judged  time.Duration     // all that returned before has been judged
	count   int
	last    time.Duration // return of the operation observed last
	unheard time.Duration // last, when the monitors were last asked: later violations are not known yet
	ask     time.Time     // when they may be asked again
	rest    int           // after asking, the judge does not ask for rest times as long as asking took
	most    int           // of operations that are judged
	found   []Violation   // and not yet told
	quit    string
}

const (
	// never is before all times.
	never time.Duration = -1 << 63
	// block is how many operations are observed before the monitors may be asked.
	block = 512
	// mostRemembered bounds the memory of monitors that remember each order, task or number, in
	// operations: at most some tens of bytes each.
	mostRemembered = 4_000_000
)

func newJudge(h history.Header) *judge {
	j := &judge{running: checker.NewRunning(h), last: never, unheard: never, rest: 2 * pauses, most: math.MaxInt}
	if h.Has(variant.Queue) || h.Has(variant.Dispatch) || h.Has(variant.Sale) || h.Has(variant.IDs) {
		j.most = mostRemembered
	}
	return j
}

// take holds new operations back.
func (j *judge) take(ops []history.Op) {
	j.taken += int64(len(ops))
	j.held = append(j.held, ops...)
}

// advance judges the operations up to the watermark, once all that it covers have been taken. It
// reports whether it did.
func (j *judge) advance(w history.Watermark) bool {
	if j.quit != "" || j.taken < w.Ops || w == (history.Watermark{}) {
		return false
	}
	history.SortByCompletion(j.held)
	n := sort.Search(len(j.held), func(i int) bool { return j.held[i].Return >= w.Returned })
	for i := range n {
		if !j.observe(&j.held[i]) {
			return false
		}
	}
	j.judged = max(j.judged, w.Returned)
	j.held = append(j.held[:0], j.held[n:]...)
	low := w.Called
	for i := range j.held {
		low = min(low, j.held[i].Call)
	}
	j.running.Advance(low)
	j.asks()
	if j.count > j.most {
		j.giveUp(fmt.Sprintf("more than %d operations are judged at the end only, because each order, task and number is remembered", j.most))
	}
	return true
}

// observe judges the next operation in completion order. Places in a line and faults are
// recorded after they happened: a place is looked up by the acquisition that it belongs to
// only, which comes later, and no promise that is judged here depends on faults.
func (j *judge) observe(op *history.Op) bool {
	if op.Return < j.judged && op.Kind != history.Join && op.Kind != history.Fault {
		j.giveUp("an operation was recorded too late to be judged in order")
		return false
	}
	j.running.Observe(op)
	j.last = max(j.last, op.Return)
	if j.count++; j.count%block == 0 {
		j.asks()
	}
	return true
}

// asks collects new violations from the monitors. The longer this takes, the less often it is done.
func (j *judge) asks() {
	began := time.Now()
	if began.Before(j.ask) {
		return
	}
	for _, v := range j.running.Broken() {
		j.found = append(j.found, Violation{Verdict: v, Within: j.when(v)})
	}
	j.unheard = j.last
	j.ask = time.Now().Add(time.Duration(j.rest) * time.Since(began))
}

// when returns the time by which a promise was broken: the latest return among its witness. If the monitors had been
// asked after that, a later operation revealed it, and when returns the time of the last operation.
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
	j.held, j.running = nil, nil
}
