package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"oversell/campaign"
	"oversell/campaign/judging"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/reports/page"
	"oversell/scenarios"
	"oversell/server"
)

// comparisonPage is the page of a comparison, beside its run directories.
const comparisonPage = "comparison.html"

// Watcher is notified of the progress of a comparison. Runs are counted within a round.
type Watcher interface {
	campaign.Watcher
	// Round is called after a round, with the comparison so far.
	Round(c reports.Comparison)
}

// comparing is a comparison in progress.
type comparing struct {
	*Plan
	watcher Watcher
	began   time.Time
	servers map[server.Spec]*campaign.Servers
	rounds  int // completed
	runs    int // of the current round
	ended   string
}

// Run makes the rounds. When ctx ends, the current run is stopped, and the results so far are reported. An error is
// an environment error; the comparison then holds the results so far, and nothing if no run was judged.
func Run(ctx context.Context, p *Plan, w Watcher) (reports.Comparison, error) {
	c := &comparing{Plan: p, watcher: w, began: time.Now(), servers: map[server.Spec]*campaign.Servers{}}
	defer func() {
		for _, s := range c.servers {
			s.Close()
		}
	}()
	if err := c.prepare(ctx); err != nil {
		return reports.Comparison{}, campaign.Unstopped(ctx, err)
	}
	err := c.allRounds(ctx)
	d := c.report(ctx.Err() != nil)
	if len(d.Cells) == 0 {
		return d, err
	}
	return d, errors.Join(err, c.save(d), campaign.WriteFile(c.dir, comparisonPage, func(w io.Writer) error { return page.Comparison(w, d) }))
}

// save writes the comparison to its file.
func (c *comparing) save(d reports.Comparison) error {
	return campaign.WriteFile(c.dir, campaign.ComparisonFile, func(w io.Writer) error { return reports.WriteJSON(w, d) })
}

// prepare creates the directory, and leaves out cells that the targets cannot run.
func (c *comparing) prepare(ctx context.Context) error {
	if err := campaign.CheckDirectory(c.dir); err != nil {
		return err
	}
	for _, used := range []string{campaign.ComparisonFile, filepath.Join("*", campaign.HistoryFile)} {
		if found, _ := filepath.Glob(filepath.Join(campaign.GlobEscape(c.dir), used)); len(found) > 0 {
			return fmt.Errorf("%w: %s holds an earlier run: choose another --out", campaign.ErrUsed, found[0])
		}
	}
	if err := os.MkdirAll(c.dir, 0o777); err != nil {
		return fmt.Errorf("make the directory for the histories: %w", err)
	}
	possible := map[string]error{}
	for i := range c.configurations {
		var refused error
		for _, x := range c.in(i) {
			key := fmt.Sprintf("%d %s", i, campaign.SpecFor(x.spec, x.config.Lock).Topology)
			err, known := possible[key]
			if !known {
				err = c.serversOf(x.subject).Possible(ctx, x.config)
				possible[key] = err
			}
			switch {
			case errors.Is(err, server.ErrUsage):
				refused = err
				c.drop(i, x, err)
			case err != nil:
				return err
			}
		}
		if len(c.in(i)) == 0 && !c.configurations[i].added {
			return refused
		}
	}
	c.dropEmpty()
	return nil
}

// drop leaves out a cell, also as a candidate for a control.
func (c *comparing) drop(i int, x *cell, why error) {
	c.skip(c.contenders[x.contender], why)
	c.cells = slices.DeleteFunc(c.cells, func(y *cell) bool { return x == y })
	f := &c.configurations[i].control
	f.candidates = slices.DeleteFunc(f.candidates, func(k *controlCandidate) bool { return k.tally == &x.tally })
}

// serversOf returns the servers of a subject's target, which are shared with other subjects of the same target.
func (c *comparing) serversOf(s subject) *campaign.Servers {
	if c.servers[s.spec] == nil {
		c.servers[s.spec] = campaign.NewServers(campaign.Plan{Target: s.spec, SQL: c.sql.SQL, JSONL: c.sql.JSONL, Outside: c.sql.Outside}, c.watcher)
	}
	return c.servers[s.spec]
}

