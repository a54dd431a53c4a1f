package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oversell/campaign"
	"oversell/database"
	"oversell/internal/phrase"
	"oversell/internal/yamlfile"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
)

// Options are the settings of a gate.
type Options struct {
	// Dir holds the run directories.
	Dir string
	// Seed fixes the random choices that the plan leaves open.
	Seed uint64
	// Baseline is what an earlier gate has recorded; may be nil.
	Baseline *Baseline
	// Record measures speed for a new baseline and accepts any slow-down.
	Record bool
	// Self is the path of the oversell that is compared with another build; empty: this program.
	Self string
	// Command is the command line, for reports.
	Command string
}

// Watcher is notified of the progress of a gate. Its methods are never called concurrently.
type Watcher interface {
	campaign.Watcher
	// Entry is called before entry i of n of the plan.
	Entry(i, n int, name string)
	// Said is called with progress messages.
	Said(line string)
}

// Run carries out the plan. When ctx ends, the gate judges the current entry by its runs so far, leaves out the
// rest, and is marked as interrupted. After an environment error the gate says so and holds the results so far. An
// entry that cannot be carried out is inconclusive and says why, and the others go on. Run returns an error only if
// nothing was carried out: see server.ErrUsage and campaign.ErrUsed.
func (p *Plan) Run(ctx context.Context, o Options, w Watcher) (reports.Gate, error) {
	started := time.Now()
	if err := o.Baseline.fits(p); err != nil {
		return reports.Gate{}, err
	}
	if err := p.possible(ctx); err != nil {
		return reports.Gate{}, err
	}
	r := &running{plan: p, options: o, watcher: &listener{Watcher: w}}
	r.gate = reports.Gate{
		Schema: reports.GateSchema, Plan: p.Path, Seed: o.Seed, FalseAlarms: falseAlarms, Command: o.Command,
		Safety: []reports.GateEntry{}, Performance: []reports.GatePerformance{}, Machine: thisMachine(),
	}
	err := r.all(ctx)
	r.gate.Interrupted = ctx.Err() != nil
	switch {
	case refused(err) && r.judged == 0:
		return r.gate, err // there are no results to keep
	case refused(err): // the entry reports it
	case err != nil:
		r.gate.Failed = phrase.OneLine(err.Error())
	}
	if o.Record {
		r.takeBack()
	} else {
		r.gate.Missing, r.gate.Notes = o.Baseline.missing(p), o.Baseline.unguarded(p)
	}
	r.gate.ElapsedMS = milliseconds(time.Since(started))
	r.gate.Verdict = r.gate.Judged()
	return r.gate, nil
}

// possible refuses a plan with an entry whose servers do not support its faults, before anything is run. It ignores
// servers that do not start: the run that needs them reports that.
func (p *Plan) possible(ctx context.Context) error {
	ask := func(name textValue, plans ...campaign.Plan) error {
		for _, plan := range plans {
			if err := campaign.CheckFaults(ctx, plan, unwatched{}); refused(err) && ctx.Err() == nil {
				return inFile(p.Path, &yamlfile.Error{At: name.at, Say: fmt.Sprintf("entry %q: %s", name.V, phrase.OneLine(err.Error())), Of: err})
			}
		}
		return nil
	}
	for _, g := range p.safety {
		if err := ask(g.Name, g.plan); err != nil {
			return err
		}
	}
	for _, c := range p.speed {
		if err := ask(c.Name, c.candidate, c.baseline); err != nil {
			return err
		}
	}
	return nil
}

// unwatched is a watcher that does nothing.
type unwatched struct{}

func (unwatched) Target(*server.Target)                             {}
func (unwatched) Database(*database.DB)                             {}
func (unwatched) Start(int, int, scenarios.Config, *scenarios.Live) {}
func (unwatched) Done(int, int, reports.Run)                        {}

// running is a gate in progress.
type running struct {
	plan    *Plan
	options Options
	watcher *listener
	gate    reports.Gate
	dirs    int
	signs   signs
	judged  int // entries that were carried out, at least in part
	// unaccepted are the entries whose slow-downs were accepted for recording, before that.
	unaccepted []reports.GatePerformance
}

// takeBack withdraws the acceptance if nothing is recorded.
func (r *running) takeBack() {
	why := unrecordable(r.gate)
	if why == "" {
		return
	}
	for i := range r.gate.Performance {
		e := &r.gate.Performance[i]
		if before, ok := carriedOut(r.unaccepted, e.Name, func(e reports.GatePerformance) string { return e.Name }); ok {
			before.ElapsedMS = e.ElapsedMS
			before.Notes = append(slices.Clone(e.Notes), "nothing of it was recorded or accepted: "+why)
			*e = before
		}
	}
}

// refused reports whether err refuses a run, as opposed to a failure.
func refused(err error) bool {
	return errors.Is(err, server.ErrUsage) || errors.Is(err, campaign.ErrUsed)
}

// goesOn reports whether the next entry is carried out after err: a refused entry does not affect the others, but
// an environment error would stop all.
func (r *running) goesOn(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (err == nil || refused(err))
}

