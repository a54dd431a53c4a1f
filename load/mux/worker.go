package mux

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"

	"oversell/internal/rediscmd"
)

// worker runs many clients, one at a time. For each server it has a lane for clients that hold a lock and one for
// all others. The fields from step on are atomic or guarded by mu; the others belong to whoever runs the worker: its
// loop, or the coroutine that the loop has resumed.
type worker struct {
	m      *Mux
	number int
	ctx    context.Context

	fronts []redis.UniversalClient // given to clients, with the hook
	apart  []redis.UniversalClient // the same connections without it
	lanes  []*lane                 // of server i: 2*i, and 2*i+1 for holders

	current *coroutine
	all     []*coroutine     // not ended
	ready   fifo[*coroutine] // resumed at once
	due     fifo[*coroutine] // pause has ended: resumed when a batch has room
	wheel   wheel
	now     time.Duration // since the Mux was created; last reading
	timeout time.Duration // of a reply; not positive: none
	rand    *rand.Rand

	asked     int // requests queued in lanes
	sent      int64
	delivered []*request              // buffer for the batch being delivered
	widths    *hdrhistogram.Histogram // of commands, from call to return, in ns
	sharable  map[string]bool         // by command name

	step    atomic.Uint64 // odd while a coroutine runs
	counted atomic.Int64  // commands sent
	over    atomic.Bool   // the loop has ended

	mu      sync.Mutex
	letters []mail
	arrived atomic.Bool // there is mail
	signal  chan struct{}
}

// mail is an event from outside of the worker.
type mail struct {
	done *pipe  // its batch has ended; may be nil
	wake ticket // of a coroutine to resume
	why  why
}

// post delivers an event to the worker. Any goroutine may call it.
func (w *worker) post(l mail) {
	w.mu.Lock()
	w.letters = append(w.letters, l)
	first := !w.arrived.Swap(true)
	w.mu.Unlock()
	if first {
		select {
		case w.signal <- struct{}{}:
		default:
		}
	}
}

// clock reads the time.
func (w *worker) clock() time.Duration {
	w.now = time.Since(w.m.epoch)
	return w.now
}

// loop runs the worker's coroutines until all have ended.
func (w *worker) loop() {
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	var letters []mail
	for len(w.all) > 0 && !w.m.dead.Load() {
		w.clock()
		w.counted.Store(w.sent)
		letters = w.receive(letters)
		w.wheel.advance(w.now, w.fire)
		for range batch {
			co, any := w.ready.pop()
			if !any {
				break
			}
			w.resume(co)
		}
		for _, l := range w.lanes {
			l.send()
		}
		if len(w.all) > 0 && w.ready.len() == 0 && !w.resumable() {
			w.idle(idle)
		}
	}
	w.counted.Store(w.sent)
	w.over.Store(true)
}

// crowded reports whether enough requests are queued to go on without clients whose pause has ended.
func (w *worker) crowded() bool { return w.asked >= backlog }

// resumable reports whether a client whose pause has ended can be resumed.
func (w *worker) resumable() bool {
	if w.due.len() == 0 || w.crowded() {
		return false
	}
	for _, l := range w.lanes {
		if l.poll && l.sends() {
			return true
		}
	}
	return false
}

// idle waits for an event.
func (w *worker) idle(t *time.Timer) {
	if at, any := w.wheel.next(); any {
		left := at - w.now
		if left <= 0 {
			return
		}
		t.Reset(left)
		select {
		case <-w.signal:
		case <-t.C:
		}
		return
	}
	<-w.signal
}

// receive handles events from outside.
func (w *worker) receive(spare []mail) []mail {
	if !w.arrived.Load() {
		return spare
	}
	w.mu.Lock()
	letters := w.letters
	w.letters = spare[:0]
	w.arrived.Store(false)
	w.mu.Unlock()
	for i := range letters {
		l := &letters[i]
		switch {
		case l.done != nil:
			w.deliver(l.done)
		case l.why == stopped:
			w.stop()
		default:
			w.wake(l.wake, l.why)
		}
	}
	clear(letters)
	return letters
}