// allRounds makes rounds until a limit or an error ends them.
func (c *comparing) allRounds(ctx context.Context) error {
	longest := time.Duration(0)
	for n := 1; ; n++ {
		if c.ended = c.enough(n, longest, c.likely(n)); c.ended != "" {
			return nil
		}
		began := time.Now()
		err := c.round(ctx, n)
		if ctx.Err() != nil {
			c.ended = fmt.Sprintf("it was stopped in round %d", n)
			return campaign.Unstopped(ctx, err)
		}
		if err != nil {
			c.ended = fmt.Sprintf("round %d failed: %v", n, err)
			return err
		}
		c.rounds, longest = n, max(longest, time.Since(began))
		d := c.report(false)
		if err := c.save(d); err != nil {
			return err
		}
		c.watcher.Round(d)
	}
}

// likely estimates the duration of round n from earlier runs.
func (c *comparing) likely(n int) (took time.Duration) {
	for _, j := range c.jobs(n) {
		took += cmp.Or(j.tally.took[j.part], j.takes())
	}
	return took
}

// enough explains why round n is not made, given the longest round so far and the likely duration of this one;
// empty if it is made.
func (c *comparing) enough(n int, longest, likely time.Duration) string {
	switch {
	case c.Plan.rounds > 0 && n > c.Plan.rounds:
		return "as many as planned"
	case n == 2 && c.time > 0 && longest > c.time:
		return fmt.Sprintf("the first round took longer than %v, see --time", c.time)
	case n > 1 && c.time > 0 && time.Since(c.began)+likely > c.time:
		return fmt.Sprintf("another would hardly have ended within %v, see --time", c.time)
	}
	return ""
}

// job is one run of a round.
type job struct {
	subject
	tally   *tally
	part    part
	what    string // for the directory's name
	instead bool   // replaces a run that decided nothing
	again   bool   // repeat it if it decides nothing
}

// round makes the runs of round n.
func (c *comparing) round(ctx context.Context, n int) error {
	c.runs = 0
	jobs := c.jobs(n)
	for _, j := range jobs {
		if err := c.make(ctx, n, len(jobs), j); err != nil || ctx.Err() != nil {
			return err
		}
	}
	for _, j := range jobs {
		if !j.again || !j.tally.undecided(j.part) {
			continue
		}
		j.instead = true
		if err := c.make(ctx, n, len(jobs), j); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return c.controls(ctx, n, len(jobs))
}

// jobs returns the runs of round n, by part, and within a part in random order.
func (c *comparing) jobs(n int) (jobs []job) {
	for _, x := range c.cells {
		if !c.configurations[x.configuration].in(n) {
			continue
		}
		what := fmt.Sprintf("c%d-", x.configuration+1)
		if x.timed == nil {
			jobs = append(jobs, job{subject: x.subject, tally: &x.tally, what: what, again: true})
			continue
		}
		jobs = append(jobs, job{subject: x.subject, tally: &x.tally, part: toItsEnd, what: what, again: true},
			job{subject: *x.timed, tally: &x.tally, part: forATime, what: what + "timed-"})
	}
	if n <= aloneRounds {
		for _, l := range c.alone {
			jobs = append(jobs, job{subject: l.subject, tally: &l.tally, what: "alone-"})
		}
	}
	for i, f := range c.configurations {
		if best := f.control.best; best != nil && best.extra && f.in(n) {
			jobs = append(jobs, job{subject: best.subject, tally: best.tally, what: fmt.Sprintf("control%d-", i+1)})
		}
	}
	order := rand.New(rand.NewPCG(c.seed, uint64(n)))
	order.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	// Runs that are compared with each other run close together in time.
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.part, b.part) })
	return jobs
}

// aloneRounds is the number of rounds that also run contenders with a single client, addedRounds the number of rounds
// that run the added configuration; in a quick comparison it is 1.
const (
	aloneRounds = 1
	addedRounds = 2
)

// controlTries is how many further candidates for a control a round tries while none has been caught.
const controlTries = 3

