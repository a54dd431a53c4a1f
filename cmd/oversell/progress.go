package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"oversell/database"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/target"
	"oversell/variant"
)

// progress tells on stderr how a campaign goes on: a bar on a terminal, and a
// line per finished run otherwise.
type progress struct {
	w        io.Writer
	terminal bool
	started  time.Time
	stop     chan struct{}
	stopped  chan struct{}
}

func newProgress(w io.Writer) *progress { return &progress{w: w, terminal: isTerminal(w)} }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""
}

// Target tells what was chosen, and why.
func (p *progress) Target(t *target.Target) {
	fmt.Fprintln(p.w, t.Why)
	if t.Caveat != "" {
		fmt.Fprintln(p.w, "note: "+t.Caveat)
	}
}

// Database tells which one was chosen.
func (p *progress) Database(db *database.DB) { fmt.Fprintln(p.w, db.Why) }

// refresh is how often the bar moves.
const refresh = 100 * time.Millisecond

// Start begins a bar.
func (p *progress) Start(i, n int, c scenarios.Config, live *scenarios.Live) {
	p.started = time.Now()
	if !p.terminal {
		return
	}
	total, now := int64(-1), live.Ops.Load
	if c.Scenario.Uses(variant.Sale) && c.Stock > 0 {
		total, now = c.Stock, live.Sold.Load
	}
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription(fmt.Sprintf("%2d/%d %-20s", i+1, n, c.Lock.Name)),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish(),
	)
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.stopped)
		tick := time.NewTicker(refresh)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				bar.Clear()
				return
			case <-tick.C:
				sold := now()
				if total > 0 {
					sold = min(sold, total-1) // the bar must not end before the run does
				}
				bar.Set64(sold)
			}
		}
	}()
}

// Done ends the bar, or writes the line.
func (p *progress) Done(i, n int, r reports.Run) {
	if p.stop != nil {
		close(p.stop)
		<-p.stopped
		p.stop = nil
	}
	if !p.terminal {
		fmt.Fprintf(p.w, "%2d/%d %s: %s (%.1f s)\n", i+1, n, r.Title(), r.Summary(), time.Since(p.started).Seconds())
	}
}

// searching tells how far a search is, on a terminal.
func (p *progress) searching(e reports.Effort) {
	if p.terminal {
		fmt.Fprintf(p.w, "\r%d states, %d transitions, %d steps deep ", e.States, e.Transitions, e.Depth)
	}
}

// found clears the line of a search that has ended.
func (p *progress) found() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
