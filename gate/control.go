package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// controlCandidate is a variant known to break that may serve as a control.
type controlCandidate struct {
	what   string
	plan   campaign.Plan
	config scenarios.Config
	byLoad bool // load alone breaks it, so it shows nothing about faults
}

// entryControl is the control of an entry in all rounds.
type entryControl struct {
	name     string
	guards   []history.Promise
	suspects []controlCandidate // in the order in which they are tried until one is caught
	chosen   bool               // suspects[0] is the control

	none   string // why there is no control
	runs   int
	caught int
	missed string // what happened when it was not caught in the second try either
	last   reports.GateControl
	tried  []string

	under   string   // the conditions that are known to break the suspects
	caveats []string // what the control does not show
}

// mostSuspects bounds how many are tried.
const mostSuspects = 4

// controlOf determines the candidates for the control of a combination.
func (r *running) controlOf(ctx context.Context, g *safetyEntry, c scenarios.Config) *entryControl {
	w := &entryControl{name: g.Name.V, guards: c.Promises()}
	switch {
	case g.control.word.V == noControl:
		w.none = "the plan has none (control: none), so it is unknown whether a violation would have been seen"
	case g.control.flags != nil:
		// With several combinations in an entry, each runs the control under its own conditions.
		p, config, err := planFor(ctx, g.control.flags.beside(c, g.flags))
		if err != nil {
			// the control's settings may conflict with the names of this combination
			p, config, err = planFor(ctx, g.control.flags.over(g.flags))
		}
		if err != nil {
			w.none = "the control cannot be run: " + err.Error()
			break
		}
		w.suspects = []controlCandidate{{what: differs(config, c, *g.control.flags), plan: p, config: config}}
		w.chosen = true
		w.caveats = elsewhere(altered("run", func(s *pflag.FlagSet) { new(campaign.Options).Bind(s) }, g.control.flags.over(g.flags), g.flags))
		if len(c.Faults) > 0 && breaks(promising(config, c).ExpectUnder([]variant.Fault{variant.NoFault})) {
			w.caveats = append(w.caveats, "it breaks by load alone, so it does not show that the fault takes effect")
		}
	default:
		w.settle(suspects(ctx, g.flags, c), c)
	}
	return w
}

// settle keeps the suspects that show most. If the faults of c are known to break some, only these: a suspect that
// breaks by load alone is caught even if the faults have no effect.
func (w *entryControl) settle(all []controlCandidate, c scenarios.Config) {
	byFault := slices.DeleteFunc(slices.Clone(all), func(s controlCandidate) bool { return s.byLoad })
	switch {
	case len(all) == 0:
		w.none = "no shipped variant is known to break what this entry guards: name a control (control: {lock: …})"
	case len(byFault) > 0:
		w.suspects, w.under = byFault, "by the conditions of this entry"
		if len(c.Faults) > 0 {
			w.under = "by the fault of this entry"
		}
	default:
		w.suspects, w.under = all, "by load alone"
		if len(c.Faults) > 0 {
			w.caveats = []string{"no variant is known to break by this fault; this one breaks by load alone, so it does not show that the fault takes effect"}
		}
	}
}

// altered returns the flags of a command, other than names of variants, in which a control differs from the entry,
// such as "clients 100 instead of 2". Each call of bind has its own values.
func altered(command string, bind func(*pflag.FlagSet), control, entry flags) (parts []string) {
	valued := func(f flags) (set *pflag.FlagSet) {
		// Errors were reported when the plan was loaded.
		_ = f.parse(command, func(s *pflag.FlagSet) { set = s; bind(s) })
		return set
	}
	of := func(f *pflag.Flag) string { return or(strings.Trim(f.Value.String(), "[]"), "none") }
	is := valued(control)
	valued(entry).VisitAll(func(was *pflag.Flag) {
		if was.Name == "seed" || slices.Contains(variant.Objects, variant.Object(was.Name)) {
			return // controls differ in variants; each run has its own seed
		}
		if now := is.Lookup(was.Name); of(now) != of(was) {
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", was.Name, of(now), of(was)))
		}
	})
	return parts
}

