package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"oversell/campaign"
	"oversell/campaign/judging"
	"oversell/history"
	"oversell/internal/child"
	"oversell/internal/phrase"
	"oversell/internal/stats"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// The three runs of a round: the candidate, the baseline, and the baseline again.
const (
	theCandidate = iota
	theBaseline
	itsTwin
	inARound
)

// round holds the three runs of a round.
type round [inARound]reports.Run

// against separates the versions of two servers that differ.
const against = " against "

// redis returns the versions of the servers of a round.
func (x round) redis() string {
	candidate, baseline := x[theCandidate].ServerVersion, x[theBaseline].ServerVersion
	if candidate == baseline {
		return candidate
	}
	return candidate + against + baseline
}

// driver makes the runs of rounds: for each run, sides holds candidate or baseline, and seeds the seed. When ctx
// ends it returns the finished runs.
type driver func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error)

// race carries out an entry under performance.
func (r *running) race(ctx context.Context, c *speedEntry) (reports.GatePerformance, error) {
	return r.raceWith(ctx, c, r.driverOf)
}

// raceWith carries out the entry; open returns the driver for an entry with a fixed length of runs.
func (r *running) raceWith(ctx context.Context, c *speedEntry, open func(*speedEntry) driver) (reports.GatePerformance, error) {
	e := reports.GatePerformance{
		Name: c.Name.V, Line: c.Name.at.Line, Column: c.Name.at.Column, Measures: []reports.GateMeasure{},
		MostRounds: c.procedure.looks[len(c.procedure.looks)-1],
	}
	e.Candidate, e.Baseline = c.titles()
	t := &timing{race: c, running: r, entry: &e, random: rand.New(rand.NewPCG(r.options.Seed, 1)), differences: map[string][2][]float64{}}
	started := time.Now()
	within, cancel := context.WithTimeout(ctx, c.budget)
	defer cancel()
	drive, err := t.settle(within, open)
	if err == nil {
		err = t.run(within, drive)
	}
	e.ElapsedMS = milliseconds(time.Since(started))
	if len(t.rounds) == 0 && err != nil && e.Verdict != reports.Violated {
		e.Verdict = "" // nothing to report
	}
	return e, err
}

// titles returns what the report calls the candidate and the baseline.
func (c *speedEntry) titles() (candidate, baseline string) {
	a, b := c.candidate.Runs[0], c.baseline.Runs[0]
	candidate = named(campaign.ContenderOf(a))
	if c.build != "" {
		return candidate + " of this build", "that of " + c.Build.V
	}
	if digest(c.args[0]) == digest(c.args[1]) {
		return candidate, "itself"
	}
	return candidate, differs(b, a, *c.Baseline)
}

// named describes a combination.
func named(c reports.Contender) string {
	var parts []string
	for _, v := range []struct{ what, name string }{{"queue", c.Queue}, {"lock", c.Lock}, {"sale", c.Sale}, {"ids", c.IDs}, {"dispatch", c.Dispatch}} {
		if v.name != "" {
			parts = append(parts, v.what+" "+v.name)
		}
	}
	return strings.Join(parts, ", ")
}

// timing is a comparison in progress.
type timing struct {
	race    *speedEntry
	running *running
	entry   *reports.GatePerformance
	random  *rand.Rand

	rounds   []round
	violated []reports.Run // of the candidate, also in unfinished rounds
	accepted *Accepted
	foreign  string // why the baseline's accepted slow-downs do not count
	sized    string // how the length of the runs was chosen
	open     string // what the rounds so far leave open

	// differences holds, by measure, the slow-downs of the candidate and of the baseline against itself, as
	// logarithms, one per round.
	differences map[string][2][]float64
}

