package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"oversell/internal/exactjson"
	"oversell/reports"
)

// BaselineSchema identifies the format of a Baseline.
const BaselineSchema = baselineSchemas + "1"

// baselineSchemas begins the schemas of all versions.
const baselineSchemas = "oversell-baseline/"

// Baseline is what a gate has recorded for later ones. It does not hold speeds, which are always compared within
// one gate. It lists the entries, so that none disappears unnoticed, and by how much each candidate was slower than
// its counterpart; later gates accept these slow-downs.
type Baseline struct {
	Schema  string          `json:"schema"`
	Written time.Time       `json:"written"`
	Plan    string          `json:"plan"`
	Machine reports.Machine `json:"machine"`

	Safety      []Guarded  `json:"safety"`
	Performance []Accepted `json:"performance"`
}

// Guarded is an entry that kept its promises, or broke them as the plan expects.
type Guarded struct {
	Name string `json:"name"`
	// Digest identifies everything that determines what the entry does.
	Digest  string `json:"digest"`
	Expect  string `json:"expect"`
	Verdict string `json:"verdict"`
}

// Accepted is an entry under performance with its measures.
type Accepted struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Rounds int    `json:"rounds"`
	// Length is the length of the runs, in the unit of what ends them (nanoseconds or pieces), if the gate chose
	// it.
	Length int64 `json:"length,omitempty"`
	// Redis names the versions of the servers of this comparison; it is empty in files of earlier versions.
	Redis    string                `json:"redis,omitempty"`
	Measures []reports.GateMeasure `json:"measures"`
}

// IsBaseline reports whether a file with this text is a baseline, be it of another version or not valid.
func IsBaseline(text []byte) bool {
	var b struct{ Schema string }
	return json.Unmarshal(text, &b) == nil && strings.HasPrefix(b.Schema, baselineSchemas)
}

// ReadBaseline reads a baseline file.
func ReadBaseline(path string) (*Baseline, error) {
	source, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no baseline %s: write one with --write-baseline", path)
	case err != nil:
		return nil, err
	}
	var b Baseline
	source = bytes.TrimPrefix(source, []byte("\ufeff")) // a byte order mark
	names, err := exactjson.UnmarshalNoting(source, &b)
	if err != nil {
		return nil, fmt.Errorf("%s is not a baseline: %w; write it again with --write-baseline", path, exactjson.InWords(source, err))
	}
	if b.Schema != BaselineSchema {
		return nil, fmt.Errorf("%s: its schema is %q, and this build reads %q: nothing was compared; write it again with --write-baseline", path, b.Schema, BaselineSchema)
	}
	if err = unknownKeys(names); err == nil {
		err = b.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a valid baseline: %w: nothing was compared; write it again with --write-baseline", path, err)
	}
	return &b, nil
}

// Record turns a gate into a baseline. An entry that decided nothing is left out, with a sentence that explains
// why. If anything else is red, or nothing was decided, there is no baseline, and the error explains why.
func (p *Plan) Record(g reports.Gate, now time.Time) (b Baseline, left []string, err error) {
	b = Baseline{Schema: BaselineSchema, Written: now.UTC().Truncate(time.Second), Plan: filepath.Base(p.Path), Machine: g.Machine, Safety: []Guarded{}, Performance: []Accepted{}}
	if why := unrecordable(g); why != "" {
		return b, nil, errors.New("no baseline was written: " + why)
	}
	leave := func(name, section, why string) {
		left = append(left, fmt.Sprintf("%q under %s is not in the baseline, because it decided nothing: %s", name, section, or(why, "it gave no reason")))
	}
	for i := range p.safety {
		e, made := carriedOut(g.Safety, p.safety[i].Name.V, func(e reports.GateEntry) string { return e.Name })
		if !made || e.Verdict != reports.Pass {
			leave(p.safety[i].Name.V, "safety", undecidedBecause(e))
			continue
		}
		b.Safety = append(b.Safety, Guarded{Name: e.Name, Digest: p.safety[i].fingerprint(), Expect: e.Expect, Verdict: e.Verdict})
	}
	for i := range p.speed {
		e, made := carriedOut(g.Performance, p.speed[i].Name.V, func(e reports.GatePerformance) string { return e.Name })
		if !made || e.Verdict != reports.Pass {
			leave(p.speed[i].Name.V, "performance", e.Why)
			continue
		}
		a := Accepted{Name: e.Name, Digest: p.speed[i].fingerprint(), Rounds: e.Rounds, Length: e.Length, Redis: e.Redis, Measures: e.Measures}
		if err := a.check(); err != nil { // it could not be read again
			leave(e.Name, "performance", err.Error())
			continue
		}
		b.Performance = append(b.Performance, a)
	}
	if len(b.Safety)+len(b.Performance) == 0 {
		return b, left, errors.New("no baseline was written: no entry decided anything")
	}
	return b, left, nil
}

// unrecordable explains why a gate cannot be recorded; empty if it can.
func unrecordable(g reports.Gate) string {
	switch v := g.Judged(); {
	case g.Interrupted:
		return "the gate was stopped before its end"
	case v != reports.Pass && v != reports.Inconclusive:
		return fmt.Sprintf("the gate is red (%s), which a baseline cannot accept", v)
	}
	return ""
}

// carriedOut returns the result of the named entry, and whether there is one.
func carriedOut[E any](all []E, name string, nameOf func(E) string) (e E, made bool) {
	if i := slices.IndexFunc(all, func(e E) bool { return nameOf(e) == name }); i >= 0 {
		return all[i], true
	}
	return e, false
}

