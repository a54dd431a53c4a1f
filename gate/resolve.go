package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/explore"
	"oversell/history"
	"oversell/internal/limits"
	"oversell/internal/phrase"
	"oversell/internal/yamlfile"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// Plan is a validated plan: all names are resolved, and every entry can be run.
type Plan struct {
	// Path is the plan file.
	Path   string
	safety []safetyEntry
	speed  []speedEntry
}

// Histories returns the files that the commands of the plan write.
func (p *Plan) Histories() (paths []string) {
	for _, g := range p.safety {
		if g.command.history == "" {
			continue
		}
		paths = append(paths, g.command.history)
		if g.control.command == nil {
			continue
		}
		if c, err := resolveCommand(p.Path, *g.control.command, g.control.history, g.Dir); err == nil && c.history != "" {
			paths = append(paths, c.history)
		}
	}
	return paths
}

// Renamed says which locks the plan calls by names of earlier versions, and their current names.
func (p *Plan) Renamed() (notes []string) {
	var args []string
	for _, g := range p.safety {
		args = append(args, g.flags.args()...)
		if g.control.flags != nil {
			args = append(args, g.control.flags.args()...)
		}
	}
	for _, r := range p.speed {
		args = append(append(args, r.args[0]...), r.args[1]...)
	}
	for _, arg := range args {
		names, _ := strings.CutPrefix(arg, "--lock=")
		for name := range strings.SplitSeq(names, ",") {
			if note := campaign.Renamed(name); note != "" && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// safetyEntry is an entry under safety.
type safetyEntry struct {
	entry
	kind   string
	repeat int
	budget time.Duration
	seeds  []uint64
	// control is the entry's control, looked up by name.
	control control

	flags    flags
	plan     campaign.Plan    // for a run
	searches []explore.Config // for an exploration
	command  program
	notes    []string
}

// Kinds of entries.
const (
	kindRun     = "run"
	kindExplore = "explore"
	kindCommand = "command"
)

// speedEntry is an entry under performance.
type speedEntry struct {
	comparison
	budget     time.Duration
	rounds     int
	measures   []string
	slower     map[string]float64 // allowed slow-down by measure: 0.1 is 10 %
	candidate  campaign.Plan
	baseline   campaign.Plan
	flags      [2]flags    // of candidate and baseline
	args       [2][]string // the same as command-line arguments
	length     length      // length of a run, if the gate chooses it
	build      string      // the absolute path of the other build; empty: both sides run in this process
	procedure  procedure
	identifier string
}

// Defaults.
const (
	defaultRepeat      = 3
	defaultRounds      = 40
	defaultSlowdown    = 0.10
	defaultP99Slowdown = 0.50
	defaultRaceBudget  = 2 * time.Minute
	defaultRaceRun     = 200 * time.Millisecond // for scenarios that end by time only
)

// Measures of speed.
const (
	throughput = "throughput"
	p50        = "p50"
	p99        = "p99"
)

var measures = []string{throughput, p50, p99}

// Load reads a plan. It refuses what cannot be run, with file, line and column, before anything is started.
func Load(ctx context.Context, path string) (*Plan, error) {
	d, err := read(path)
	if err != nil {
		return nil, err
	}
	p := &Plan{Path: path}
	if err := p.resolve(ctx, d); err != nil {
		return nil, inFile(path, err)
	}
	return p, nil
}

func (p *Plan) resolve(ctx context.Context, d document) error {
	switch {
	case d.Schema.V != "" && d.Schema.V != PlanSchema:
		return yamlfile.Errorf(d.Schema.at, "the schema of the plan is %q, and this build reads %q", d.Schema.V, PlanSchema)
	case len(d.Safety)+len(d.Performance) == 0:
		return yamlfile.Errorf(yamlfile.Position{Line: 1, Column: 1}, "the plan guards nothing: it lists entries under safety and performance")
	}
	if err := d.shared(p.Path); err != nil {
		return err
	}
	names := map[string]bool{}
	named := func(name textValue, at yamlfile.Position, what string, i int) error {
		switch {
		case name.V == "":
			return yamlfile.Errorf(at, "entry %d under %s has no name: give it one, such as name: the sale under our lock", i+1, what)
		case names[name.V]:
			return yamlfile.Errorf(name.at, "two entries are called %q: reports tell them apart by name", name.V)
		}
		names[name.V] = true
		return nil
	}
	for i, e := range d.Safety {
		if err := named(e.Name, e.at, "safety", i); err != nil {
			return err
		}
		g, err := p.guard(ctx, d, e)
		if err != nil {
			return err
		}
		p.safety = append(p.safety, g)
	}
	all := 0
	for i, c := range d.Performance {
		if err := named(c.Name, c.at, "performance", i); err != nil {
			return err
		}
		r, err := p.race(ctx, d.Defaults, c)
		if err != nil {
			return err
		}
		all += len(r.measures)
		p.speed = append(p.speed, r)
	}
	for i := range p.speed {
		r := &p.speed[i]
		if least := fewestRounds(all); r.rounds < least {
			at := r.Rounds.at
			if at.Line == 0 {
				at = d.Defaults.Rounds.at
			}
			return yamlfile.Errorf(at, "%d rounds are too few: with the %d measures of this plan, a false-alarm rate of %s needs at least %d", r.rounds, all, reports.Percent(falseAlarms), least)
		}
		r.procedure = newProcedure(r.rounds, all)
	}
	return nil
}

// shared checks the defaults and the controls, even if no entry uses them. Each entry checks whether they fit.
func (d document) shared(path string) error {
	if err := d.Defaults.Run.parse(kindRun, (&campaign.Options{}).Bind); err != nil {
		return err
	}
	if err := d.Defaults.Explore.parse(kindExplore, (&campaign.SearchOptions{}).BindSearch); err != nil {
		return err
	}
	if err := d.knows(d.Defaults.Control.word); err != nil {
		return err
	}
	all := []control{d.Defaults.Control}
	for _, c := range d.Controls {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b control) int {
		return cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	for _, c := range all {
		if err := c.check(path); err != nil {
			return err
		}
	}
	return nil
}

// check refuses flags that neither a run nor a search has, and a program that does not exist.
func (c control) check(path string) error {
	if c.flags != nil {
		err := c.flags.parse(kindRun, (&campaign.Options{}).Bind)
		if err != nil && c.flags.parse(kindExplore, (&campaign.SearchOptions{}).BindSearch) == nil {
			return nil
		}
		return err
	}
	// A relative path is resolved where an entry runs it.
	if c.command == nil || strings.ContainsRune(c.command.V[0].V, filepath.Separator) && !filepath.IsAbs(c.command.V[0].V) {
		return nil
	}
	_, err := resolveCommand(path, *c.command, c.history, textValue{})
	return err
}

// knows refuses an unknown name of a control.
func (d document) knows(word textValue) error {
	if _, ok := d.Controls[word.V]; ok || word.V == "" {
		return nil
	}
	all := []string{autoControl, noControl}
	for name := range d.Controls {
		all = append(all, name)
	}
	slices.Sort(all[2:])
	return known(word.at, "control", word.V, all)
}

// guard resolves an entry under safety.
func (p *Plan) guard(ctx context.Context, d document, e entry) (g safetyEntry, err error) {
	g = safetyEntry{entry: e}
	if e.Expect.V == "" {
		return g, yamlfile.Errorf(e.Name.at, "entry %q has no expected outcome: add expect: pass or expect: violated", e.Name.V)
	}
	if err := known(e.Expect.at, "outcome", e.Expect.V, []string{reports.Pass, reports.Violated}); err != nil {
		return g, err
	}
	given := 0
	for _, is := range []struct {
		given bool
		kind  string
	}{{e.Run != nil, kindRun}, {e.Explore != nil, kindExplore}, {e.Command != nil, kindCommand}} {
		if is.given {
			given++
			g.kind = is.kind
		}
	}
	if given != 1 {
		return g, yamlfile.Errorf(e.Name.at, "entry %q has %d of run, explore and command: it takes one", e.Name.V, given)
	}
	if err := g.often(d.Defaults); err != nil {
		return g, err
	}
	if err := g.controlled(d); err != nil {
		return g, err
	}
	if g.kind != kindCommand {
		for _, x := range []textValue{e.History, e.Dir} {
			if x.V != "" {
				return g, yamlfile.Errorf(x.at, "history and dir go with command only")
			}
		}
	}
	switch g.kind {
	case kindRun:
		err = g.resolveRun(ctx, d.Defaults)
	case kindExplore:
		err = g.resolveSearch(d.Defaults)
	default:
		g.command, err = resolveCommand(p.Path, *e.Command, e.History, e.Dir)
	}
	if err != nil {
		return g, err
	}
	return g, g.checkControl(ctx, p.Path)
}

// often determines how often an entry runs, for how long and with which seeds.
func (g *safetyEntry) often(d defaults) error {
	e := g.entry
	if g.kind == kindExplore {
		for _, x := range []struct {
			at   yamlfile.Position
			what string
		}{{e.Repeat.at, "repeat"}, {e.Budget.at, "budget"}, {e.Seeds.at, "seeds"}} {
			if x.at.Line > 0 {
				return yamlfile.Errorf(x.at, "a search is made once: leave out %s (its flag time limits it)", x.what)
			}
		}
		if len(e.Limits) > 0 {
			return yamlfile.Errorf(e.Limits[0].at, "a search has no latencies: leave out limits")
		}
		g.repeat = 1
		return nil
	}
	repeat, seeds := e.Repeat, e.Seeds
	if repeat.V == 0 && len(seeds.V) == 0 {
		repeat, seeds = d.Repeat, d.Seeds
	}
	if repeat.V > 0 && len(seeds.V) > 0 && repeat.V != len(seeds.V) {
		return yamlfile.Errorf(repeat.at, "repeat is %d, but %d seeds are listed: give one of the two", repeat.V, len(seeds.V))
	}
	for _, s := range seeds.V {
		g.seeds = append(g.seeds, s.V)
	}
	g.repeat = max(repeat.V, len(seeds.V))
	g.budget = e.Budget.V
	if g.budget == 0 {
		g.budget = d.Budget.V
	}
	if g.repeat == 0 && g.budget == 0 {
		g.repeat = defaultRepeat
	}
	return nil
}

// controlled looks up the entry's control.
func (g *safetyEntry) controlled(d document) error {
	g.control = g.entry.Control
	if g.entry.Expect.V == reports.Violated {
		if g.control.given() {
			return yamlfile.Errorf(g.control.at, "an entry that must break is a control itself: leave out control")
		}
		if len(g.Limits) > 0 {
			return yamlfile.Errorf(g.Limits[0].at, "an entry that must break has no speed to guard: leave out limits")
		}
		return nil
	}
	if !g.control.given() {
		g.control = d.Defaults.Control
		if g.kind == kindCommand && g.control.command == nil && g.control.word.V != noControl || g.kind != kindCommand && g.control.command != nil {
			g.control = control{word: textValue{V: autoControl}, at: g.entry.Name.at} // the default is for another kind of entry
		}
	}
	switch word := g.control.word; word.V {
	case "", autoControl, noControl:
		return nil
	default:
		g.control = d.Controls[word.V]
		return d.knows(word)
	}
}

// checkControl refuses a control that cannot be run.
func (g *safetyEntry) checkControl(ctx context.Context, path string) error {
	c := g.control
	switch {
	case c.command != nil && g.kind != kindCommand:
		return yamlfile.Errorf(c.at, "the control of a %s is the flags that it sets differently, like {lock: none}", g.kind)
	case c.flags != nil && g.kind == kindCommand:
		return yamlfile.Errorf(c.at, "the control of a command is another command, which is known to break, like {command: […]}")
	case c.command != nil:
		_, err := resolveCommand(path, *c.command, c.history, g.Dir)
		return err
	case c.flags != nil && g.kind == kindRun:
		plan, err := planOf(ctx, c.flags.over(g.flags))
		if err == nil && len(plan.Runs) != len(g.plan.Runs) && len(plan.Runs) != 1 {
			return yamlfile.Errorf(c.at, "the control is %d combinations of variants: it takes one", len(plan.Runs))
		}
		return err
	case c.flags != nil:
		_, _, err := searchesOf(c.flags.over(g.flags))
		return err
	}
	return nil
}

func (g *safetyEntry) resolveRun(ctx context.Context, d defaults) (err error) {
	g.flags = g.entry.Run.over(d.Run)
	if s, ok := g.flags.value("seed"); ok {
		if len(g.seeds) > 0 {
			return yamlfile.Errorf(g.entry.Run.at, "there is a seed among the flags, and seeds beside them: give one of the two")
		}
		var x seed
		if _, err := fmt.Sscan(s, &x.V); err != nil {
			return yamlfile.Errorf(g.entry.Run.at, "%s: a seed is a whole number of 0 or more", s)
		}
		for i := range max(g.repeat, 1) {
			g.seeds = append(g.seeds, x.V+uint64(i))
		}
	}
	g.plan, err = planOf(ctx, g.flags)
	g.notes = append(slices.Clone(g.plan.Skipped), g.plan.Notes...)
	if err == nil {
		err = g.checkLimits()
	}
	return err
}

// checkLimits refuses a limit of an operation of which no run has any.
func (g *safetyEntry) checkLimits() error {
	for _, l := range g.Limits {
		of, known := objectOf[l.operation]
		if known && !slices.ContainsFunc(g.plan.Runs, func(c scenarios.Config) bool { return c.Scenario.Uses(of) }) {
			return yamlfile.Errorf(l.at, "no run of this entry has a %s: leave out this limit", l.operation)
		}
	}
	return nil
}

// objectOf maps the name of an operation to its object. The operations of locks are not in it: any scenario may have them.
var objectOf = map[string]variant.Object{
	history.Buy.String(): variant.Sale, history.Refund.String(): variant.Sale,
	history.Enqueue.String(): variant.Queue, history.Pop.String(): variant.Queue, history.Dequeue.String(): variant.Queue,
	history.Ack.String(): variant.Queue, history.Effect.String(): variant.Queue,
	history.NextID.String(): variant.IDs,
	history.Take.String():   variant.Dispatch, history.Submit.String(): variant.Dispatch,
}

func (g *safetyEntry) resolveSearch(d defaults) (err error) {
	g.flags = g.entry.Explore.over(d.Explore)
	g.searches, g.notes, err = searchesOf(g.flags)
	return err
}

// planOf resolves flags into a plan of runs.
func planOf(ctx context.Context, f flags) (campaign.Plan, error) {
	o := &campaign.Options{}
	if err := f.parse("run", o.Bind); err != nil {
		return campaign.Plan{}, err
	}
	o.Shared = f.shared
	plan, err := campaign.NewPlan(ctx, *o)
	if err != nil {
		return plan, f.blame(err)
	}
	if len(plan.Runs) == 0 {
		return plan, yamlfile.Errorf(f.at, "nothing is left to run: %s", strings.Join(plan.Skipped, "; "))
	}
	return plan, nil
}

// searchesOf resolves flags into searches.
func searchesOf(f flags) ([]explore.Config, []string, error) {
	o := campaign.SearchOptions{}
	if err := f.parse("explore", o.BindSearch); err != nil {
		return nil, nil, err
	}
	o.Shared = f.shared
	cs, skipped, err := campaign.Searches(o)
	if err != nil {
		err = f.blame(err)
	}
	return cs, skipped, err
}

// parse sets the flags of a command as from a command line.
func (f flags) parse(command string, bind func(*pflag.FlagSet)) error {
	set := pflag.NewFlagSet(command, pflag.ContinueOnError)
	bind(set)
	var all []string
	set.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	for _, i := range f.items {
		if err := known(i.at, "flag of oversell "+command, i.name, all); err != nil {
			return err
		}
		if _, several := set.Lookup(i.name).Value.(pflag.SliceValue); i.listed && !several {
			return yamlfile.Errorf(i.at, "the flag %s takes one value, and this is a list", i.name)
		}
		if len(i.values) == 0 {
			return yamlfile.Errorf(i.at, "the flag %s has no value", i.name)
		}
		for _, v := range i.values {
			if err := set.Set(i.name, v.V); err != nil {
				return yamlfile.Errorf(v.at, "%s", phrase.OneLine(limits.Explain(err).Error()))
			}
		}
	}
	return nil
}

// blame prefixes an error about flag values with the position of the flag or, if that cannot be found, of all
// flags.
func (f flags) blame(err error) error {
	say, at, best := phrase.OneLine(err.Error()), f.at, 0
	for _, i := range f.items {
		for _, v := range i.values {
			score := 0
			switch {
			case strings.Contains(say, fmt.Sprintf("%q", v.V)):
				score = 1000 + len(v.V)
			case strings.Contains(say, "--"+i.name+" ") || strings.Contains(say, "--"+i.name+":") || strings.HasSuffix(say, "--"+i.name):
				score = 500
			case strings.Contains(say, v.V):
				score = len(v.V)
			case strings.Contains(say, i.name):
				score = 1
			}
			if score > best && v.at.Line > 0 {
				best, at = score, v.at
			}
		}
	}
	return yamlfile.Errorf(at, "%s", say)
}

// race resolves an entry under performance.
func (p *Plan) race(ctx context.Context, d defaults, c comparison) (r speedEntry, err error) {
	r = speedEntry{comparison: c, budget: defaultRaceBudget, rounds: defaultRounds, slower: map[string]float64{}}
	switch {
	case c.Run == nil:
		return r, yamlfile.Errorf(c.Name.at, "entry %q has no candidate: add run: with its flags", c.Name.V)
	case (c.Baseline == nil) == (c.Build.V == ""):
		return r, yamlfile.Errorf(c.Name.at, "entry %q has no baseline to compare with: add baseline: with the flags that differ, or build: with another build of oversell", c.Name.V)
	}
	if c.Rounds.V > 0 || d.Rounds.V > 0 {
		r.rounds = or(c.Rounds.V, d.Rounds.V)
	}
	if c.Budget.V > 0 {
		r.budget = c.Budget.V
	}
	r.measures = measures
	if len(c.Measure.V) > 0 {
		r.measures = nil
		for _, m := range c.Measure.V {
			if err := known(m.at, "measure", m.V, measures); err != nil {
				return r, err
			}
			if slices.Contains(r.measures, m.V) {
				return r, yamlfile.Errorf(m.at, "the measure %s is listed twice", m.V)
			}
			r.measures = append(r.measures, m.V)
		}
	}
	if c.Operation.V != "" {
		if err := known(c.Operation.at, "operation", c.Operation.V, operations()); err != nil {
			return r, err
		}
	}
	for _, m := range measures {
		r.slower[m] = or(c.MaxSlowdown.V, d.MaxSlowdown.V, defaultSlowdown)
	}
	r.slower[p99] = or(c.MaxP99Slowdown.V, d.MaxP99Slowdown.V, max(defaultP99Slowdown, r.slower[throughput]))
	candidate := c.Run.over(d.Run)
	if r.candidate, err = p.single(ctx, &candidate, c.Name); err != nil {
		return r, err
	}
	baseline := candidate
	if c.Baseline != nil {
		baseline = c.Baseline.over(candidate)
	}
	if r.baseline, err = p.single(ctx, &baseline, c.Name); err != nil {
		return r, err
	}
	if c.Build.V != "" {
		if r.build, err = executable(beside(p.Path, c.Build.V)); err != nil {
			return r, yamlfile.Errorf(c.Build.at, "the build to compare with cannot be run: %s", phrase.OneLine(err.Error()))
		}
	}
	given := c.Run.over(d.Run)
	r.flags = [2]flags{candidate, baseline}
	r.args = [2][]string{candidate.args(), baseline.args()}
	if c.Baseline == nil || !c.Baseline.has("duration") && !c.Baseline.has("ops") && !c.Baseline.has("stock") {
		r.length = growing(given, &r)
	}
	r.identifier = digest(r.args[0], r.args[1], []string{c.Build.V, c.Operation.V})
	return r, nil
}

// single resolves flags into a plan with one combination of variants.
func (p *Plan) single(ctx context.Context, f *flags, name textValue) (campaign.Plan, error) {
	plan, err := planOf(ctx, *f)
	if err != nil {
		return plan, err
	}
	if len(plan.Runs) != 1 {
		return plan, yamlfile.Errorf(name.at, "entry %q is %d combinations of variants, and speed is compared for one: name a lock, or a queue, in run", name.V, len(plan.Runs))
	}
	if plan.Runs[0].Scenario.EndsByTime && !f.has("duration") && !f.has("ops") {
		*f = f.with("duration", defaultRaceRun.String())
		return planOf(ctx, *f)
	}
	return plan, nil
}

// or returns the first value that is not zero.
func or[T comparable](vs ...T) (zero T) {
	for _, v := range vs {
		if v != zero {
			return v
		}
	}
	return zero
}

// digest identifies what an entry does, regardless of the order of its flags.
func digest(parts ...[]string) string {
	h := sha256.New()
	for _, p := range parts {
		p = slices.Clone(p)
		slices.Sort(p)
		fmt.Fprintf(h, "%q\n", p)
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLength]
}

// digestLength is the length of a digest in hexadecimal digits.
const digestLength = 16

// identifier identifies what is guarded.
func (g safetyEntry) identifier() string {
	var command []string
	if g.Command != nil {
		for _, w := range g.Command.V {
			command = append(command, w.V)
		}
	}
	// The order of a command's words matters.
	return digest(g.flags.args(), []string{g.kind, g.Expect.V, strings.Join(command, "\x00"), g.History.V, g.Dir.V})
}

// resolveCommand finds a program and its working directory.
func resolveCommand(plan string, words argument, history, dir textValue) (program, error) {
	p := program{dir: beside(plan, or(dir.V, "."))}
	for _, w := range words.V {
		p.words = append(p.words, w.V)
	}
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		return p, yamlfile.Errorf(dir.at, "%s is not a directory in which a command can run", p.dir)
	}
	path, err := p.words[0], error(nil)
	if !strings.ContainsRune(path, filepath.Separator) {
		path, err = exec.LookPath(path)
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(p.dir, path)
	}
	if err == nil {
		p.path, err = executable(path)
	}
	if err != nil {
		return p, yamlfile.Errorf(words.V[0].at, "the command cannot be run: %s", phrase.OneLine(err.Error()))
	}
	if history.V != "" {
		p.history = history.V
		if !filepath.IsAbs(p.history) {
			p.history = filepath.Join(p.dir, p.history)
		}
	}
	return p, nil
}

// executable returns the absolute path of a program, or an error if the file at path cannot be run.
func executable(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return exec.LookPath(path) // looks a path without a directory up in $PATH, so path must be absolute
}

// program is a command of the user's.
type program struct {
	words   []string
	path    string // of the program, its first word; absolute
	dir     string
	history string // the file that it writes; may be empty
}
