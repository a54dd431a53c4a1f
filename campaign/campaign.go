// Package campaign combines many runs into one result: for each run it opens the target, runs it, judges the
// history, and saves everything that is needed to judge it again.
//
// A run is always judged from its file, never from memory, so a later check gives the same verdict.
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
	// Target is where to run; with an empty topology each run gets the one it needs.
	Target server.Spec
	// SQL is the database of variants that keep data in one; it is opened only if one does.
	SQL database.Spec
	// Dir holds the run directories; it is created if it does not exist.
	Dir string
	// Skipped says which locks a sweep leaves out, and why.
	Skipped []string
	// Notes are about flags whose values take effect only in part.
	Notes []string
	// JSONL also writes each history as JSON lines.
	JSONL bool

	Outside *system.System // an external system under test; may be nil
}

// Watcher is notified of the progress of a campaign. Its methods are never called concurrently.
type Watcher interface {
	// Target is called whenever the servers of a topology are opened.
	Target(t *server.Target)
	// Database is called when a database is opened.
	Database(db *database.DB)
	// Start is called before run i of n; live may be read until Done.
	Start(i, n int, c scenarios.Config, live *scenarios.Live)
	// Done is called after run i has been judged.
	Done(i, n int, r reports.Run)
}

// defaultSale returns the sale that runs under a lock unless another is named.
func defaultSale(l lockimpl.Variant) string {
	if l.Fences {
		return "fenced"
	}
	return "plain"
}

// defaultIDs is the id generator that runs unless another is named: the one that needs the lock.
const defaultIDs = "get-set"

// defaultDispatch returns the dispatch that runs under a lock unless another is named.
func defaultDispatch(l lockimpl.Variant) string {
	if l.Fences {
		return "dispatch-fenced"
	}
	return "dispatch-locked"
}

// Run runs the plan in order. When ctx ends, the current run is stopped and judged, and the remaining runs are left
// out. An error is an environment error, see Unstopped; the document then holds the runs judged before it.
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

// overview writes the page about several runs.
func (p Plan) overview(runs []page.OverviewRun) error {
	if len(runs) == 0 || len(p.Runs) == 1 {
		return nil
	}
	return WriteFile(p.Dir, pageFile, func(w io.Writer) error {
		return page.Overview(w, page.OverviewInput{Runs: runs})
	})
}

// Page returns the path of the page that Run writes.
func (p Plan) Page() string {
	if len(p.Runs) == 1 {
		return filepath.Join(p.Dir, runName(0, p.Runs[0]), pageFile)
	}
	return filepath.Join(p.Dir, pageFile)
}

// Takes estimates the duration of the runs: by their settings, plus the time to start a server, to connect and to
// judge.
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

// fresh returns an error if a run would overwrite an earlier one.
func (p Plan) fresh() error {
	if err := CheckDirectory(p.Dir); err != nil {
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

// Turn identifies one of several runs: Number, from 0, of Of.
type Turn struct {
	Dir        string // the run's own directory
	Config     scenarios.Config
	Number, Of int
}

// Run makes a run and judges it; the watcher is notified at the start. If anything was judged, the result is not
// nil, also with an error.
func (s *Servers) Run(ctx context.Context, t Turn) (*judging.Result, error) {
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
	j, err := file(dir, s.plan.JSONL, c)
	return j, errors.Join(runErr, err)
}

// runName returns the name of a run's directory: its number and its variants.
func runName(i int, c scenarios.Config) string {
	name := fmt.Sprintf("%02d-%s", i+1, c.Scenario.Name)
	for _, s := range c.Subjects() {
		name += "-" + s.Name
	}
	return name
}

// Servers opens the servers of several runs. A topology is opened when a run needs it, and again after a run whose faults
// broke its servers. It is not safe for concurrent use.
type Servers struct {
	plan    Plan
	watcher Watcher
	open    map[string]*server.Target
	db      *database.DB
	started bool // the plan's system has been started before
}

// NewServers returns the servers for the plan's runs; w is notified of each that is opened. The caller closes them.
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

// retire closes servers that a run has broken, so that no other run gets them.
func (s *Servers) retire(c scenarios.Config) {
	spec := SpecFor(s.plan.Target, c.Lock)
	if t := s.open[spec.Topology]; t != nil && c.BreaksServers() && !spec.IsAddress() {
		t.Close()
		delete(s.open, spec.Topology)
	}
}

// Close closes all open servers.
func (s *Servers) Close() {
	for _, t := range s.open {
		t.Close()
	}
	if s.db != nil {
		s.db.Close()
	}
}
