// Package watch follows a run while it goes on: how far it is, how fast, what the faults
// do, and which promises are broken already.
//
// It has two sources: counters ([scenarios.Live]), and the history file, which it reads
// while it grows. So watching costs the clients only the processor time of reading,
// which is bounded; see [Run].
//
// Its results are provisional: the verdict on a run comes from its whole history, when
// it has ended. A promise that is reported as broken should be so in that verdict, too.
package watch

import (
	"fmt"
	"io"
	"sync"
	"time"

	"oversell/checker"
	"oversell/history"
	"oversell/scenarios"
)

// Options say what a Run reports. The zero value reports nothing. The functions are called
// from one goroutine, which waits until they return.
type Options struct {
	// Took is called with all operations of the history, once each, in no
	// particular order. Took must not keep the slice.
	Took func(ops []history.Op)
	// Found is called once for each promise that is found broken.
	Found func(Violation)
	// Stop stops the run at the first promise that is found broken. Then judging keeps up
	// with the load, whatever that costs.
	Stop bool
}

// Violation is a promise that was found broken while the run went on.
type Violation struct {
	checker.Verdict
	// Within is a time, since the start of the run, by which the promise was broken. Usually
	// it was broken in the 512 operations before that time.
	Within time.Duration
}

// sentence says which promise is broken, by when and how.
func (v Violation) sentence() string {
	return fmt.Sprintf("%s of the %s was broken by %s: %s", v.Property, v.Of, history.FormatTime(v.Within), v.Why)
}

// Run is a run that is being watched. Its methods are safe for concurrent use.
//
// A Run reads the history every 100 ms. A read that took long is followed by a longer pause,
// so that reading takes at most a tenth of one processor. If the Run falls behind the load
// for that reason, by 8 MiB of history, it stops judging and only counts. With Options.Stop
// there is no such bound.
type Run struct {
	live *scenarios.Live
	o    Options
	stop chan struct{}
	done chan struct{}
	once sync.Once

	mu    sync.Mutex // guards the rest
	begun time.Time  // when the header came; zero: not yet
	rate  rate
	main  main
	found []Violation
	quit  string
}

const (
	lookEvery = 100 * time.Millisecond
	// A look is followed by a pause of that many times its own length.
	pauses = 9
	// pausesToStop is the same for asking the monitors, where the run is to be stopped.
	pausesToStop = 3
	// farBehind is how many bytes of history may wait to be read before judging ends:
	// some 400,000 operations.
	farBehind = 8 << 20
)

// Start begins to watch a run, which need not have begun. Stop ends it.
func Start(live *scenarios.Live, o Options) *Run {
	r := &Run{live: live, o: o, stop: make(chan struct{}), done: make(chan struct{}), main: newMain(&history.Header{})}
	go r.follow()
	return r
}

// Stop reads the rest of the file, and returns when that is done. It looks for no more violations: at the end the whole
// history is judged.
func (r *Run) Stop() {
	r.once.Do(func() { close(r.stop) })
	<-r.done
}

// follow looks at the file until it is told to stop.
func (r *Run) follow() {
	defer close(r.done)
	f := history.NewFollower(r.live.History)
	defer f.Close()
	var j *judge
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-r.stop:
			r.drain(f)
			return
		case <-next.C:
		}
		began := time.Now()
		j = r.look(f, j)
		took := time.Since(began)
		pause := pauses * took
		if r.o.Stop {
			pause = 0
		}
		if f.Behind() == 0 {
			pause = max(pause, lookEvery)
		}
		next.Reset(pause)
	}
}

// look takes what is new. It returns the judge that goes on, which is nil as long as
// there is nothing to judge.
func (r *Run) look(f *history.Follower, j *judge) *judge {
	water := r.live.Water() // read before polling: it covers only what the file holds by now
	ops, err := f.Poll()
	r.take(f, ops)
	behind := f.Behind()
	switch {
	case err == io.EOF: // the history is complete: the caller judges it
		return nil
	case err != nil:
		r.giveUp(err.Error())
		return nil
	case j == nil && f.Header() != nil && !r.over():
		j = newJudge(*f.Header())
		if r.o.Stop {
			j.rest = pausesToStop
		}
	}
	if j == nil {
		return nil
	}
	if j.water == (history.Watermark{}) {
		j.water = water
	}
	if j.take(ops); j.advance(j.water) {
		j.water = history.Watermark{}
	}
	if behind > farBehind && !r.o.Stop {
		j.giveUp("the load is faster than it can be judged meanwhile")
	}
	for _, v := range j.broken() {
		r.mu.Lock()
		r.found = append(r.found, v)
		r.mu.Unlock()
		if r.o.Found != nil {
			r.o.Found(v)
		}
		if r.o.Stop {
			r.live.Stop(v.sentence())
		}
	}
	if j.quit != "" {
		r.giveUp(j.quit)
		return nil
	}
	return j
}

// take counts operations.
func (r *Run) take(f *history.Follower, ops []history.Op) {
	if len(ops) > 0 && r.o.Took != nil {
		r.o.Took(ops)
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun.IsZero() && f.Header() != nil {
		r.begun, r.main = now, newMain(f.Header())
	}
	r.rate.sample(now, r.live.Ops.Load())
	r.main.at(now)
	for i := range ops {
		r.main.observe(&ops[i])
	}
}

// drain takes all that is left.
func (r *Run) drain(f *history.Follower) {
	for {
		ops, err := f.Poll()
		r.take(f, ops)
		if err != nil || f.Behind() == 0 {
			return
		}
	}
}

func (r *Run) giveUp(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quit = why
}

// over tells whether judging has ended.
func (r *Run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.quit != ""
}

// Figures are the numbers of a run at one moment.
type Figures struct {
	// Begun is false as long as clients are being connected; Elapsed is the time since
	// the load began.
	Begun   bool
	Elapsed time.Duration
	// Ops, Sold and Rounds are as in scenarios.Live.
	Ops, Sold, Rounds int64
	// Rate is operations per second over the last second; Rates are those of the last
	// half seconds, oldest first.
	Rate  float64
	Rates []float64
	// Main is the kind of operation that the run is about, and P50 and P99 its
	// latencies over the last five seconds; NoKind and 0: none ended.
	Main     history.Kind
	P50, P99 time.Duration
	// Faults are what has become of each fault.
	Faults []history.FaultCount
	// Broken are the promises found broken so far, in that order.
	Broken []Violation
	// Unjudged says why nothing more will be found broken before the end; empty:
	// something may.
	Unjudged string
}

// Figures are those of this moment.
func (r *Run) Figures() Figures {
	faults := r.live.Faults()
	r.mu.Lock()
	defer r.mu.Unlock()
	f := Figures{
		Ops: r.live.Ops.Load(), Sold: r.live.Sold.Load(), Rounds: r.live.Rounds.Load(),
		Rate: r.rate.now(), Rates: r.rate.cells(), Main: r.main.kind(), Faults: faults,
		Broken: r.found[:len(r.found):len(r.found)], Unjudged: r.quit,
	}
	if !r.begun.IsZero() {
		f.Begun, f.Elapsed = true, time.Since(r.begun)
	}
	f.P50, f.P99 = r.main.quantiles()
	return f
}
