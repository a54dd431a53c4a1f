package gate

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"oversell/internal/exactjson"
	"oversell/reports"
)

// mostSlowdown is the largest slow-down that a baseline may hold: a thousand times as long.
const mostSlowdown = 999

// unknownKeys returns an error if a baseline file has a key that a Baseline does not have: what it should have been is
// missing. The names are those of the outermost object.
func unknownKeys(names exactjson.Names) error {
	if len(names.Unknown) > 0 {
		return fmt.Errorf("it has the unknown key %q; the keys are %s", names.Unknown[0], english.WordSeries(keys(reflect.TypeFor[Baseline]()), "and"))
	}
	if len(names.Deeper) > 0 {
		return fmt.Errorf("it has the unknown key %q", names.Deeper[0])
	}
	return nil
}

// keys returns the names of the fields of a type in JSON.
func keys(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// check validates a baseline file: it may have been edited by hand, or merged from two. What Record returns is
// always valid.
func (b *Baseline) check() error {
	switch {
	case b.Safety == nil:
		return errors.New("it has no list safety; without entries it is []")
	case b.Performance == nil:
		return errors.New("it has no list performance; without entries it is []")
	case len(b.Safety)+len(b.Performance) == 0:
		return errors.New("it has no entries")
	}
	if b.Machine.Cores < 1 {
		return fmt.Errorf("its machine has %d cores", b.Machine.Cores)
	}
	names := map[string]bool{}
	for _, e := range b.Safety {
		if err := checkEntry(names, "safety", e.Name, e.Digest); err != nil {
			return err
		}
		switch {
		case e.Expect != reports.Pass && e.Expect != reports.Violated:
			return fmt.Errorf("the entry %q under safety: expect is %q, and must be %q or %q", e.Name, e.Expect, reports.Pass, reports.Violated)
		case e.Verdict != reports.Pass:
			return fmt.Errorf("the entry %q under safety: its verdict is %q, and only %q is recorded", e.Name, e.Verdict, reports.Pass)
		}
	}
	clear(names)
	for _, a := range b.Performance {
		if err := checkEntry(names, "performance", a.Name, a.Digest); err != nil {
			return err
		}
		if err := a.check(); err != nil {
			return fmt.Errorf("the entry %q under performance: %w", a.Name, err)
		}
	}
	return nil
}

// checkEntry checks the fields that both sections have; names are those of earlier entries.
func checkEntry(names map[string]bool, section, name, digest string) error {
	switch {
	case name == "":
		return fmt.Errorf("an entry under %s has no name", section)
	case names[name]:
		return fmt.Errorf("the entry %q under %s appears twice", name, section)
	case len(digest) != digestLength || strings.Trim(digest, "0123456789abcdef") != "":
		return fmt.Errorf("the entry %q under %s: its digest is %q, and must be %d hexadecimal digits", name, section, digest, digestLength)
	}
	names[name] = true
	return nil
}

func (a *Accepted) check() error {
	switch {
	case a.Rounds < 1:
		return fmt.Errorf("it was measured in %d rounds", a.Rounds)
	case a.Length < 0:
		return fmt.Errorf("its runs have a length of %d", a.Length)
	case len(a.Measures) == 0:
		return errors.New("it has no measures")
	}
	names := map[string]bool{}
	for _, m := range a.Measures {
		if names[m.Name] {
			return fmt.Errorf("the measure %q appears twice", m.Name)
		}
		names[m.Name] = true
		if err := checkMeasure(m); err != nil {
			return fmt.Errorf("the measure %q: %w", m.Name, err)
		}
	}
	return nil
}

// checkMeasure returns an error for a measure that a gate cannot have recorded.
func checkMeasure(m reports.GateMeasure) error {
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	switch {
	case m.Name == "":
		return errors.New("it has no name")
	case m.Verdict != reports.Pass:
		return fmt.Errorf("its verdict is %q, and only %q is recorded", m.Verdict, reports.Pass)
	case !positive(m.Candidate) || !positive(m.Baseline):
		return fmt.Errorf("candidate %v and baseline %v must be above 0", m.Candidate, m.Baseline)
	case !positive(m.Allowed) || m.Allowed > mostSlowdown:
		return fmt.Errorf("allowed is %v, and must be above 0 and at most %d", m.Allowed, mostSlowdown)
	case m.Slowdown.Low == nil || m.Slowdown.High == nil:
		return errors.New("its slowdown has no interval")
	}
	for _, e := range []struct {
		name string
		is   reports.Estimate
	}{{"slowdown", m.Slowdown}, {"noise", m.Noise}} {
		if err := checkEstimate(e.is); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if !m.Slowdown.Within(m.Allowed) {
		return fmt.Errorf("slowdown: the distance from middle %v to high %v exceeds the allowed %v, and such noise is not recorded", m.Slowdown.Middle, *m.Slowdown.High, m.Allowed)
	}
	return nil
}

// checkEstimate checks an estimate: its numbers are relative slow-downs, above -1, in order.
func checkEstimate(e reports.Estimate) error {
	low, high := e.Middle, e.Middle
	if e.Low != nil {
		low = *e.Low
	}
	if e.High != nil {
		high = *e.High
	}
	for _, x := range []float64{low, e.Middle, high} {
		if !(x > -1 && x <= mostSlowdown) {
			return fmt.Errorf("%v is not a slow-down: it must be above -1 and at most %d", x, mostSlowdown)
		}
	}
	if low > e.Middle || e.Middle > high {
		return fmt.Errorf("low %v, middle %v and high %v are not in order", low, e.Middle, high)
	}
	return nil
}

// fits returns an error if what the baseline accepts cannot belong to the plan's entry with the same digest: it
// lacks a measure, or has runs of a length that the gate does not choose.
func (b *Baseline) fits(p *Plan) error {
	if b == nil {
		return nil
	}
	for i := range p.speed {
		r := &p.speed[i]
		a, known := carriedOut(b.Performance, r.Name.V, func(a Accepted) string { return a.Name })
		if !known || a.Digest != r.fingerprint() {
			continue // reported with the plan's result
		}
		if !r.chooses(a.Length) {
			return fmt.Errorf("the baseline file has the entry %q under performance with runs of %s, which the gate does not choose for it: write it again with --write-baseline", r.Name.V, or(length{r.length.flag, a.Length}.String(), fmt.Sprint(a.Length)))
		}
		for _, name := range r.measures {
			called := r.called(name)
			if !slices.ContainsFunc(a.Measures, func(m reports.GateMeasure) bool { return m.Name == called && m.Allowed == r.slower[name] }) {
				return fmt.Errorf("the baseline file has the entry %q under performance without its measure %s, of which %s is allowed: write it again with --write-baseline", r.Name.V, called, reports.Percent(r.slower[name]))
			}
		}
	}
	return nil
}

// chooses reports whether the gate could have chosen this length of runs, given the noise of a machine. Length 0
// means that the plan sets the length.
func (c *speedEntry) chooses(l int64) bool {
	if c.length.flag == "" || l == 0 {
		return l == 0
	}
	for n := c.length; n.value <= c.length.value*mostGrowth; n = n.times(2) {
		if n.value == l {
			return true
		}
	}
	return false
}

// unguarded names entries of the plan that are not in the baseline: nothing is accepted for them, and their removal
// goes unnoticed.
func (b *Baseline) unguarded(p *Plan) (sentences []string) {
	if b == nil {
		return nil
	}
	say := func(section, name string) {
		sentences = append(sentences, fmt.Sprintf("the baseline file lacks the entry %q under %s: no slow-down of it is accepted, and its removal from the plan goes unnoticed; record it with --write-baseline", name, section))
	}
	for i := range p.safety {
		name := p.safety[i].Name.V
		if !slices.ContainsFunc(b.Safety, func(e Guarded) bool { return e.Name == name }) {
			say("safety", name)
		}
	}
	for i := range p.speed {
		name := p.speed[i].Name.V
		if !slices.ContainsFunc(b.Performance, func(a Accepted) bool { return a.Name == name }) {
			say("performance", name)
		}
	}
	return sentences
}