// run makes rounds until every measure is fast enough, one is too slow, or the maximum is reached. ctx ends with
// the budget or with the gate.
func (t *timing) run(ctx context.Context, drive driver) error {
	looks := t.race.procedure.looks
	if t.running.options.Record {
		looks = looks[len(looks)-2 : len(looks)-1] // all planned rounds at once
	}
	for i, look := range looks {
		err := t.advance(ctx, drive, look)
		if len(t.rounds) == 0 {
			if !t.breaks() {
				t.entry.Verdict, t.entry.Why = reports.Inconclusive, "not one round was made "+t.until(ctx)
			}
			return err
		}
		t.entry.Rounds, t.entry.Retried = len(t.rounds), i == len(t.race.procedure.looks)-1
		if done := t.look(); done || err != nil || ctx.Err() != nil || i == len(looks)-1 {
			if !done && ctx.Err() != nil {
				t.entry.Why = fmt.Sprintf("of at most %d rounds %d were made %s, and %s", t.entry.MostRounds, len(t.rounds), t.until(ctx), t.open)
			}
			t.conclude()
			return err
		}
	}
	return nil
}

// until describes what ended the rounds: ctx ends by itself with the budget, and is cancelled with the gate.
func (t *timing) until(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return "until the gate was stopped"
	}
	return fmt.Sprintf("within the budget of %v", t.race.budget)
}

// conclude estimates all measures, and accepts them if they are to be recorded.
func (t *timing) conclude() {
	for i := range t.entry.Measures {
		m, ds := &t.entry.Measures[i], t.differences[t.race.measures[i]]
		m.Slowdown = t.running.signs.estimate(ds[0], t.race.procedure.miss)
		m.Noise = t.running.signs.estimate(ds[1], t.race.procedure.miss)
	}
	if t.running.options.Record && len(t.entry.Measures) == len(t.race.measures) && t.entry.Verdict != reports.Violated {
		t.recorded()
	}
}

// advance makes rounds up to this number.
func (t *timing) advance(ctx context.Context, drive driver, upTo int) error {
	var sides []int
	var seeds []uint64
	for n := len(t.rounds); n < upTo; n++ {
		sides = append(sides, t.random.Perm(inARound)...)
		for range inARound {
			seeds = append(seeds, t.running.options.Seed+uint64(n))
		}
	}
	runs, err := drive(ctx, sides, seeds)
	for i, run := range runs {
		if sides[i] == theCandidate && run.Verdict == reports.Violated {
			t.violated = append(t.violated, run)
		}
	}
	for whole := range slices.Chunk(runs, inARound) {
		if len(whole) < inARound || slices.ContainsFunc(whole, func(r reports.Run) bool { return r.Interrupted }) {
			break
		}
		var x round
		for i, run := range whole {
			x[sides[i]] = run
		}
		sides = sides[inARound:]
		t.rounds = append(t.rounds, x)
	}
	if ctx.Err() != nil {
		return nil // errors after the end of ctx do not count
	}
	return err
}

// look decides what the rounds so far can decide, and reports whether that is everything.
func (t *timing) look() (done bool) {
	e, r := t.entry, t.running
	r.noteServer(t.rounds[0][theCandidate].ServerVersion)
	e.Redis = t.rounds[0].redis()
	t.accepted, t.foreign = r.options.Baseline.accepted(t.race, r.gate.Machine, e.Redis)
	e.Notes = slices.DeleteFunc([]string{t.sized, t.foreign}, func(n string) bool { return n == "" })
	if t.breaks() {
		return true
	}
	e.Measures = e.Measures[:0]
	if why := t.undecided(); why != "" {
		e.Verdict, e.Why = reports.Inconclusive, why
		return true
	}
	var verdicts []string
	t.open = ""
	for _, name := range t.race.measures {
		m, failed := t.measure(name)
		if failed != "" {
			e.Verdict, e.Why = reports.Inconclusive, failed
			return true
		}
		e.Measures = append(e.Measures, m)
		verdicts = append(verdicts, m.Verdict)
	}
	e.Why = ""
	switch {
	case slices.Contains(verdicts, reports.Slower) && t.foreign != "":
		e.Verdict, e.Why = reports.Inconclusive, "it is slower than allowed; the baseline file accepts a slow-down, but does not apply: "+t.foreign
		return true
	case slices.Contains(verdicts, reports.Slower):
		e.Verdict = reports.Slower
		e.Why = fmt.Sprintf("with a rate of false alarms of at most %s over the whole plan", reports.Percent(falseAlarms))
		return true
	case !slices.Contains(verdicts, reports.Inconclusive):
		e.Verdict = reports.Pass
		return true
	}
	e.Verdict = reports.Inconclusive
	e.Why = fmt.Sprintf("%s were made, and %s", reports.Count(int64(len(t.rounds)), "round"), t.open)
	return false
}