// all carries out the entries in order. It returns the first error; results of this and earlier entries are kept.
func (r *running) all(ctx context.Context) error {
	n := len(r.plan.safety) + len(r.plan.speed)
	var first error
	for i := range r.plan.safety {
		if !r.goesOn(ctx, first) {
			return first
		}
		g := &r.plan.safety[i]
		r.watcher.Entry(i, n, g.Name.V)
		e, err := r.guard(ctx, g)
		if e.Verdict != "" {
			r.judged++
		}
		if err = campaign.Unstopped(ctx, err); err != nil {
			e.Verdict = reports.Inconclusive
			for _, c := range e.Cases { // violations count in any case
				e.Verdict = reports.Worst(e.Verdict, c.Verdict)
			}
			e.Notes = append(slices.Clone(e.Notes), "it was not completed: "+phrase.OneLine(err.Error()))
			first = cmp.Or(first, fmt.Errorf("entry %q: %w", g.Name.V, err))
		}
		if e.Verdict != "" {
			r.gate.Safety = append(r.gate.Safety, e)
		}
	}
	for i := range r.plan.speed {
		if !r.goesOn(ctx, first) {
			return first
		}
		c := &r.plan.speed[i]
		r.watcher.Entry(len(r.plan.safety)+i, n, c.Name.V)
		e, err := r.race(ctx, c)
		if e.Verdict != "" {
			r.judged++
		}
		if err = campaign.Unstopped(ctx, err); err != nil {
			e.Verdict = reports.Worst(or(e.Verdict, reports.Inconclusive), reports.Inconclusive)
			if why := "it was not completed: " + phrase.OneLine(err.Error()); e.Verdict == reports.Violated {
				e.Notes = append(e.Notes, why)
			} else {
				e.Why = why
			}
			first = cmp.Or(first, fmt.Errorf("entry %q: %w", c.Name.V, err))
		}
		if e.Verdict != "" {
			r.gate.Performance = append(r.gate.Performance, e)
		}
	}
	return first
}

// guard carries out an entry under safety.
func (r *running) guard(ctx context.Context, g *safetyEntry) (reports.GateEntry, error) {
	e := reports.GateEntry{
		Name: g.Name.V, Kind: g.kind, Line: g.Name.at.Line, Column: g.Name.at.Column, Expect: g.Expect.V,
		Cases: []reports.GateCase{}, Notes: g.notes,
	}
	var err error
	var notes []string
	switch g.kind {
	case kindRun:
		e.Cases, err = r.runs(ctx, g)
	case kindExplore:
		e.Cases, err = r.searches(ctx, g)
	default:
		e.Cases, notes, err = r.commands(ctx, g)
		e.Notes = append(slices.Clone(e.Notes), notes...)
	}
	if len(e.Cases) == 0 {
		e.Cases = []reports.GateCase{}
		return e, err
	}
	var verdicts []string
	for _, c := range e.Cases {
		verdicts = append(verdicts, c.Verdict)
	}
	e.Verdict = reports.Worst(verdicts...)
	return e, err
}

// made is a finished run, with facts of its history beside the judgement.
type made struct {
	run  reports.Run
	dir  string
	seed uint64
}

// make runs one combination with a seed, in its own directory. It may return a run and an error; if it returns
// neither, ctx has ended.
func (r *running) make(ctx context.Context, p campaign.Plan, c scenarios.Config, seed uint64, name string) (*made, error) {
	r.dirs++
	p.Dir = filepath.Join(r.options.Dir, fmt.Sprintf("%03d-%s", r.dirs, fileName(name)))
	c.Seed = seed
	p.Runs = []scenarios.Config{c}
	d, err := campaign.Run(ctx, p, r.watcher)
	if len(d.Runs) == 0 {
		return nil, err
	}
	m := &made{run: d.Runs[0], dir: filepath.Dir(r.watcher.history), seed: seed}
	r.noteServer(m.run.ServerVersion)
	return m, err
}

// noteServer records the version of the first server.
func (r *running) noteServer(version string) {
	if r.gate.Machine.Redis == "" {
		r.gate.Machine.Redis = version
	}
}

// listener is a Watcher that also records the path of the last history, and reports each server once.
type listener struct {
	Watcher
	history string
	told    map[string]bool
}

// Start implements campaign.Watcher.
func (l *listener) Start(i, n int, c scenarios.Config, live *scenarios.Live) {
	l.history = live.History
	l.Watcher.Start(i, n, c, live)
}

// Target implements campaign.Watcher.
func (l *listener) Target(t *server.Target) {
	if l.first(fmt.Sprint(t.Kind, t.ServerVersion, t.Topology)) { // without the port, which differs each time
		l.Watcher.Target(t)
	}
}

// Database implements campaign.Watcher.
func (l *listener) Database(db *database.DB) {
	if l.first(db.Why) {
		l.Watcher.Database(db)
	}
}

func (l *listener) first(line string) bool {
	if l.told == nil {
		l.told = map[string]bool{}
	}
	defer func() { l.told[line] = true }()
	return !l.told[line]
}

// seedOf returns the seed of a round of an entry; retries have seeds of their own.
func (r *running) seedOf(g *safetyEntry, round int, retry bool) uint64 {
	var s uint64
	switch {
	case round < len(g.seeds):
		s = g.seeds[round]
	default:
		s = r.options.Seed + uint64(round)
	}
	if retry {
		s += 1_000_003
	}
	return s
}

func milliseconds(d time.Duration) float64 { return reports.InMS(d.Round(time.Millisecond)) }

// fileName turns a name into part of a path.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), 60)]
}

// shell quotes a command line for a shell.
func shell(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = phrase.ShellWord(w)
	}
	return strings.Join(quoted, " ")
}
