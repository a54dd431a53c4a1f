// Package campaign makes many runs into one result: it finds each run the
// target it needs, runs it, judges the history it left, and files everything
// that is needed to judge it again.
//
// A run is always judged from its file, never from memory, so that judging it
// later cannot give another answer.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"oversell/campaign/judging"
	"oversell/database"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/reports/page"
	"oversell/scenarios"
	"oversell/server"
	"oversell/system"
	"oversell/variant"
)

// Plan is what to run.
type Plan struct {
	Runs []scenarios.Config
	// Target is where; an empty topology gives each run the one that it needs.
	Target server.Spec
	// SQL is where variants keep what they keep in a database; it is opened only
	// when one needs it.
	SQL database.Spec
	// Dir is where the run directories go; it is made if need be.
	Dir string
	// Skipped says which locks a sweep leaves out, and why.
	Skipped []string
	// Notes are about flags whose values matter only in part.
	Notes []string
	// JSONL also writes each history as JSON lines.
	JSONL bool

	Outside *system.System // that takes part, if any
}

// Watcher is told how a campaign goes on. Its methods are called in turn, never
// at once.
type Watcher interface {
	// Target is called when a server has been opened for the first time.
	Target(t *server.Target)
	// Database is called when a database has been opened.
	Database(db *database.DB)
	// Start is called before run i of n; live may be read until Done.
	Start(i, n int, c scenarios.Config, live *scenarios.Live)
	// Done is called when run i has been judged.
	Done(i, n int, r reports.Run)
}

// DefaultSale is the sale that runs under a lock when nobody says otherwise.
func DefaultSale(l lockimpl.Variant) string {
	if l.Fences {
		return "fenced"
	}
	return "plain"
}

// DefaultIDs is the number generator that runs when nobody says otherwise: the
// one that needs the lock.
const DefaultIDs = "get-set"

// DefaultDispatch is the dispatch that runs under a lock when nobody says otherwise.
func DefaultDispatch(l lockimpl.Variant) string {
	if l.Fences {
		return "dispatch-fenced"
	}
	return "dispatch-locked"
}

// Run runs the plan in order. When ctx ends, the run under way is closed and
// judged, and the rest is left out. An error means that the environment
// failed, see Unstopped; the document then holds what was judged until then.
func Run(ctx context.Context, p Plan, w Watcher) (reports.Document, error) {
	d := reports.Document{Schema: reports.Schema, Runs: []reports.Run{}}
	if err := p.fresh(); err != nil {
		return d, err
	}
	if err := os.MkdirAll(p.Dir, 0o777); err != nil {
		return d, fmt.Errorf("make the directory for the histories: %w", err)
	}
	servers := NewServers(p, w)
	defer servers.Close()
	var pages []page.OverviewRun
	for i, c := range p.Runs {
		if ctx.Err() != nil {
			break
		}
		r, err := runOne(ctx, p, c, i, servers)
		if r != nil {
			d.Runs = append(d.Runs, *r)
			name := runName(i, c)
			pages = append(pages, page.OverviewRun{Run: *r, Name: name, Page: path.Join(name, pageFile)})
			w.Done(i, len(p.Runs), *r)
		}
		if err := Unstopped(ctx, err); err != nil {
			return d, errors.Join(err, p.overview(pages))
		}
	}
	return d, p.overview(pages)
}

// overview writes the page of several runs.
func (p Plan) overview(runs []page.OverviewRun) error {
	if len(runs) == 0 || len(p.Runs) == 1 {
		return nil
	}
	return WriteFile(p.Dir, pageFile, func(w io.Writer) error {
		return page.Overview(w, page.OverviewInput{Runs: runs})
	})
}

// Page is where the page of the plan's runs is, once they are made.
func (p Plan) Page() string {
	if len(p.Runs) == 1 {
		return filepath.Join(p.Dir, runName(0, p.Runs[0]), pageFile)
	}
	return filepath.Join(p.Dir, pageFile)
}

// Takes is about how long the runs take, by their settings and what each takes besides: to
// start its server, to connect and to judge.
func (p Plan) Takes() (all time.Duration) {
	const besides = 800 * time.Millisecond
	for _, c := range p.Runs {
		takes := c.Takes()
		if capped := c.Capped(); capped > 0 {
			takes = min(takes, capped)
		}
		all += takes + besides
	}
	return all
}