// recorded accepts the measures whose noise is small enough.
func (t *timing) recorded() {
	e := t.entry
	before := *e
	before.Measures = slices.Clone(e.Measures)
	t.running.unaccepted = append(t.running.unaccepted, before)
	e.Verdict, e.Why, e.Recorded = reports.Pass, "", true
	for i := range e.Measures {
		m := &e.Measures[i]
		m.Verdict, m.Recorded = reports.Pass, true
		noise := t.differences[t.race.measures[i]][1]
		if !m.Slowdown.Within(m.Allowed) || !t.race.procedure.resolves(&t.running.signs, noise, math.Log1p(m.Allowed)) {
			m.Verdict, m.Recorded = reports.Inconclusive, false
			e.Verdict, e.Recorded = reports.Inconclusive, false
			e.Why = fmt.Sprintf("the noise of %s is too large to record it (the baseline against itself %s, and %s is allowed): %s", m.Name, m.Noise.Span(), reports.Percent(m.Allowed), quieter)
		}
	}
}

// breaks reports whether the candidate broke a promise in any run, and which.
func (t *timing) breaks() bool {
	if len(t.violated) == 0 {
		return false
	}
	t.entry.Verdict, t.entry.Why = reports.Violated, "the candidate broke a promise while its speed was measured"
	t.entry.Broken = slices.DeleteFunc(merged(t.violated), func(p reports.GateProperty) bool { return p.Result != reports.Broken })
	return true
}

// undecided explains why the speed measurement is invalid: in a run a fault did not fire, a run was cut short, or
// the baseline broke a promise and may owe its speed to that.
func (t *timing) undecided() string {
	for i, x := range t.rounds {
		for side, run := range x {
			who := "the candidate"
			if side != theCandidate {
				who = "the baseline"
			}
			switch {
			case run.Verdict == reports.Inconclusive && !judging.Uncontended(run.Why):
				return fmt.Sprintf("%s decided nothing in round %d, so its speed says nothing: %s", who, i+1, or(run.Why, "it gave no reason"))
			case run.Verdict == reports.Violated:
				return fmt.Sprintf("%s broke a promise in round %d, so its speed is no valid reference", who, i+1)
			}
		}
	}
	return ""
}

// measure compares one measure over all rounds. A measure that was fast enough after fewer rounds must still be.
func (t *timing) measure(name string) (m reports.GateMeasure, failed string) {
	operation := t.race.operation()
	m = reports.GateMeasure{Name: t.race.called(name), Unit: "ms", Allowed: t.race.slower[name], Verdict: reports.Inconclusive}
	if name == throughput {
		m.Unit = "a second"
	}
	var values [inARound][]float64
	for i, x := range t.rounds {
		for side, run := range x {
			v := measured(run, name, operation)
			if !(v > 0) || math.IsInf(v, 1) {
				return m, fmt.Sprintf("%s could not be measured in round %d: there was no such operation (%s)", m.Name, i+1, or(run.Why, run.Verdict))
			}
			values[side] = append(values[side], v)
		}
	}
	slow := slowdowns(values[theCandidate], values[theBaseline], name)
	noise := slowdowns(values[itsTwin], values[theBaseline], name)
	t.differences[name] = [2][]float64{slow, noise}
	m.Candidate, m.Baseline = stats.Median(values[theCandidate]), stats.Median(append(slices.Clone(values[theBaseline]), values[itsTwin]...))
	p, s := t.race.procedure, &t.running.signs
	border := math.Log1p(m.Allowed)
	if m.Accepted = t.accepted.slowdown(m.Name); m.Accepted != nil {
		border += math.Log1p(*m.Accepted)
		p = p.halved()
	}
	resolved := p.resolves(s, noise, math.Log1p(m.Allowed))
	switch decided := p.decide(s, slow, border); {
	case decided == tooSlow:
		m.Verdict = reports.Slower
	case decided == fastEnough && resolved:
		m.Verdict = reports.Pass
	case t.open == "" && !resolved:
		t.open = fmt.Sprintf("they cannot show a slow-down of %s, the allowed one, because the noise is too large: the %s of the baseline against itself is only known to be %s; %s", reports.Percent(m.Allowed), m.Name, s.estimate(noise, p.miss).Span(), quieter)
	case t.open == "":
		t.open = fmt.Sprintf("they cannot tell the %s from the allowed slow-down; more rounds would, unless it is exactly that slow", m.Name)
	}
	if p.differs(s, noise, math.Log1p(m.Allowed)) {
		return m, fmt.Sprintf("the baseline differs from itself by more than is allowed (%s of %s), so the difference is not due to the candidate", reports.Percent(s.estimate(noise, p.miss).Middle), m.Name)
	}
	return m, ""
}

