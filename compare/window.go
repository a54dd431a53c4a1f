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

// window is the part of a run that is measured: it begins after the warm-up, when connections are made, scripts
// loaded and queues filled, and has a fixed length. The zero value is the whole run.
type window struct{ warmUp, lasts time.Duration }

// ends returns the end of the window since the load began.
func (w window) ends() time.Duration { return w.warmUp + w.lasts }

// half is enough for a single client.
func (w window) half() window { return window{w.warmUp / 2, w.lasts / 2} }

// endless is a stock that does not run out within a window.
const endless = 10_000_000

// timed returns options of a run that ends by time only.
func (w window) timed(x campaign.Options) campaign.Options {
	x.Duration, x.Ops, x.Stock = w.ends(), 0, endless
	return x
}

// window returns the part of each timed run that is measured; zero if whole runs are measured, because the user set
// their length.
func (o *Options) window() window {
	if o.Measure == 0 || o.Set("duration") || o.Set("ops") {
		return window{}
	}
	return window{o.Measure / warmUpPart, o.Measure}
}

// warmUpPart is the ratio of a measurement to its warm-up.
const warmUpPart = 4

// windowOf returns the window of a contender; zero if time cannot end its runs: a dispatch ends with the last of
// its initial tasks, and workers that sell from a queue lose their current task when they are stopped.
func (p *Plan) windowOf(who reports.Contender) window {
	if who.Dispatch != "" || who.Queue != "" && who.Sale != "" {
		return window{}
	}
	return p.window
}

// addTimed gives a cell a timed run. With faults there is none, because the faults determine the length of a run; a
// scenario with only a lock is timed anyway.
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

// measure returns the work and latencies within the window: requests that ended after the warm-up, granted or not,
// and requests that were still waiting at the end, with their wait so far.
func (w window) measure(h *history.History) (judging.Work, *reports.Latencies) {
	kind, _ := judging.WorkIn(h.Header.Has)
	work := judging.Work{Kind: kind, Requests: reports.NewLatencies(), Began: began(h), Within: w.lasts}
	from, to := work.Began+w.warmUp, work.Began+w.ends()
	all := reports.NewLatencies()
	requests := judging.NewRequests(kind)
	for o := range h.Each() { // in the order of completion
		op := *o
		if !ofAClient(o) {
			continue
		}
		finished := judging.Done(o, kind)
		if op.Return > from {
			requests.Took = work.Requests
			if judging.Measured(o) {
				all.Add(o)
			}
		}
		op.Reason = history.NoReason // operations that were stopped count, too
		requests.Add(&op)
		if finished && op.Return > from && op.Return <= to {
			work.Done++
		}
	}
	return work, all
}

// ofAClient reports whether a record is an operation of a client, also one that the end of the run stopped.
func ofAClient(op *history.Op) bool { return judging.Measured(op) || op.Reason == history.Stopped }

// began returns when the load began, since the start of the run.
func began(h *history.History) time.Duration {
	first := history.Forever
	for op := range h.Each() {
		if judging.Measured(op) {
			first = min(first, op.Call)
		}
	}
	if first == history.Forever {
		return 0
	}
	return first
}

// overhead is the duration of a run besides its load: start, judging and writing.
const overhead = 150 * time.Millisecond

// takes estimates the duration of a run before the first one.
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

// Expected is the expected duration of a comparison, by its settings alone.
type Expected struct {
	First time.Duration // of the first round
	// Rounds is the number of rounds, and Total their duration.
	Rounds int
	Total  time.Duration
}

// Expected estimates the duration of the comparison.
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

// Announcement describes the expected duration before the start.
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
