package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"oversell/checker"
	"oversell/database"
	"oversell/history"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/watch"
)

// showing is how a command shows its runs while they go on: on stderr and, with --metrics, to Prometheus.
type showing struct{ metrics string }

func (s *showing) bind(f *pflag.FlagSet) {
	f.StringVar(&s.metrics, "metrics", "", "serve Prometheus metrics at /metrics on this address while the program runs: :port, for this machine only, or host:port, which other machines need and which takes --allow-remote")
}

// open starts the display. The caller closes it, also after an error.
func (s *showing) open(cmd *cobra.Command, allowRemote bool) (*progress, error) {
	p := newProgress(cmd.ErrOrStderr())
	if s.metrics == "" {
		return p, nil
	}
	m, err := serveMetrics(cmd.Context(), s.metrics, allowRemote)
	if err != nil {
		return nil, err
	}
	p.metrics = m
	tellf(p.w, "metrics at http://%s/metrics\n", m.addr)
	return p, nil
}

// progress shows how a campaign goes on. On a terminal the last lines show the current run; elsewhere a line
// appears now and then. In both cases a violation and the end of a run get a line of their own. It is a
// campaign.Watcher; Close ends it.
type progress struct {
	w        io.Writer
	terminal bool
	metrics  *metrics // nil without --metrics
	// stopping stops each run at its first violation.
	stopping bool
	// brief prints no line for a finished run: commands that combine many runs into one result print their own.
	brief bool

	searched time.Duration // when the last line about the current search was due, since its start

	mu     sync.Mutex // guards the output during a run, and the next four fields
	view   *view      // nil unless terminal
	colour bool
	course *course  // nil for a single run
	lines  []string // of the view, about the current run or search
	ended  func()   // stops showing the course

	// Of the current run; nil and zero between runs.
	run     *watch.Run
	shown   about
	started time.Time
	stop    chan struct{}
	stopped chan struct{}
	told    plain
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, terminal: draws(w), colour: isTerminal(w)}
	if p.terminal {
		p.view = &view{w: w, size: sizeOf(w.(*os.File))}
	}
	return p
}

// isTerminal reports whether w is a terminal that may be coloured.
func isTerminal(w io.Writer) bool { return draws(w) && os.Getenv("NO_COLOR") == "" }

// draws reports whether w is a terminal whose lines can be redrawn.
func draws(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Target reports which target was chosen, and why.
func (p *progress) Target(t *server.Target) {
	p.say(t.Why)
	if t.Caveat != "" {
		p.say("note: " + t.Caveat)
	}
	p.notes(t.Notes)
}

func (p *progress) notes(notes []string) {
	for _, note := range notes {
		p.say("note: " + note)
	}
}

// Database reports which database was chosen.
func (p *progress) Database(db *database.DB) {
	p.say(db.Why)
	p.notes(db.Notes)
}

// longRun is the duration from which a run is announced as long.
const longRun = 10 * time.Second

// willTake describes how long a run will take, and that it is cut off if that is too long.
func willTake(takes, capped time.Duration) string {
	s := fmt.Sprintf("will take about %s by its settings", span(takes))
	if capped > 0 && takes > capped {
		s += fmt.Sprintf(", and is cut off after %s, undecided: use --duration to let it end", capped)
	}
	return s
}

// refresh is the interval at which the view and the metrics are updated.
const refresh = 150 * time.Millisecond

// Start begins to show a run.
func (p *progress) Start(i, n int, c scenarios.Config, live *scenarios.Live) {
	p.end() // in case the last run was not judged
	p.started, p.shown, p.told = time.Now(), about{i, n, c}, plain{}
	if takes := c.Takes(); takes >= longRun && !p.brief {
		p.say(p.shown.number() + p.shown.title() + ": " + willTake(takes, c.Capped()))
	}
	if p.brief && !p.terminal && p.metrics == nil {
		return // nothing displays it
	}
	o := watch.Options{Found: p.broke, Stop: p.stopping}
	if only := atEnd(c.Promises()); p.stopping && only != "" {
		p.say(p.shown.number() + "judged at the end only: " + only)
	}
	if p.metrics != nil {
		p.metrics.start(p.shown)
		o.Took = p.metrics.took
	}
	p.run = watch.Start(live, o)
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	run := p.run
	go keepShowing(p.stop, p.stopped, func(time.Time) { p.show(run.Figures()) })
}

// atEnd names the promises that are judged only at the end of a run.
func atEnd(promises []history.Promise) string {
	var names []string
	for _, p := range promises {
		if checker.AtEnd(p.Of, p.Property) {
			names = append(names, fmt.Sprintf("%s of the %s", p.Property, p.Of))
		}
	}
	return english.WordSeries(names, "and")
}

// keepShowing calls show every refresh until stop is closed, and then closes stopped.
func keepShowing(stop, stopped chan struct{}, show func(now time.Time)) {
	defer close(stopped)
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			show(now)
		}
	}
}

