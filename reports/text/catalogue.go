package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
	"oversell/variant"
)

// Catalogue writes an overview of c: a table for each section with, below it, what its entries share.
func (t Terminal) Catalogue(c reports.Catalogue) error {
	c = printable.Of(c)
	s := t.sheet()
	scenarios(s, c.Scenarios)
	for _, k := range kindsOf(c) {
		overview(s, k)
	}
	faults(s, c.Faults)
	properties(s, c.Properties)
	return t.show(s)
}

// CatalogueDetails writes everything about the entries of c.
func (t Terminal) CatalogueDetails(c reports.Catalogue) error {
	c = printable.Of(c)
	s := t.sheet()
	scenarios(s, c.Scenarios)
	for _, k := range kindsOf(c) {
		for _, v := range k.variants {
			details(s, v)
		}
	}
	for _, f := range c.Faults {
		s.entry(f.Name+" ("+f.Level+")", f.Summary, "syntax: "+f.Syntax)
	}
	properties(s, c.Properties)
	return t.show(s)
}

// entry writes a paragraph with a heading from the non-empty lines.
func (s *sheet) entry(head string, lines ...string) {
	s.section(head)
	for _, line := range lines {
		if line != "" {
			s.linef("  %s", line)
		}
	}
}

// section writes a heading, after an empty line unless it is the first.
func (s *sheet) section(head string) {
	if s.Len() > 0 {
		s.linef("")
	}
	s.linef("%s", head)
}

// kind is a section of variants.
type kind struct {
	title, section string
	variants       []variant.Described
}

// kinds are the sections of the catalogue, by object.
var kinds = map[variant.Object]kind{
	variant.Lock: {title: "Locks", section: "locks"}, variant.Sale: {title: "Sales", section: "sales"}, variant.Queue: {title: "Queues", section: "queues"},
	variant.IDs: {title: "Id generators", section: "ids"}, variant.Dispatch: {title: "Task dispatch", section: "dispatches"},
}

func kindsOf(c reports.Catalogue) (all []kind) {
	for _, of := range variant.Objects {
		k := kinds[of]
		if k.variants = *c.Variants(of); len(k.variants) > 0 {
			all = append(all, k)
		}
	}
	return all
}

func scenarios(s *sheet, all []reports.ScenarioInfo) {
	if len(all) == 0 {
		return
	}
	s.section("Scenarios")
	table[reports.ScenarioInfo]{indent: "  ", columns: []column[reports.ScenarioInfo]{
		{cell: func(x reports.ScenarioInfo) string { return x.Name }},
		{prose: true, cell: func(x reports.ScenarioInfo) string {
			lines := []string{x.Summary}
			if x.Source != "" {
				lines = append(lines, "source: "+x.Source)
			}
			for _, p := range x.Promises {
				lines = append(lines, fmt.Sprintf("promises of the %s, whatever the variant: %s", p.Of, p.Property))
			}
			return strings.Join(lines, "\n")
		}},
	}}.write(s, all)
}

func properties(s *sheet, all []variant.PropertyInfo) {
	if len(all) == 0 {
		return
	}
	s.section("Properties")
	table[variant.PropertyInfo]{indent: "  ", columns: []column[variant.PropertyInfo]{
		{cell: func(p variant.PropertyInfo) string { return string(p.Name) }},
		{cell: func(p variant.PropertyInfo) string { return string(p.Of) }},
		{prose: true, cell: func(p variant.PropertyInfo) string { return p.Promise }},
	}}.write(s, all)
}

// overview writes a row for each variant and, below, once, what several of them share.
func overview(s *sheet, k kind) {
	common := k.common()
	s.section(k.title)
	table[variant.Described]{indent: "  ", columns: []column[variant.Described]{
		{title: "NAME", cell: func(v variant.Described) string { return v.Name }},
		{title: "WHAT IT IS", prose: true, cell: func(v variant.Described) string { return v.Summary }},
		{title: "BREAKS UNDER", rank: 1, prose: true, cell: func(v variant.Described) string {
			said := conditions(v.Flaws, func(f variant.Flaw) bool { return slices.Contains(common, f.Why) })
			return strings.Join(conditions(v.Flaws, func(f variant.Flaw) bool { return !slices.Contains(said, condition(f)) }), ", ")
		}},
	}}.write(s, k.variants)
	var names []string
	for _, v := range k.variants {
		names = append(names, v.Name)
	}
	s.linef("")
	s.traits("  promises", names, func(i int) []string { return words(k.variants[i].Promises) })
	s.traits("  needs", names, func(i int) []string { return needs(k.variants[i].Needs) })
	s.traits("  can", names, func(i int) []string { return k.variants[i].Can })
	s.traits("  old names", names, func(i int) []string { return k.variants[i].Was })
	if len(common) > 0 {
		s.linef("  most break under")
	}
	for _, why := range common {
		var having, under []string
		for _, v := range k.variants {
			if here := conditions(v.Flaws, func(f variant.Flaw) bool { return f.Why == why }); len(here) > 0 {
				having, under = append(having, v.Name), append(under, here...)
			}
		}
		slices.Sort(under)
		s.linef("  - %s: %s (%s)", strings.Join(slices.Compact(under), ", "), why, rowSet(having, names))
	}
	s.linef("  source, promises and every flaw of one: oversell list %s %s", k.section, names[len(names)/2])
}