// fresh refuses a directory in which a run would overwrite an earlier one.
func (p Plan) fresh() error {
	if err := Directory(p.Dir); err != nil {
		return err
	}
	for i, c := range p.Runs {
		path := filepath.Join(p.Dir, runName(i, c), HistoryFile)
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%w: %s holds an earlier run: choose another --out", ErrUsed, path)
		}
	}
	if err := ours(p.Page()); err != nil {
		return fmt.Errorf("%w: %w", ErrUsed, err)
	}
	return nil
}

func runOne(ctx context.Context, p Plan, c scenarios.Config, i int, s *Servers) (*reports.Run, error) {
	j, err := s.Run(ctx, Turn{Dir: filepath.Join(p.Dir, runName(i, c)), Config: c, Number: i, Of: len(p.Runs)})
	if j == nil {
		return nil, err
	}
	return &j.Run, err
}

// Turn is one of several runs: Number, from 0, of Of.
type Turn struct {
	Dir        string // its own
	Config     scenarios.Config
	Number, Of int
}

// Run makes a run and judges it; the watcher is told when it starts. What was judged is not nil,
// whatever the error, if anything was.
func (s *Servers) Run(ctx context.Context, t Turn) (*judging.Judged, error) {
	dir, c := t.Dir, t.Config
	servers, err := s.of(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.retire(c)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	if serves(s.plan.Outside, c) {
		c.Outside = s.plan.Outside
	}
	live := scenarios.Live{History: filepath.Join(dir, HistoryFile)}
	s.watcher.Start(t.Number, t.Of, c, &live)
	runErr := scenarios.Run(ctx, c, servers, live.History, &live)
	if live.Stopped() != "" {
		runErr = unstopped(runErr)
	}
	if runErr != nil {
		runErr = fmt.Errorf("run %s: %w", filepath.Base(dir), runErr)
		if info, err := os.Stat(live.History); err != nil || info.Size() == 0 {
			return nil, runErr // nothing was recorded
		}
	}
	j, err := file(dir, s.plan.JSONL)
	return j, errors.Join(runErr, err)
}

// runName is a run's directory: in order of running, and telling what ran.
func runName(i int, c scenarios.Config) string {
	name := fmt.Sprintf("%02d-%s", i+1, c.Scenario.Name)
	for _, s := range c.Subjects() {
		name += "-" + s.Name
	}
	return name
}

// Servers are those of several runs. Each topology is opened once, when the first run needs it. They are for
// one goroutine.
type Servers struct {
	plan    Plan
	watcher Watcher
	open    map[string]*server.Target
	db      *database.DB
	started bool // the plan's system has been started once
}

// NewServers are the servers that the plan's runs are made on; w is told of those that are opened. Close them in
// the end.
func NewServers(p Plan, w Watcher) *Servers {
	return &Servers{plan: p, watcher: w, open: map[string]*server.Target{}}
}

func (s *Servers) of(ctx context.Context, c scenarios.Config) (scenarios.Servers, error) {
	t, err := s.redis(ctx, c)
	if err != nil || !c.NeedsSQL() {
		return scenarios.Servers{Redis: t}, err
	}
	if s.db == nil {
		if s.db, err = database.Open(ctx, s.plan.SQL); err != nil {
			return scenarios.Servers{}, err
		}
		s.watcher.Database(s.db)
	}
	return scenarios.Servers{Redis: t, SQL: s.db}, nil
}

func (s *Servers) redis(ctx context.Context, c scenarios.Config) (*server.Target, error) {
	spec := SpecFor(s.plan.Target, c.Lock)
	if t := s.open[spec.Topology]; t != nil {
		return t, nil
	}
	t, err := server.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	s.open[spec.Topology] = t
	s.watcher.Target(t)
	if s.plan.Outside == nil || s.started {
		return t, nil
	}
	s.started = true
	return t, lend(ctx, t, func(env func() variant.Env) error { return s.plan.Outside.Start(ctx, env()) })
}

// retire closes what a run has broken: it is of no use to another.
func (s *Servers) retire(c scenarios.Config) {
	spec := SpecFor(s.plan.Target, c.Lock)
	if t := s.open[spec.Topology]; t != nil && c.BreaksServers() && !spec.IsAddress() {
		t.Close()
		delete(s.open, spec.Topology)
	}
}

// Close closes all that are open.
func (s *Servers) Close() {
	for _, t := range s.open {
		t.Close()
	}
	if s.db != nil {
		s.db.Close()
	}
}