// show displays figures.
func (p *progress) show(f watch.Figures) {
	if p.metrics != nil {
		p.metrics.show(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.brief && p.view == nil {
		return
	}
	if p.view == nil {
		for _, line := range p.told.lines(p.shown, f) {
			tellf(p.w, "%s\n", line)
			if p.course != nil {
				p.course.said = time.Now()
			}
		}
		return
	}
	p.lines = p.style().lines(p.shown, printable.Of(f))
	p.draw()
}

// style returns the current style of the view.
func (p *progress) style() style {
	width, _ := p.view.size()
	return style{width - 1, glyphsOf(os.Getenv), p.colour}
}

// draw draws the view; the caller holds the lock.
func (p *progress) draw() {
	lines := p.lines
	if p.course != nil {
		lines = append([]string{p.style().course(p.course, time.Now())}, lines...)
	}
	p.view.draw(lines)
}

// begin announces the amount of work and its expected duration, if there is more than one item, and
// from then on shows progress.
func (p *progress) begin(c *course) {
	c.began = time.Now()
	if c.n > 1 {
		p.say(c.announced())
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	p.course = c
	p.ended = sync.OnceFunc(func() { close(stop); <-stopped })
	p.mu.Unlock()
	go keepShowing(stop, stopped, p.onward)
}

// onward draws the view or, where there is none, prints a line about the course when one is due.
func (p *progress) onward(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.view != nil:
		p.draw()
	case p.course.due(now):
		p.course.said = now
		tellf(p.w, "%s\n", p.course.words(now))
	}
}

// did counts finished work, and names the current item if that says more.
func (p *progress) did(n int, label string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.course != nil {
		p.course.done += n
		p.course.label = label
	}
}

// broke reports a violation as soon as it is found.
func (p *progress) broke(v watch.Violation) {
	if p.metrics != nil {
		p.metrics.found(v)
	}
	if !p.brief {
		p.say(p.shown.broken(v))
	}
}

// say prints a line above the view. It may be called during a run.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.course != nil {
		p.course.said = time.Now()
	}
	if p.view == nil {
		tellf(p.w, "%s\n", text)
		return
	}
	p.view.above(text)
}

// Done reports the end of a run.
func (p *progress) Done(i, n int, r reports.Run) {
	broken := p.end()
	if p.metrics != nil {
		p.metrics.done(r)
	}
	if p.brief {
		return
	}
	for _, v := range unconfirmed(broken, r) {
		p.say(p.shown.number() + fmt.Sprintf("withdrawn: the whole history does not confirm that %s of the %s was broken", v.Property, v.Of))
	}
	p.did(1, "")
	p.say(fmt.Sprintf("%2d/%d %s: %s (%.1f s)", i+1, n, r.Title(), r.Summary(), time.Since(p.started).Seconds()))
}

// end stops showing the current run, if there is one. It returns the violations that were reported.
func (p *progress) end() []watch.Violation {
	if p.run == nil {
		return nil
	}
	p.run.Stop() // counts the rest of the history
	close(p.stop)
	<-p.stopped
	f := p.run.Figures()
	p.run = nil
	if p.metrics != nil {
		p.metrics.show(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	return f.Broken
}

// unconfirmed returns the violations that were reported but are not in the verdict. There should be none; if there
// are, they are withdrawn.
func unconfirmed(broken []watch.Violation, r reports.Run) (vs []watch.Violation) {
	confirmed := map[history.Promise]bool{}
	for _, p := range r.Properties {
		confirmed[history.Promise{Of: p.Of, Property: p.Name}] = p.Result == reports.Broken
	}
	for _, v := range broken {
		if !confirmed[history.Promise{Of: v.Of, Property: v.Property}] {
			vs = append(vs, v)
		}
	}
	return vs
}

// forget removes the current run or search from the view; the caller holds the lock.
func (p *progress) forget() {
	p.lines = nil
	switch {
	case p.view == nil:
	case p.course != nil:
		p.draw()
	default:
		p.view.clear()
	}
}

// Close ends the display, also of an unfinished run.
func (p *progress) Close() {
	p.end()
	if p.ended != nil {
		p.ended()
		p.mu.Lock()
		p.course = nil
		p.forget()
		p.mu.Unlock()
	}
	if p.metrics != nil {
		p.metrics.close()
	}
}

// searching shows the progress of a search: on a terminal in one line that is redrawn, elsewhere in a line now and
// then. The search ends after limit; 0: never.
func (p *progress) searching(e reports.Effort, limit time.Duration) {
	took := reports.FromMS(e.ElapsedMS)
	line := fmt.Sprintf("%s states, %d steps deep, %s transitions a second; about %s states waiting", reports.Thousands(e.States), e.Depth,
		reports.Thousands(int64(float64(e.Transitions)/max(took.Seconds(), 0.001))), reports.Thousands(e.Waiting))
	if e.Random != nil { // the states are not counted any more
		line = fmt.Sprintf("%s random schedules so far", reports.Thousands(e.Random.Schedules))
	}
	if limit > 0 {
		line += fmt.Sprintf("; ends in at most %s", span(max(limit-took, 0).Round(time.Second)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.view != nil:
		p.lines = []string{line}
		p.draw()
	case took-p.searched >= searchLine:
		p.searched = took
		tellf(p.w, "%s\n", line)
	}
}

// searchLine is the interval between lines about a search when the output is not a terminal.
const searchLine = 5 * time.Second

// found removes the line of a finished search from the view.
func (p *progress) found() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.searched = 0
	p.forget()
}