// common returns the reasons of flaws that at least half of the variants share.
func (k kind) common() (reasons []string) {
	n := map[string]int{}
	for _, v := range k.variants {
		for _, why := range reasonsOf(v.Flaws) {
			if n[why]++; n[why] > 1 && 2*n[why] >= len(k.variants) && !slices.Contains(reasons, why) {
				reasons = append(reasons, why)
			}
		}
	}
	return reasons
}

// reasonsOf returns the reasons of flaws, each once.
func reasonsOf(flaws []variant.Flaw) (reasons []string) {
	for _, f := range flaws {
		if !slices.Contains(reasons, f.Why) {
			reasons = append(reasons, f.Why)
		}
	}
	return reasons
}

// conditions returns the conditions of some flaws, each once.
func conditions(flaws []variant.Flaw, some func(variant.Flaw) bool) (all []string) {
	for _, f := range flaws {
		if c := condition(f); some(f) && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// condition returns the conditions of a flaw.
func condition(f variant.Flaw) string {
	under := strings.ReplaceAll(f.Under, variant.And, " and ")
	switch {
	case f.Fault == variant.NoFault:
		return cmp.Or(under, "load alone")
	case under != "":
		return string(f.Fault) + " with " + under
	}
	return string(f.Fault)
}

// details writes everything about a variant.
func details(s *sheet, v variant.Described) {
	head := v.Name
	if len(v.Was) > 0 {
		head += " (was " + strings.Join(v.Was, ", ") + ")"
	}
	lines := []string{v.Summary, "source: " + v.Source, "promises: " + cmp.Or(strings.Join(words(v.Promises), ", "), "nothing")}
	if len(v.Can) > 0 {
		lines = append(lines, "can: "+strings.Join(v.Can, ", "))
	}
	if n := needs(v.Needs); len(n) > 0 {
		lines = append(lines, "needs: "+strings.Join(n, ", "))
	}
	for _, why := range reasonsOf(v.Flaws) {
		lines = append(lines, "breaks "+breaks(v.Flaws, why)+": "+why)
	}
	s.entry(head, lines...)
}

// breaks describes which properties break for one reason, and under which conditions.
func breaks(flaws []variant.Flaw, why string) string {
	because := func(f variant.Flaw) bool { return f.Why == why }
	under := map[string][]string{} // by properties
	var order []string
	for _, c := range conditions(flaws, because) {
		var ps []string
		for _, f := range flaws {
			if because(f) && condition(f) == c && !slices.Contains(ps, string(f.Property)) {
				ps = append(ps, string(f.Property))
			}
		}
		properties := strings.Join(ps, ", ")
		if under[properties] == nil {
			order = append(order, properties)
		}
		under[properties] = append(under[properties], c)
	}
	for i, properties := range order {
		order[i] = properties + " under " + strings.Join(under[properties], ", ")
	}
	return strings.Join(order, "; ")
}

func words(ps []variant.Property) (names []string) {
	for _, p := range ps {
		names = append(names, string(p))
	}
	return names
}

func needs(n variant.Needs) (parts []string) {
	if n.Masters > 1 {
		parts = append(parts, fmt.Sprintf("%d or more independent masters", n.Masters))
	}
	if n.WholeSeconds {
		parts = append(parts, "a lease of whole seconds")
	}
	if n.SQL {
		parts = append(parts, "an SQL database")
	}
	if n.Fence {
		parts = append(parts, "a lock that grants fencing tokens")
	}
	return parts
}

// faults writes what each fault does and how its sentence begins and, below, once, the clauses that several
// sentences share.
func faults(s *sheet, all []reports.FaultInfo) {
	if len(all) == 0 {
		return
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	s.section("Faults")
	table[reports.FaultInfo]{indent: "  ", columns: []column[reports.FaultInfo]{
		{title: "SENTENCE", prose: true, cell: func(f reports.FaultInfo) string {
			begin, _ := clauses(f.Syntax)
			return begin
		}},
		{title: "AT", cell: func(f reports.FaultInfo) string { return f.Level }},
		{title: "WHAT IT DOES", prose: true, cell: func(f reports.FaultInfo) string { return f.Summary }},
	}}.write(s, all)
	s.linef("")
	s.traits("  optional clauses", names, func(i int) []string {
		_, more := clauses(all[i].Syntax)
		return more
	})
	s.linef("  node N and client N count from 1; client 1 is client 0 in histories and reports")
	s.linef("  the whole syntax of one: oversell list faults %s", names[0])
}

// clauses splits the syntax of a fault into its own part and the clauses that it shares with other faults, for
// targets and times.
func clauses(syntax string) (own string, shared []string) {
	var kept []string
	for part := range strings.SplitSeq(syntax, " [") {
		clause := "[" + part
		if len(kept) > 0 && slices.ContainsFunc(clauseWords, func(w string) bool { return strings.HasPrefix(part, w) }) {
			shared = append(shared, clause)
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, " ["), shared
}

// clauseWords begin the clauses that many faults share.
var clauseWords = []string{"key ", "in ", "holder|", "client ", "node ", "at ", "every ", "nth ", "times "}