// elsewhere says that a control ran under other conditions than the entry; nothing if it did not.
func elsewhere(altered []string) []string {
	if len(altered) == 0 {
		return nil
	}
	return []string{"not the same configuration: " + strings.Join(altered, ", ")}
}

// differs describes how a control differs from the entry.
func differs(control, c scenarios.Config, f flags) string {
	var parts []string
	a, b := campaign.ContenderOf(control), campaign.ContenderOf(c)
	for _, of := range variant.Objects {
		if is := a.Of(of); is != b.Of(of) {
			parts = append(parts, string(of)+" "+is)
		}
	}
	if len(parts) == 0 {
		parts = f.args()
	}
	return strings.Join(parts, ", ")
}

// suspects returns variants that declare, under the conditions of c, to break what c promises: first up to two that
// need the faults of c, to show that the faults take effect, then variants that break by load alone.
func suspects(ctx context.Context, f flags, c scenarios.Config) (found []controlCandidate) {
	var byFault, byLoad []controlCandidate
	for _, x := range exchanges(c) {
		changed := f.instead(c, x)
		p, config, err := planFor(ctx, changed)
		if err != nil && x.flag == "lock" { // variants that use the lock may need another one, too
			p, config, err = planFor(ctx, changed.without("sale").without("dispatch"))
		}
		if err != nil {
			continue // it does not fit the other variants
		}
		s := controlCandidate{what: differs(config, c, flags{}), plan: p, config: config}
		switch config := promising(config, c); {
		case breaks(config.ExpectUnder([]variant.Fault{variant.NoFault})):
			s.byLoad = true
			byLoad = append(byLoad, s)
		case breaks(config.Expect()):
			byFault = append(byFault, s)
		}
	}
	found = byFault[:min(len(byFault), mostSuspects/2)]
	return append(found, byLoad[:min(len(byLoad), mostSuspects-len(found))]...)
}

func breaks(outcome string, _ []string) bool { return outcome == scenarios.ExpectViolated }

// exchange replaces a variant by another.
type exchange struct{ flag, name string }

// exchanges returns the combinations that differ from c in one variant. The promises of an entry are about its last
// object, which is replaced first.
func exchanges(c scenarios.Config) (xs []exchange) {
	is := campaign.ContenderOf(c)
	add := func(flag, present string, names []string) {
		for _, n := range names {
			if present != "" && n != present {
				xs = append(xs, exchange{flag, n})
			}
		}
	}
	for _, s := range shipped(is) {
		add(s.flag, s.present, s.names)
	}
	return xs
}

// choice is a flag that names a variant, the variant that a combination has, and all that are shipped.
type choice struct {
	flag, present string
	names         []string
}

func shipped(is reports.Contender) (all []choice) {
	for _, of := range variant.Objects {
		all = append(all, choice{string(of), is.Of(of), campaign.Shipped(of)})
	}
	return append(all[1:], all[0]) // the lock last
}

// outside returns the flag of the variant that a system replaces; empty without a system.
func outside(c scenarios.Config) string {
	for _, s := range shipped(campaign.ContenderOf(c)) {
		if s.present != "" && !slices.Contains(s.names, s.present) {
			return s.flag
		}
	}
	return ""
}

// instead returns the flags with another variant than the combination c has.
func (f flags) instead(c scenarios.Config, x exchange) flags {
	f = naming(f, c).without(x.flag).with(x.flag, x.name)
	if x.flag == outside(c) {
		f = f.without("system")
	}
	return f
}

// beside returns the flags of a control on top of those of the combination c. A variant that it names replaces a
// system.
func (f flags) beside(c scenarios.Config, of flags) flags {
	all := naming(of, c)
	if _, names := f.value(outside(c)); names {
		all = all.without("system")
	}
	return f.over(all)
}

