package campaign

import (
	"oversell/dispatchimpl"
	"oversell/faults"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// Catalogue lists all scenarios, variants, faults and properties.
func Catalogue() reports.Catalogue {
	c := reports.Catalogue{Schema: reports.CatalogueSchema, Properties: variant.Properties}
	for _, s := range scenarios.All {
		c.Scenarios = append(c.Scenarios, reports.ScenarioInfo{Name: s.Name, Source: s.Source, Summary: s.Summary, Objects: s.Objects, Promises: s.Promises})
	}
	for _, v := range lockimpl.Variants {
		c.Locks = append(c.Locks, reports.VariantInfo{
			Name: v.Name, Was: v.Was, Source: v.Source, Summary: v.Summary, Control: v.Control,
			Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs, Fences: v.Fences,
		})
	}
	for _, v := range stockimpl.Variants {
		c.Sales = append(c.Sales, reports.VariantInfo{
			Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control,
			Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs,
		})
	}
	for _, v := range queueimpl.Variants {
		c.Queues = append(c.Queues, reports.VariantInfo{
			Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control,
			Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs, Can: v.Can(),
		})
	}
	for _, v := range dispatchimpl.Variants {
		c.Dispatches = append(c.Dispatches, reports.VariantInfo{
			Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control,
			Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs,
		})
	}
	for _, v := range idimpl.Variants {
		c.IDs = append(c.IDs, reports.VariantInfo{
			Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control,
			Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs,
		})
	}
	for _, k := range faults.Kinds {
		c.Faults = append(c.Faults, reports.FaultInfo{Name: k.Name, Level: string(k.Level), Syntax: k.Syntax, Summary: k.Summary})
	}
	return c
}