// controls tries candidates in configurations without a control that was caught.
func (c *comparing) controls(ctx context.Context, n, runs int) error {
	for i, f := range c.configurations {
		if !f.in(n) {
			continue
		}
		f.control.choose()
		for range controlTries {
			x := f.control.untried()
			if f.control.report().Power() || x == nil {
				break
			}
			err := c.make(ctx, n, runs, job{subject: x.subject, tally: x.tally, what: fmt.Sprintf("control%d-", i+1)})
			if errors.Is(err, server.ErrUsage) { // the servers do not support the faults with this candidate
				f.control.candidates = slices.DeleteFunc(f.control.candidates, func(y *controlCandidate) bool { return x == y })
				continue
			}
			if err != nil || ctx.Err() != nil {
				return err
			}
			f.control.choose()
		}
	}
	return nil
}

// make makes a run and counts it. All runs of a round have the same seed, except repetitions (job.instead).
func (c *comparing) make(ctx context.Context, n, of int, j job) error {
	config := j.config
	config.Seed = c.seed + uint64(n) - 1
	if j.instead {
		config.Seed += 1 << 32 // the same seed would decide nothing again
	}
	i := c.runs
	c.runs++
	name := fmt.Sprintf("r%02d-%03d-%s%s", n, i+1, j.what, subjects(config))
	began := time.Now()
	judged, err := c.serversOf(j.subject).Run(ctx, campaign.Turn{Dir: filepath.Join(c.dir, name), Config: config, Number: i, Of: max(of, i+1)})
	if judged == nil {
		return err
	}
	err = errors.Join(err, narrow(judged, filepath.Join(c.dir, name), j.window))
	j.tally.add(n, name, judged, j)
	j.tally.took[j.part] = time.Since(began)
	c.watcher.Done(i, max(of, i+1), judged.Run)
	return err
}

// narrow replaces the work and the latencies of a run by those of the window.
func narrow(j *judging.Result, dir string, w window) error {
	if w == (window{}) || j.Run.Interrupted {
		return nil
	}
	h, err := history.Open(filepath.Join(dir, campaign.HistoryFile))
	if err != nil {
		return err
	}
	defer h.Close()
	j.Work, j.Latencies = w.measure(h)
	return h.Err()
}

// subjects names the variants of a run.
func subjects(c scenarios.Config) (name string) {
	for i, s := range c.Subjects() {
		if i > 0 {
			name += "-"
		}
		name += s.Name
	}
	return name
}

// report returns the results so far.
func (c *comparing) report(interrupted bool) reports.Comparison {
	d := reports.Comparison{
		Schema: reports.ComparisonSchema, Scenario: c.name, Waiting: c.waiting, Seed: c.seed, Rounds: c.rounds, Ended: c.ended, Work: c.work,
		Conditions: c.conditions, Contenders: c.contenders, Configurations: []reports.Configuration{}, Cells: []reports.ComparisonCell{},
		Skipped: c.skipped, ElapsedMS: judging.Round(float64(time.Since(c.began)) / 1e6), Interrupted: interrupted, Command: c.command,
	}
	if len(c.contenders) > 0 {
		w := c.windowOf(c.contenders[0]) // all contenders have the same scenario
		d.WarmUpMS, d.MeasuredMS = reports.InMS(w.warmUp), reports.InMS(w.lasts)
	}
	for i, f := range c.configurations {
		f.control.choose()
		f.report.Control = f.control.report()
		f.report.Fastest = -1
		first := len(d.Cells)
		for _, x := range c.in(i) {
			if len(x.runs) > 0 {
				f.report.ServerVersion, f.report.Target = x.runs[0].run.ServerVersion, x.runs[0].run.Target
				d.Cells = append(d.Cells, x.report(f.report.Control.Power()))
			}
		}
		cells := d.Cells[first:]
		if fastest := fastestOf(cells); fastest >= 0 {
			f.report.Fastest = cells[fastest].Contender
			for j := range cells {
				ratios := paired(cells[j].Rounds, cells[fastest].Rounds)
				cells[j].Ratio, cells[j].Estimate = spreadOrNil(ratios), estimateOf(ratios)
			}
			rank(cells)
		}
		d.Configurations = append(d.Configurations, f.report)
	}
	d.Recommended = d.Recommend()
	d.Notes = c.notes(d)
	return d
}

