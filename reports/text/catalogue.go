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

// Catalogue writes c for people.
func (t Terminal) Catalogue(c reports.Catalogue) error {
	c = printable.Of(c)
	var b strings.Builder
	if len(c.Scenarios) > 0 {
		b.WriteString("\nScenarios\n")
	}
	for _, s := range c.Scenarios {
		fmt.Fprintf(&b, "  %-20s %s\n", s.Name, s.Summary)
		if s.Source != "" {
			fmt.Fprintf(&b, "  %-20s source: %s\n", "", s.Source)
		}
		for _, p := range s.Promises {
			fmt.Fprintf(&b, "  %-20s promises of the %s, whatever the variant: %s\n", "", p.Of, p.Property)
		}
	}
	variants(&b, "Locks", c.Locks)
	variants(&b, "Sales", c.Sales)
	variants(&b, "Queues", c.Queues)
	variants(&b, "Number generators", c.IDs)
	variants(&b, "Task dispatch", c.Dispatches)
	listFaults(&b, c.Faults)
	if len(c.Properties) > 0 {
		b.WriteString("\nProperties\n")
	}
	for _, p := range c.Properties {
		fmt.Fprintf(&b, "  %-20s %s: %s\n", p.Name, p.Of, p.Promise)
	}
	_, err := fmt.Fprint(t.W, strings.TrimPrefix(b.String(), "\n"))
	return err
}

func listFaults(b *strings.Builder, fs []reports.FaultInfo) {
	if len(fs) > 0 {
		b.WriteString("\nFaults\n")
	}
	for _, f := range fs {
		fmt.Fprintf(b, "  %s (%s)\n    %s\n    %s\n", f.Name, f.Level, f.Summary, f.Syntax)
	}
}

func variants(b *strings.Builder, title string, vs []reports.VariantInfo) {
	if len(vs) > 0 {
		fmt.Fprintf(b, "\n%s\n", title)
	}
	for _, v := range vs {
		fmt.Fprintf(b, "  %s (%s)\n    %s\n", v.Name, v.Source, v.Summary)
		fmt.Fprintf(b, "    promises: %s\n", cmp.Or(join(v.Promises), "nothing"))
		if len(v.Can) > 0 {
			fmt.Fprintf(b, "    can: %s\n", strings.Join(v.Can, ", "))
		}
		if n := needs(v.Needs); n != "" {
			fmt.Fprintf(b, "    needs: %s\n", n)
		}
		for i, f := range v.Flaws {
			if same := alike(v.Flaws, f); same[0] == f.Property && !slices.Contains(v.Flaws[:i], f) {
				fmt.Fprintf(b, "    breaks %s %s: %s\n", join(same), when(f), f.Why)
			}
		}
	}
}

// alike are the properties that the same mechanism breaks under the same
// conditions, in the order of the flaws.
func alike(flaws []variant.Flaw, f variant.Flaw) (ps []variant.Property) {
	for _, g := range flaws {
		if g.Fault == f.Fault && g.Under == f.Under && g.Why == f.Why {
			ps = append(ps, g.Property)
		}
	}
	return ps
}

func join(ps []variant.Property) string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

func needs(n variant.Needs) string {
	var parts []string
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
	return strings.Join(parts, ", ")
}

// when says what a flaw takes.
func when(f variant.Flaw) string {
	s := "by load alone"
	if f.Fault != variant.NoFault {
		s = "on " + string(f.Fault)
	}
	if f.Under != "" {
		s += ", " + f.Under
	}
	return s
}