// promising returns a combination with the promises of c, so that known violations count even if the variant
// promises nothing.
func promising(config, c scenarios.Config) scenarios.Config {
	config.Lock.Promises, config.Sale.Promises, config.Queue.Promises = c.Lock.Promises, c.Sale.Promises, c.Queue.Promises
	config.IDs.Promises, config.Dispatch.Promises = c.IDs.Promises, c.Dispatch.Promises
	return config
}

// controlRound runs the control for a round: it must be caught in the first or the second try. If the plan names no
// control, the first round chooses one.
func (r *running) controlRound(ctx context.Context, w *entryControl, round int) {
	if w.none != "" || ctx.Err() != nil {
		return
	}
	if !w.chosen {
		r.choose(ctx, w, round)
		return
	}
	for try := range 2 {
		why, ok := r.catch(ctx, w, w.suspects[0], round, try)
		if ok || ctx.Err() != nil {
			return
		}
		w.last.What = w.suspects[0].what
		if try == 1 {
			w.missed = "it must break, and did not: " + why
		}
	}
}

// choose tries the suspects in order, each twice, until one is caught.
func (r *running) choose(ctx context.Context, w *entryControl, round int) {
	for i, s := range w.suspects {
		runs := w.runs
		var why string
		for try := range 2 {
			var ok bool
			why, ok = r.catch(ctx, w, s, round, try)
			if ctx.Err() != nil {
				return
			}
			if ok {
				w.suspects, w.chosen = w.suspects[i:i+1], true
				return
			}
		}
		w.tried = append(w.tried, s.what+": "+why)
		w.last.What = s.what
		if i < len(w.suspects)-1 {
			w.runs = runs // counts only the runs of the control
		}
	}
	var names []string
	for _, s := range w.suspects {
		names = append(names, s.what)
	}
	w.missed = fmt.Sprintf("none of the variants that are known to break %s was caught (%s)", w.under, strings.Join(names, "; "))
	w.chosen, w.suspects = true, w.suspects[:1]
}

// catch runs a suspect and reports whether it broke a guarded promise.
func (r *running) catch(ctx context.Context, w *entryControl, s controlCandidate, round, try int) (why string, ok bool) {
	seed := r.options.Seed + uint64(round) + uint64(try)*1_000_003
	m, err := r.make(ctx, s.plan, s.config, seed, w.name+"-control")
	if ctx.Err() != nil {
		return "", false // it was stopped, which says nothing about the control
	}
	w.runs++
	switch {
	case err != nil:
		return phrase.OneLine(err.Error()), false
	case m == nil:
		return "it was not run", false
	}
	if p := brokenAt(w.guards, m.run.Properties, func(p *reports.Property) string { return p.Measured }); p != nil {
		w.caught++
		w.last = reports.GateControl{What: s.what, Of: p.Of, Property: p.Name, Why: p.Why}
		r.watcher.Said(fmt.Sprintf("      the control, %s, was caught: %s of the %s", s.what, p.Name, p.Of))
		return "", true
	}
	return or(m.run.Why, "no property that this entry guards was broken"), false
}

// brokenAt is the first of the guarded properties that was broken by a result: the measured one says that of what
// nobody promised, too.
func brokenAt(guards []history.Promise, judged []reports.Property, result func(*reports.Property) string) *reports.Property {
	for i := range judged {
		p := &judged[i]
		if result(p) == reports.Broken && slices.Contains(guards, history.Promise{Of: p.Of, Property: p.Name}) {
			return p
		}
	}
	return nil
}

// told reports on the control.
func (w *entryControl) told() reports.GateControl {
	if w.none != "" {
		return reports.GateControl{What: reports.NoControl, Why: w.none}
	}
	c := w.last
	c.Runs, c.Caught, c.Tried, c.Caveats = w.runs, w.caught, w.tried, w.caveats
	c.Good = w.caught > 0 && w.missed == ""
	if !c.Good {
		c.Why = or(w.missed, "it was not run")
	}
	return c
}
