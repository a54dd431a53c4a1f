package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/variant"
)

// Title describes what ran.
func (r Run) Title() string {
	s := cmp.Or(r.Scenario, nameless)
	named := Contender{r.Lock, r.Sale, r.Queue, r.IDs, r.Dispatch}
	for _, of := range variant.Objects {
		if name := named.Of(of); name != "" {
			s += fmt.Sprintf(", %s %s", of, name)
		}
	}
	if r.SQL != "" {
		s += ", on " + r.SQL
	}
	return s
}

// nameless is the title of a run without names.
const nameless = "history"

// Named reports whether a run names what ran.
func (r Run) Named() bool { return r.Title() != nameless }

// Summary describes the outcome briefly.
func (r Run) Summary() string {
	s := r.Verdict
	if r.Sold != nil {
		s += ", sold " + r.SoldOfStock()
	}
	if n := r.Without(); n != "" {
		s += ", no violation in " + n + " opportunities"
	}
	if broke := r.Broke(); len(broke) > 0 {
		s += ", broke " + strings.Join(broke, ", ")
	}
	if !slices.ContainsFunc(r.Properties, func(p Property) bool { return p.Result != NotClaimed }) {
		s += ", because it promises nothing"
		if broke := r.unpromised(); len(broke) > 0 {
			s += "; it would have broken " + strings.Join(broke, ", ")
		}
	}
	return Joined(", ", s, DeclaredNotSeen(r.NotSeen()))
}

// VersusDeclared compares the verdict with what promises and flaws declare, in words that follow it: ", as
// declared"; may be empty.
func (r Run) VersusDeclared() string {
	switch {
	case r.Surprise():
		return ", and no flaw declares that"
	case DeclaredNotSeen(r.NotSeen()) != "":
		return "; " + DeclaredNotSeen(r.NotSeen())
	case r.Verdict == Inconclusive || r.Expected == "":
		return ""
	case r.Verdict == Pass:
		return ", as declared"
	}
	return ", as its flaws declare"
}

// Without formats the smallest number of opportunities of any promise, in which nothing broke.
func (r Run) Without() string {
	n, several := r.fewest()
	switch {
	case r.Verdict != Pass || n == 0:
		return ""
	case several:
		return "≥ " + Thousands(n)
	}
	return Thousands(n)
}

// Broke names the promised properties that were broken or, if none was, the others that were, in brackets.
func (r Run) Broke() []string {
	var promised, others []string
	for _, p := range r.Properties {
		switch {
		case p.Result == Broken:
			promised = append(promised, p.Label(r))
		case p.Result == NotClaimed && p.Measured == Broken && r.PromisesOf(p.Of):
			others = append(others, "("+p.Label(r)+")")
		}
	}
	if len(promised) > 0 {
		return promised
	}
	return others
}

// unpromised lists the broken properties that were not promised.
func (r Run) unpromised() (names []string) {
	for _, p := range r.Properties {
		if p.Result == NotClaimed && p.Measured == Broken {
			names = append(names, p.Label(r))
		}
	}
	return names
}

// PromisesOf reports whether anything was promised about an object. For one without promises, such as the lock
// none, reports do not mention violations.
func (r Run) PromisesOf(o variant.Object) bool {
	return slices.ContainsFunc(r.Properties, func(p Property) bool { return p.Of == o && p.Result != NotClaimed })
}

// Label returns the property's name, with the object if two objects share it.
func (p Property) Label(r Run) string {
	for _, q := range r.Properties {
		if q.Name == p.Name && q.Of != p.Of {
			return fmt.Sprintf("%s (%s)", p.Name, p.Of)
		}
	}
	return string(p.Name)
}

// SoldOfStock formats the pieces sold and the stock: "500/500", or "499/500 +1?" if the outcome of one purchase is
// unknown; empty without a sale.
func (r Run) SoldOfStock() string {
	if r.Sold == nil || r.Stock == nil {
		return ""
	}
	s := Thousands(*r.Sold) + "/" + Thousands(*r.Stock)
	if *r.Unknown > 0 {
		s += fmt.Sprintf(" +%s?", Thousands(*r.Unknown))
	}
	return s
}

// LatencySummary formats p50 / p99 / p99.9 of one kind of operation, in milliseconds; empty if there was none.
func (r Run) LatencySummary(kind string) string {
	l, ok := r.Latency[kind]
	if !ok {
		return ""
	}
	return l.Summary()
}

// Summary formats p50 / p99 / p99.9, in milliseconds.
func (l Latency) Summary() string {
	return Short(l.Call.P50) + " / " + Short(l.Call.P99) + " / " + Short(l.Call.P999)
}

// MainKind returns the operation whose latency is most relevant to a run.
func (r Run) MainKind() string {
	for _, kind := range []string{"acquire", "pop", "take", "buy", "next-id"} {
		if _, ok := r.Latency[kind]; ok && (kind != "acquire" || r.PromisesOf(variant.Lock)) { // acquiring no lock takes no time
			return kind
		}
	}
	return "acquire"
}

// UsefulKind returns the operation that does the run's useful work.
func (r Run) UsefulKind() string {
	for _, kind := range []string{"buy", "pop", "submit", "next-id", "acquire"} {
		if _, ok := r.Latency[kind]; ok {
			return kind
		}
	}
	return "acquire"
}

// usefulWork names the useful work by the kind of operation.
var usefulWork = map[string]string{"buy": "Purchases", "pop": "Deliveries", "submit": "Tasks submitted", "next-id": "Numbers given", "acquire": "Acquisitions"}

// UsefulWork names the useful work of the run.
func (r Run) UsefulWork() string { return usefulWork[r.UsefulKind()] }

// Summary counts the runs by outcome.
func (d Document) Summary() string {
	count := map[string]int{}
	declared, surprises, unseen := 0, 0, 0
	for _, r := range d.Runs {
		count[r.Verdict]++
		if r.Verdict != Inconclusive && r.Expected != "" {
			declared++
		}
		if r.Surprise() {
			surprises++
		}
		if len(r.NotSeen()) > 0 {
			unseen++
		}
	}
	s := fmt.Sprintf("%d passed, %d violated, %d inconclusive", count[Pass], count[Violated], count[Inconclusive])
	switch {
	case declared == 0:
		return s
	case surprises > 0:
		return s + fmt.Sprintf("; %d not as declared (marked with !)", surprises)
	case unseen > 0:
		return s + fmt.Sprintf("; every violation is declared as a flaw, and in %s a declared flaw was not seen", Count(int64(unseen), "run"))
	}
	s += "; every decided outcome is as promises and flaws declare"
	if declared < count[Pass]+count[Violated] {
		s += ", where they declare one"
	}
	return s
}
