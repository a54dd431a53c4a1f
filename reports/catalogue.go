package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/variant"
)

// CatalogueSchema names the form of a Catalogue.
const CatalogueSchema = "oversell-catalogue/1"

// Catalogue is all that can be run, broken and judged. A section that was not
// asked for is empty.
type Catalogue struct {
	Schema     string                 `json:"schema"`
	Scenarios  []ScenarioInfo         `json:"scenarios,omitempty"`
	Locks      []VariantInfo          `json:"locks,omitempty"`
	Sales      []VariantInfo          `json:"sales,omitempty"`
	Queues     []VariantInfo          `json:"queues,omitempty"`
	IDs        []VariantInfo          `json:"ids,omitempty"`
	Dispatches []VariantInfo          `json:"dispatches,omitempty"`
	Faults     []FaultInfo            `json:"faults,omitempty"`
	Properties []variant.PropertyInfo `json:"properties,omitempty"`
}

// Sections are the names of a Catalogue's sections, as in its JSON form.
var Sections = []string{"scenarios", "locks", "sales", "queues", "ids", "dispatches", "faults", "properties"}

// Only is one section of the catalogue, by its name.
func (c Catalogue) Only(section string) (Catalogue, error) {
	only := Catalogue{Schema: c.Schema}
	switch section {
	case "scenarios":
		only.Scenarios = c.Scenarios
	case "locks":
		only.Locks = c.Locks
	case "sales":
		only.Sales = c.Sales
	case "queues":
		only.Queues = c.Queues
	case "ids":
		only.IDs = c.IDs
	case "dispatches":
		only.Dispatches = c.Dispatches
	case "faults":
		only.Faults = c.Faults
	case "properties":
		only.Properties = c.Properties
	default:
		return Catalogue{}, noSection(section)
	}
	return only, nil
}

func noSection(name string) error {
	if near := variant.Nearest(name, Sections); len(near) > 0 {
		return fmt.Errorf("the list has no section %q: did you mean %s?", name, strings.Join(near, " or "))
	}
	return fmt.Errorf("the list has no section %q: it has %s", name, strings.Join(Sections, ", "))
}

// ScenarioInfo describes a scenario.
type ScenarioInfo struct {
	Name    string           `json:"name"`
	Source  string           `json:"source,omitempty"`
	Summary string           `json:"summary"`
	Objects []variant.Object `json:"objects"`
	// Promises are what the scenario asks of its objects, whatever their variants promise.
	Promises []history.Promise `json:"promises,omitempty"`
}

// FaultInfo describes a thing that can be done to a run.
type FaultInfo struct {
	Name string `json:"name"`
	// Level is where it strikes: client, wire or server.
	Level string `json:"level"`
	// Syntax is the sentence that asks for it, as in --fault.
	Syntax  string `json:"syntax"`
	Summary string `json:"summary"`
}

// VariantInfo describes a lock or a sale.
type VariantInfo struct {
	Name     string             `json:"name"`
	Source   string             `json:"source"`
	Summary  string             `json:"summary"`
	Control  bool               `json:"control,omitempty"`
	Promises []variant.Property `json:"promises"`
	Flaws    []variant.Flaw     `json:"flaws"`
	Needs    variant.Needs      `json:"needs"`
	Fences   bool               `json:"fences,omitempty"`
	// Can lists optional capabilities.
	Can []string `json:"can,omitempty"`
}

// Catalogue writes c for people.
func (t Terminal) Catalogue(c Catalogue) error {
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

func listFaults(b *strings.Builder, fs []FaultInfo) {
	if len(fs) > 0 {
		b.WriteString("\nFaults\n")
	}
	for _, f := range fs {
		fmt.Fprintf(b, "  %s (%s)\n    %s\n    %s\n", f.Name, f.Level, f.Summary, f.Syntax)
	}
}

func variants(b *strings.Builder, title string, vs []VariantInfo) {
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