// report summarizes the runs of a cell.
func (x *cell) report(power bool) reports.ComparisonCell {
	whole, telling := x.measured(), x.telling()
	r := reports.ComparisonCell{
		Contender: x.contender, Configuration: x.configuration, Runs: len(telling), Repeated: x.repeated,
		Throughput: spreadOf(measure(whole, func(s sample) float64 { return s.rate })),
		Latency:    x.summary(), Uncontended: x.lone.summary(), Request: x.request(), RequestAlone: x.lone.request(),
		Fairness: spreadOf(measure(whole, func(s sample) float64 { return s.run.Fairness })).Median,
		Faults:   faultsOf(x.whole()), Dirs: []string{}, Rounds: []reports.ComparedRun{},
	}
	r.Expected, r.ExpectedWhy = x.config.Expect()
	r.KnownToBreak = x.config.KnownToBreak()
	r.Opportunities, r.Promises = fewest(telling)
	if x.requests != nil {
		r.Curve = x.requests.Curve(x.kind)
	}
	commands, acquired, done := int64(0), int64(0), int64(0)
	for _, s := range telling {
		r.Dirs = append(r.Dirs, s.dir)
		r.Rounds = append(r.Rounds, reports.ComparedRun{Round: s.round, Verdict: s.run.Verdict, Why: s.why, Throughput: judging.Round(s.rate), Seed: s.run.Seed, Dir: s.dir, Interrupted: s.interrupted, Measured: s.part.measured()})
	}
	for _, s := range whole {
		commands, acquired, done = commands+s.run.Commands, acquired+s.run.Acquired, done+s.done
		if len(x.config.Lock.Promises) > 0 { // otherwise clients do not wait
			r.LongestWaitMS = max(r.LongestWaitMS, s.longest)
		}
	}
	r.Sold, r.Stock = soldIn(x.proving())
	if acquired > 0 {
		r.CommandsPerAcquisition = judging.Round(float64(commands) / float64(acquired))
	}
	if done > 0 {
		r.CommandsPerWork = judging.Round(float64(commands) / float64(done))
	}
	byLoad, byFaults := x.config.Breakable()
	judge(&r, telling, x.lone.runs, power, slices.Concat(byLoad, byFaults, declaredIn(telling), declaredIn(x.lone.runs)))
	return r
}

// faultsOf returns the faults of these runs with their results added up.
func faultsOf(runs []sample) (all []reports.Fault) {
	for _, r := range runs {
		for i, f := range r.run.Faults {
			if i < len(all) {
				all[i].Add(f)
				continue
			}
			all = append(all, reports.Fault{Name: f.Name, Level: f.Level, Fired: f.Fired, Holders: f.Holders, Waiters: f.Waiters, Failed: f.Failed})
		}
	}
	return all
}

// fastestOf returns the index of the fastest cell without a violation; -1: there is none.
func fastestOf(cells []reports.ComparisonCell) int {
	best := -1
	for i, x := range cells {
		if x.Outcome == reports.NoViolation && (best < 0 || typical(x.Rounds) > typical(cells[best].Rounds)) {
			best = i
		}
	}
	return best
}

// notes returns what the tables do not show.
func (c *comparing) notes(d reports.Comparison) (notes []string) {
	repeated := 0
	for _, x := range d.Cells {
		repeated += x.Repeated
	}
	if repeated > 0 {
		notes = append(notes, fmt.Sprintf("repeated, because they had decided nothing: %s", phrase.Count(repeated, "run")))
	}
	if i := slices.IndexFunc(c.configurations, func(f *configuration) bool { return f.added }); i >= 0 {
		f := c.configurations[i]
		notes = append(notes, fmt.Sprintf("a section outlives its lease (%s, fault: %s) in %s only; --plain leaves that out", f.report.Swept[len(f.report.Swept)-1], outlived, first(f.rounds)))
	}
	if c.rounds > 0 && c.rounds < fewestRounds && !d.Interrupted {
		notes = append(notes, fmt.Sprintf("%s: too few for intervals and ranks; increase --time, or use --rounds %d", phrase.Count(c.rounds, "round"), fewestRounds))
	}
	return notes
}

// first names the first n rounds.
func first(n int) string {
	if n == 1 {
		return "the first round"
	}
	return fmt.Sprintf("the first %d rounds", n)
}