// quieter is advice against noise.
const quieter = "longer runs (duration, ops or stock, or a larger budget where the gate chooses), more rounds or a quieter machine would"

// operation returns the operation whose latency is compared.
func (c *speedEntry) operation() string {
	return or(c.Operation.V, mainOperation(c.candidate.Runs[0]))
}

// called returns the name of a measure in reports.
func (c *speedEntry) called(measure string) string {
	if measure == throughput {
		return throughput
	}
	return measure + " of " + c.operation()
}

// slowdowns returns, round by round, the logarithm of a's duration relative to b's.
func slowdowns(a, b []float64, measure string) []float64 {
	ds := make([]float64, len(a))
	for i := range a {
		ds[i] = math.Log(a[i] / b[i])
		if measure == throughput { // more is faster
			ds[i] = -ds[i]
		}
	}
	return ds
}

// estimate converts logarithmic differences to relative slow-downs.
func (s *signs) estimate(differences []float64, miss float64) reports.Estimate {
	low, middle, high := s.interval(differences, miss)
	part := func(x float64) *float64 {
		if math.IsInf(x, 0) {
			return nil
		}
		p := rounded(math.Expm1(x))
		return &p
	}
	return reports.Estimate{Middle: rounded(math.Expm1(middle)), Low: part(low), High: part(high)}
}

func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// measured returns a measure of a run; 0: it has none.
func measured(r reports.Run, name, operation string) float64 {
	switch name {
	case throughput:
		if r.ElapsedMS <= 0 {
			return 0
		}
		return float64(work(r)) / r.ElapsedMS * 1000
	case p50:
		return r.Latency[operation].Call.P50
	}
	return r.Latency[operation].Call.P99
}

// work counts the useful work: pieces if there is a sale, otherwise effects, submissions, numbers or sections.
func work(r reports.Run) int64 {
	switch {
	case r.Sold != nil:
		return *r.Sold + r.Returned
	case r.Queue != "":
		return r.Latency[history.Effect.String()].Count
	case r.Dispatch != "":
		return r.Latency[history.Submit.String()].Count
	case r.IDs != "":
		return r.Latency[history.NextID.String()].Count
	}
	return r.Acquired
}

// mainOperation returns the default operation whose latency is compared: the acquisition if a lock excludes
// clients, because they wait there.
func mainOperation(c scenarios.Config) string {
	s := c.Scenario
	switch {
	case slices.Contains(c.Lock.Promises, variant.MutualExclusion):
		return history.Acquire.String()
	case s.Uses(variant.Queue):
		return history.Pop.String()
	case s.Uses(variant.Sale):
		return history.Buy.String()
	case s.Uses(variant.IDs):
		return history.NextID.String()
	case s.Uses(variant.Dispatch):
		return history.Take.String()
	}
	return history.Acquire.String()
}

