package reports

import (
	"fmt"
	"strings"

	"oversell/history"
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
