package reports

import (
	"fmt"
	"strings"

	"oversell/variant"
)

// Difference describes what changed from one run to another.
type Difference struct {
	A, B Run
	// Chosen are the variants that differ, which the comparison is about; Unlike are other settings that differ and
	// may have caused a change.
	Chosen, Unlike []Setting
	// Kind is the operation whose latencies are compared.
	Kind     string
	Measures []Measure
}

// Setting is a setting with different values in two runs.
type Setting struct{ Name, A, B string }

// Measure is a quantity of both runs.
type Measure struct {
	Name, Unit string
	// A and B have intervals if Sure; otherwise there were too few operations for them.
	A, B Interval
	Sure bool
	// Ratio is B divided by A; nil if the runs are not alike or there is no interval.
	Ratio *Interval
}

// Interval is a measured value with its confidence interval.
type Interval struct{ Value, Low, High float64 }

// DifferenceMethod explains the intervals.
const DifferenceMethod = "Intervals are of 95 %, by a block bootstrap: each run is cut into 20 parts of equal length, 20 of them are drawn with replacement, 1,000 times, and the interval is the middle 95 % of the results. They show the variation within these two runs, not between two runs on the same machine: for that, repeat both, or use oversell compare, which runs them in turns"

// Alike reports whether the runs had the same conditions.
func (d Difference) Alike() bool { return len(d.Unlike) == 0 }

// Headline summarizes the difference in a sentence.
func (d Difference) Headline() string {
	if !d.Alike() {
		var names []string
		for _, s := range d.Unlike {
			names = append(names, s.Name)
		}
		return "Not comparable: the runs differ in " + strings.Join(names, ", ")
	}
	if d.A.Verdict != d.B.Verdict {
		return fmt.Sprintf("The verdict changed from %s to %s", d.A.Verdict, d.B.Verdict)
	}
	if n := len(d.Changed()); n > 0 {
		return fmt.Sprintf("Both are %s; %s differently", d.A.Verdict, cameOut(n))
	}
	return fmt.Sprintf("Both are %s, and every property came out the same", d.A.Verdict)
}

func cameOut(n int) string {
	if n == 1 {
		return "1 property came out"
	}
	return fmt.Sprintf("%d properties came out", n)
}

// Moved returns sentences about the measures that changed, by their intervals.
func (d Difference) Moved() (sentences []string) {
	for _, m := range d.Measures {
		if m.Moved() {
			sentences = append(sentences, fmt.Sprintf("%s: %s times A's (%s to %s)", m.Name, Figures3(m.Ratio.Value), Figures3(m.Ratio.Low), Figures3(m.Ratio.High)))
		}
	}
	return sentences
}

// Moved reports whether the interval of the ratio excludes 1.
func (m Measure) Moved() bool { return m.Ratio != nil && (m.Ratio.Low > 1 || m.Ratio.High < 1) }

// PropertyPair is a property of two runs; nil for a run that was not judged by it.
type PropertyPair struct{ A, B *Property }

// Any returns one that is not nil.
func (p PropertyPair) Any() *Property {
	if p.A != nil {
		return p.A
	}
	return p.B
}

// Changed reports whether the results of the property differ.
func (p PropertyPair) Changed() bool {
	return p.A == nil || p.B == nil || p.A.Result != p.B.Result || p.A.Measured != p.B.Measured
}

// Pairs returns the properties of both runs, in the order of A and then of B.
func (d Difference) Pairs() (pairs []PropertyPair) {
	type id struct {
		of   variant.Object
		name variant.Property
	}
	at := map[id]int{}
	for i := range d.A.Properties {
		p := &d.A.Properties[i]
		at[id{p.Of, p.Name}] = len(pairs)
		pairs = append(pairs, PropertyPair{A: p})
	}
	for i := range d.B.Properties {
		p := &d.B.Properties[i]
		if j, both := at[id{p.Of, p.Name}]; both {
			pairs[j].B = p
		} else {
			pairs = append(pairs, PropertyPair{B: p})
		}
	}
	return pairs
}

// Changed returns the properties whose results differ.
func (d Difference) Changed() (pairs []PropertyPair) {
	for _, p := range d.Pairs() {
		if p.Changed() {
			pairs = append(pairs, p)
		}
	}
	return pairs
}