// deliver delivers the replies of a batch.
func (w *worker) deliver(p *pipe) {
	p.busy = false
	p.lane.busy--
	reqs := append(w.delivered[:0], p.reqs...)
	if p.lane.fills() {
		p.lane.send() // keep the server busy while replies are handled
	}
	for i, r := range reqs {
		reqs[i] = nil
		if !r.abandoned {
			w.answer(r.co, r.sent, r)
		}
	}
	w.delivered = reqs
}

// answer resumes a coroutine with its reply, after the virtual round trip. A reply to a request that would come after the
// client's timeout is lost. r is nil if the command went to a connection of its own.
func (w *worker) answer(co *coroutine, number uint32, r *request) {
	if !co.parked || co.ticket != number {
		return
	}
	if w.m.o.RTT <= 0 {
		co.goOn(answered)
		return
	}
	trip := w.roundTrip()
	if w.timeout > 0 {
		left := w.timeout
		if r != nil {
			left = max(r.call+w.timeout-w.now, 0)
		}
		if trip > left && r != nil {
			r.lose()
		}
		trip = min(trip, left)
	}
	co.why = answered
	w.wheel.add(&co.timer, w.now+trip)
}

// roundTrip returns a virtual round-trip time: exponentially distributed, at most 20 times the mean.
func (w *worker) roundTrip() time.Duration {
	return time.Duration(min(w.rand.ExpFloat64(), 20) * float64(w.m.o.RTT))
}

// wake resumes a parked coroutine for an event, unless the ticket is of an earlier park.
func (w *worker) wake(t ticket, why why) {
	if t.co == nil || !t.co.parked || t.co.ticket != t.number {
		return
	}
	if why == answered { // on a dedicated connection
		w.answer(t.co, t.number, nil)
		return
	}
	t.co.goOn(why)
}

// goOn resumes a coroutine at once.
func (co *coroutine) goOn(why why) {
	co.w.wheel.remove(&co.timer)
	co.parked, co.why = false, why
	co.w.ready.push(co)
}

// fire handles a timer that is due.
func (w *worker) fire(t *timer) {
	co := t.co
	if !co.parked {
		return
	}
	co.parked = false
	if co.fresh && co.why != answered {
		co.why = elapsed
		w.due.push(co)
		return
	}
	if co.why != answered {
		co.why = elapsed
	}
	w.ready.push(co)
}

// stop resumes all coroutines whose wait ends with the run.
func (w *worker) stop() {
	for _, co := range w.all {
		if co.parked && co.mayStop {
			co.goOn(stopped)
		}
	}
}

// resume runs a coroutine until it stops.
func (w *worker) resume(co *coroutine) {
	w.current = co
	w.step.Add(1)
	_, goesOn := co.next()
	w.step.Add(1)
	w.current = nil
	if goesOn {
		return
	}
	co.ended = true
	w.forget(co)
	for _, t := range co.joiners {
		w.wake(t, told)
	}
	if g := co.group; g != nil {
		g.left(w)
	}
}

// forget drops a coroutine that has ended.
func (w *worker) forget(co *coroutine) {
	n := len(w.all) - 1
	last := w.all[n]
	w.all[co.index], last.index = last, co.index
	w.all[n] = nil
	w.all = w.all[:n]
}

// shares reports whether a command can use a lane: it replies at once, and does not change the state of its
// connection.
func (w *worker) shares(cmd redis.Cmder) bool {
	args := cmd.Args()
	if len(args) == 0 {
		return true
	}
	name, _ := args[0].(string)
	shares, known := w.sharable[name]
	if !known {
		shares = !rediscmd.Is(name, rediscmd.Blocks|rediscmd.Connection|rediscmd.Watches|rediscmd.Unwatches|rediscmd.Opens)
		w.sharable[name] = shares
	}
	return shares || waitsNot(name, args)
}

// waitsNot reports whether a command that can block does not block with these arguments.
func waitsNot(name string, args []any) bool {
	switch name {
	case "xread", "xreadgroup":
	default:
		return false
	}
	for _, arg := range args {
		if word, _ := arg.(string); word == "block" {
			return false
		}
	}
	return true
}