// undecidedBecause returns the reason why an entry decided nothing.
func undecidedBecause(e reports.GateEntry) string {
	for _, c := range e.Cases {
		if c.Verdict != reports.Pass {
			return or(c.Why, strings.Join(e.Notes, "; "))
		}
	}
	return strings.Join(e.Notes, "; ")
}

// missing names entries of the baseline that are not in the plan, or were changed there: an entry that was weakened
// or reversed no longer guards the same.
func (b *Baseline) missing(p *Plan) (sentences []string) {
	if b == nil {
		return nil
	}
	say := func(format string, a ...any) { sentences = append(sentences, fmt.Sprintf(format, a...)) }
	const gone = "the baseline has %q under %s, and the plan does not: put it back or, if that is intended, write the baseline again"
	const changed = "the entry %q under %s changed since the baseline was recorded: put it back or, if that is intended, record it again with --write-baseline"
	for _, e := range b.Safety {
		i := slices.IndexFunc(p.safety, func(g safetyEntry) bool { return g.Name.V == e.Name })
		switch {
		case i < 0:
			say(gone, e.Name, "safety")
		case p.safety[i].Expect.V != e.Expect:
			say("the baseline has %q under safety with expect: %s, and the plan has it with expect: %s: put it back or, if that is intended, record it again with --write-baseline", e.Name, e.Expect, p.safety[i].Expect.V)
		case p.safety[i].fingerprint() != e.Digest:
			say(changed, e.Name, "safety")
		}
	}
	for _, e := range b.Performance {
		i := slices.IndexFunc(p.speed, func(r speedEntry) bool { return r.Name.V == e.Name })
		switch {
		case i < 0:
			say(gone, e.Name, "performance")
		case p.speed[i].fingerprint() != e.Digest:
			say(changed, e.Name, "performance")
		}
	}
	return sentences
}

// fingerprint identifies what an entry guards and how well: what it runs, how often, with which control and which
// limits.
func (g safetyEntry) fingerprint() string {
	var limits []string
	for _, l := range g.Limits {
		limits = append(limits, fmt.Sprintf("%s.%s %v", l.operation, l.percentile, l.most.V))
	}
	return digest([]string{g.identifier()}, []string{fmt.Sprint("repeat ", g.repeat)}, []string{fmt.Sprint("budget ", g.budget)},
		[]string{fmt.Sprint("seeds ", g.seeds)}, g.control.fingerprint(), limits)
}

// fingerprint identifies a control regardless of its name.
func (c control) fingerprint() []string {
	switch {
	case c.flags != nil:
		return append([]string{"flags"}, c.flags.args()...)
	case c.command != nil:
		var words []string
		for _, w := range c.command.V {
			words = append(words, w.V)
		}
		return []string{"command " + shell(words), "history " + c.history.V} // the order of the words matters
	}
	return []string{"word " + or(c.word.V, autoControl)}
}

// fingerprint identifies what is compared, by which measures, and the allowed slow-downs.
func (r *speedEntry) fingerprint() string {
	var allowed []string
	for _, m := range r.measures {
		allowed = append(allowed, fmt.Sprintf("%s %v", m, r.slower[m]))
	}
	return digest([]string{r.identifier}, allowed, []string{fmt.Sprint("rounds ", r.rounds), fmt.Sprint("budget ", r.budget)})
}

// entry returns the baseline's entry of a comparison. If it is nil although the baseline has the entry, a sentence
// explains why it does not count.
func (b *Baseline) entry(r *speedEntry) (*Accepted, string) {
	if b == nil {
		return nil, ""
	}
	i := slices.IndexFunc(b.Performance, func(a Accepted) bool { return a.Name == r.Name.V })
	switch {
	case i < 0:
		return nil, ""
	case b.Performance[i].Digest != r.fingerprint():
		return nil, "the entry has changed since the baseline was written, so the slow-down that the baseline accepts does not count; write it again"
	}
	return &b.Performance[i], ""
}

// accepted returns what the baseline accepts for an entry that was measured on this machine and on servers of these
// versions. If it is nil although the baseline has the entry, a sentence explains why its numbers do not count.
func (b *Baseline) accepted(r *speedEntry, m reports.Machine, redis string) (*Accepted, string) {
	a, why := b.entry(r)
	if a == nil {
		return nil, why
	}
	was := b.Machine
	m.Redis = redis
	if a.Redis != "" {
		was.Redis = a.Redis
	} else { // an earlier version of oversell wrote only the version of the first server of the plan
		m.Redis, _, _ = strings.Cut(redis, against)
	}
	if was != m {
		return nil, fmt.Sprintf("the baseline is from another machine (%s; this is %s), so the slow-down that it accepts does not count; write one on this machine", was, m)
	}
	return a, ""
}

// recorded returns the baseline's entry of a comparison before its servers are known; nil if it is of another machine.
func (b *Baseline) recorded(r *speedEntry, m reports.Machine) *Accepted {
	a, _ := b.entry(r)
	if a == nil {
		return nil
	}
	m.Redis = b.Machine.Redis
	if b.Machine != m {
		return nil
	}
	return a
}

// slowdown returns the largest measured slow-down of a measure; nil if there is none.
func (a *Accepted) slowdown(measure string) *float64 {
	if a == nil {
		return nil
	}
	for _, m := range a.Measures {
		if m.Name == measure {
			return m.Slowdown.High
		}
	}
	return nil
}

// thisMachine describes the machine that this program runs on.
func thisMachine() reports.Machine {
	m := reports.Machine{CPU: "unknown processor", Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if infos, err := cpu.Info(); err == nil && len(infos) > 0 && infos[0].ModelName != "" {
		m.CPU = strings.TrimSpace(infos[0].ModelName)
	}
	return m
}
