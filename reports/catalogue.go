package reports

import (
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// CatalogueSchema identifies the format of a Catalogue.
const CatalogueSchema = "oversell-catalogue/1"

// Catalogue lists everything that can be run, injected and judged. A section that was not requested is empty.
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

// Only returns one section of the catalogue, by its name.
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

// variants returns the sections of variants.
func (c *Catalogue) variants() []*[]VariantInfo {
	return []*[]VariantInfo{&c.Locks, &c.Sales, &c.Queues, &c.IDs, &c.Dispatches}
}

// Names returns all names in c, in order.
func (c Catalogue) Names() (names []string) {
	for _, s := range c.Scenarios {
		names = append(names, s.Name)
	}
	for _, section := range c.variants() {
		for _, v := range *section {
			names = append(names, v.Name)
		}
	}
	for _, f := range c.Faults {
		names = append(names, f.Name)
	}
	for _, p := range c.Properties {
		names = append(names, string(p.Name))
	}
	return names
}

// Named keeps only items with one of the names, current or of earlier versions. Every name must match an item.
func (c Catalogue) Named(names ...string) (Catalogue, error) {
	known := c.Names()
	found := map[string]bool{}
	is := func(name string) bool {
		found[name] = true
		return slices.Contains(names, name)
	}
	c.Scenarios = kept(c.Scenarios, func(s ScenarioInfo) bool { return is(s.Name) })
	for _, section := range c.variants() {
		*section = kept(*section, func(v VariantInfo) bool {
			return slices.ContainsFunc(append([]string{v.Name}, v.Was...), is)
		})
	}
	c.Faults = kept(c.Faults, func(f FaultInfo) bool { return is(f.Name) })
	c.Properties = kept(c.Properties, func(p variant.PropertyInfo) bool { return is(string(p.Name)) })
	for _, name := range names {
		if found[name] {
			continue
		}
		if near := variant.Nearest(name, known); len(near) > 0 {
			return Catalogue{}, fmt.Errorf("the list has no %q: did you mean %s?", name, strings.Join(near, " or "))
		}
		return Catalogue{}, fmt.Errorf("the list has no %q: it has %s", name, strings.Join(known, ", "))
	}
	return c, nil
}

// kept returns the requested elements.
func kept[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !is(x) })
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
	// Promises are what the scenario demands of its objects, in addition to what their variants promise.
	Promises []history.Promise `json:"promises,omitempty"`
}

// FaultInfo describes a fault.
type FaultInfo struct {
	Name string `json:"name"`
	// Level is where it fires: client, wire or server.
	Level string `json:"level"`
	// Syntax is the sentence that requests it, as in --fault.
	Syntax  string `json:"syntax"`
	Summary string `json:"summary"`
}

// VariantInfo describes a variant.
type VariantInfo struct {
	Name string `json:"name"`
	// Was are its names in earlier versions.
	Was      []string           `json:"was,omitempty"`
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
