package compare

import (
	"context"
	"fmt"
	"time"

	"oversell/campaign"
	"oversell/campaign/judging"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
)

// window is the part of a run that is measured: it begins when the clients have warmed up,
// after connections were made, scripts loaded and queues formed, and lasts for a time. The zero
// value is all of a run.
type window struct{ warmUp, lasts time.Duration }

// ends is when it does, since the load began.
func (w window) ends() time.Duration { return w.warmUp + w.lasts }

// half is enough where nobody disturbs anybody.
func (w window) half() window { return window{w.warmUp / 2, w.lasts / 2} }

// endless is a stock that does not run out within a window.
const endless = 10_000_000

// timed are options of a run that the clock ends, and nothing else.
func (w window) timed(x campaign.Options) campaign.Options {
	x.Duration, x.Ops, x.Stock = w.ends(), 0, endless
	return x
}

// window is what is measured of each run for a time; zero if runs are measured as they are,
// because somebody said how long they are to be.
func (o *Options) window() window {
	if o.Measure == 0 || o.Set("duration") || o.Set("ops") {
		return window{}
	}
	return window{o.Measure / warmUpPart, o.Measure}
}

// warmUpPart is how many times as long as the warm-up a measurement is.
const warmUpPart = 4

// windowOf is what is measured of a contender, as far as the clock can end its runs: a dispatch ends
// with the last of the tasks that were there from the beginning, and workers who sell from a
// queue lose what they were just given if they are stopped.
func (p *Plan) windowOf(who reports.Contender) window {
	if who.Dispatch != "" || who.Queue != "" && who.Sale != "" {
		return window{}
	}
	return p.window
}

// addTimed gives a cell a run that is measured. There is none where faults are to fire, which
// say how long a run is; and the lock alone is run for a time as it is.
func (p *Plan) addTimed(ctx context.Context, f *configuration, x *cell) error {
	who := p.contenders[x.contender]
	w := p.windowOf(who)
	if w == (window{}) || len(x.config.Faults) > 0 {
		return nil
	}
	if x.config.LockAlone() {
		x.window = w
		return nil
	}
	s, err := subjectOf(ctx, w.timed(f.options), who)
	s.window = w
	x.timed = &s
	return err
}

// measure reads from a history what was done in the window, by how its clients fared: who
// ended what it asked for after the warm-up counts, in vain or not, and so does who still
// waited when the time was up, with the time that it had waited by then.
func (w window) measure(h *history.History) (judging.Work, *reports.Latencies) {
	kind, _ := judging.WorkIn(h.Header.Has)
	work := judging.Work{Kind: kind, Requests: reports.NewLatencies(), Began: began(h), Within: w.lasts}
	from, to := work.Began+w.warmUp, work.Began+w.ends()
	early, all := reports.NewLatencies(), reports.NewLatencies()
	requests := judging.Requests{Kind: kind, Asked: map[int32]time.Duration{}, Took: early}
	for o := range h.Each() { // in the order of their ends
		op := *o
		if !ofAClient(op) {
			continue
		}
		finished := judging.Done(op, kind)
		if op.Return > from {
			requests.Took = work.Requests
			if judging.Measured(op) {
				all.Add(op)
			}
		}
		op.Reason = history.NoReason // what was stopped counts as well
		requests.Add(op)
		if finished && op.Return > from && op.Return <= to {
			work.Done++
		}
	}
	return work, all
}

// ofAClient tells an operation of a client's from what was noted besides; what the end of the run
// stopped is one.
func ofAClient(op history.Op) bool { return judging.Measured(op) || op.Reason == history.Stopped }

// began is when the load did, since the start of the run.
func began(h *history.History) time.Duration {
	first := history.Forever
	for op := range h.Each() {
		if judging.Measured(*op) {
			first = min(first, op.Call)
		}
	}
	if first == history.Forever {
		return 0
	}
	return first
}

// overhead is how long a run takes besides its load: to start, to judge and to write.
const overhead = 150 * time.Millisecond

// takes estimates how long a run takes before there was one.
func (s subject) takes() time.Duration {
	takes := s.config.Takes()
	if s.window != (window{}) {
		takes = s.window.ends()
	}
	for _, f := range s.config.Faults {
		takes = max(takes, min(f.Amount, time.Minute))
	}
	return takes + overhead
}

// Expected is how long a comparison is expected to take, by its settings alone.
type Expected struct {
	First time.Duration // the first round
	// Rounds is how many there will be, and Total how long they take together.
	Rounds int
	Total  time.Duration
}

// Expected estimates how long the comparison will take.
func (p *Plan) Expected() (e Expected) {
	c := &comparing{Plan: p}
	e.First = c.likely(1)
	for n := 1; n == 1 || p.rounds == 0 || n <= p.rounds; n++ {
		takes := c.likely(n)
		if n > 1 && p.time > 0 && e.Total+takes > p.time {
			break
		}
		e.Rounds, e.Total = n, e.Total+takes
	}
	return e
}

// Announcement says before anything is run how long it will take.
func (p *Plan) Announcement() string {
	e := p.Expected()
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
	if d := e.Total; d >= 2*time.Minute {
		seconds = func(d time.Duration) string { return fmt.Sprintf("%.1f min", d.Minutes()) }
	}
	s := fmt.Sprintf("%s in %s: this takes about %s, for %s", phrase.Count(len(p.contenders), "contender"), phrase.Count(len(p.configurations), "configuration"), seconds(e.Total), phrase.Count(e.Rounds, "round"))
	if e.Rounds > 1 {
		s += fmt.Sprintf(" (the first %s)", seconds(e.First))
	}
	if p.time > 0 && e.Total <= p.time {
		s += fmt.Sprintf("; no round begins that would end after %v (--time)", p.time)
	}
	return s
}
