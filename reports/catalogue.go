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
	Locks      []variant.Described    `json:"locks,omitempty"`
	Sales      []variant.Described    `json:"sales,omitempty"`
	Queues     []variant.Described    `json:"queues,omitempty"`
	IDs        []variant.Described    `json:"ids,omitempty"`
	Dispatches []variant.Described    `json:"dispatches,omitempty"`
	Faults     []FaultInfo            `json:"faults,omitempty"`
	Properties []variant.PropertyInfo `json:"properties,omitempty"`
}

// Sections are the names of a Catalogue's sections, as in its JSON form.
var Sections = []string{"scenarios", "locks", "sales", "queues", "ids", "dispatches", "faults", "properties"}

// Only returns one section of the catalogue, by its name.
func (c Catalogue) Only(section string) (Catalogue, error) {
	only := Catalogue{Schema: c.Schema}
	take, known := map[string]func(){
		"scenarios":  func() { only.Scenarios = c.Scenarios },
		"locks":      func() { only.Locks = c.Locks },
		"sales":      func() { only.Sales = c.Sales },
		"queues":     func() { only.Queues = c.Queues },
		"ids":        func() { only.IDs = c.IDs },
		"dispatches": func() { only.Dispatches = c.Dispatches },
		"faults":     func() { only.Faults = c.Faults },
		"properties": func() { only.Properties = c.Properties },
	}[section]
	if !known {
		return Catalogue{}, noSection(section)
	}
	take()
	return only, nil
}

// Variants returns the section of an object's variants.
func (c *Catalogue) Variants(of variant.Object) *[]variant.Described {
	return map[variant.Object]*[]variant.Described{
		variant.Lock: &c.Locks, variant.Sale: &c.Sales, variant.Queue: &c.Queues, variant.IDs: &c.IDs, variant.Dispatch: &c.Dispatches,
	}[of]
}

// Names returns all names in c, in order.
func (c Catalogue) Names() (names []string) {
	for _, s := range c.Scenarios {
		names = append(names, s.Name)
	}
	for _, of := range variant.Objects {
		for _, v := range *c.Variants(of) {
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
	for _, of := range variant.Objects {
		section := c.Variants(of)
		*section = kept(*section, func(v variant.Described) bool {
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