// driverOf returns the driver of an entry: in this process or, to compare builds, both in separate processes, so
// that they are treated alike.
func (r *running) driverOf(c *speedEntry) driver {
	if c.build != "" {
		return r.processes(c)
	}
	if reflect.DeepEqual(c.candidate.Target, c.baseline.Target) && reflect.DeepEqual(c.candidate.SQL, c.baseline.SQL) {
		return r.together(c)
	}
	return r.each(c)
}

// newDir returns a directory for the runs of an entry.
func (r *running) newDir(name string) string {
	r.dirs++
	return filepath.Join(r.options.Dir, fmt.Sprintf("%03d-%s", r.dirs, fileName(name)))
}

// together makes all runs on the same servers.
func (r *running) together(c *speedEntry) driver {
	return func(ctx context.Context, sides []int, seeds []uint64) ([]reports.Run, error) {
		p := c.candidate
		p.Dir, p.Runs = r.newDir(c.Name.V), nil
		for i, side := range sides {
			p.Runs = append(p.Runs, c.config(side, seeds[i]))
		}
		d, err := campaign.Run(ctx, p, muted{r.watcher})
		return d.Runs, err
	}
}

// each starts new servers for every run, because the two sides need different ones.
func (r *running) each(c *speedEntry) driver {
	return func(ctx context.Context, sides []int, seeds []uint64) (runs []reports.Run, err error) {
		for i, side := range sides {
			p := c.candidate
			if side != theCandidate {
				p = c.baseline
			}
			p.Dir, p.Runs = r.newDir(c.Name.V), []scenarios.Config{c.config(side, seeds[i])}
			d, err := campaign.Run(ctx, p, muted{r.watcher})
			runs = append(runs, d.Runs...)
			if err != nil || ctx.Err() != nil {
				return runs, err
			}
		}
		return runs, nil
	}
}

// config returns one side's combination with a seed.
func (c *speedEntry) config(side int, seed uint64) scenarios.Config {
	config := c.baseline.Runs[0]
	if side == theCandidate {
		config = c.candidate.Runs[0]
	}
	config.Seed = seed
	return config
}

// processes runs both builds as processes.
func (r *running) processes(c *speedEntry) driver {
	return func(ctx context.Context, sides []int, seeds []uint64) (runs []reports.Run, err error) {
		self := r.options.Self
		if self == "" {
			if self, err = os.Executable(); err != nil {
				return nil, err
			}
		}
		for i, side := range sides {
			build, args := c.build, c.args[1]
			if side == theCandidate {
				build, args = self, c.args[0]
			}
			made, err := process(ctx, build, args, seeds[i], r.newDir(c.Name.V))
			runs = append(runs, made...)
			if err != nil || ctx.Err() != nil || len(made) == 0 {
				return runs, err
			}
		}
		return runs, nil
	}
}

// process makes one run with a build of oversell. It may return a run and an error.
func process(ctx context.Context, build string, args []string, seed uint64, dir string) (runs []reports.Run, err error) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "--seed=") })
	args = append(append([]string{"run"}, args...), fmt.Sprintf("--seed=%d", seed), "--out="+dir, "--json")
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, build, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = child.Run(cmd, patience)
	var d reports.Document
	if json.Unmarshal(stdout.Bytes(), &d) == nil && d.Schema == reports.Schema && len(d.Runs) == 1 && slices.Contains(reports.Verdicts, d.Runs[0].Verdict) {
		runs = d.Runs
	}
	// Except after an environment error, the exit code is in the document, too.
	if len(runs) == 1 && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != reports.ExitEnvironment) {
		return runs, nil
	}
	if err == nil {
		err = fmt.Errorf("it does not print one run as %s, with a verdict of %s", reports.Schema, english.WordSeries(reports.Verdicts, "or"))
	}
	said := phrase.OneLine(stderr.String())
	return runs, fmt.Errorf("%s: %w: %s", shell(append([]string{build}, args...)), err, said[max(0, len(said)-300):])
}

// muted reports servers only: a comparison makes too many runs to report each.
type muted struct{ *listener }

// Start implements campaign.Watcher.
func (muted) Start(int, int, scenarios.Config, *scenarios.Live) {}

// Done implements campaign.Watcher.
func (muted) Done(int, int, reports.Run) {}
