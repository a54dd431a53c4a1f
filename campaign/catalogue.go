package campaign

import (
	"slices"

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
	for of, all := range Variants() {
		*c.Variants(of) = all
	}
	for i, v := range queueimpl.Variants {
		c.Queues[i].Can = v.Can()
	}
	for _, k := range faults.Kinds {
		c.Faults = append(c.Faults, reports.FaultInfo{Name: k.Name, Level: string(k.Level), Syntax: k.Syntax, Summary: k.Summary})
	}
	return c
}

// Variants returns all shipped variants, by the object that they are.
func Variants() map[variant.Object][]variant.Described {
	return map[variant.Object][]variant.Described{
		variant.Lock: descriptions(lockimpl.Variants), variant.Sale: descriptions(stockimpl.Variants), variant.Queue: descriptions(queueimpl.Variants),
		variant.IDs: descriptions(idimpl.Variants), variant.Dispatch: descriptions(dispatchimpl.Variants),
	}
}

// Shipped returns the names of all shipped variants of an object.
func Shipped(of variant.Object) (names []string) {
	for _, v := range Variants()[of] {
		names = append(names, v.Name)
	}
	return names
}

// kind is a type of variants.
type kind interface{ Described() variant.Described }

func descriptions[V kind](all []V) (ds []variant.Described) {
	for _, v := range all {
		ds = append(ds, v.Described())
	}
	return ds
}

// find returns the variant with this name, or an error that suggests similar names.
func find[V kind](what, wanted string, all []V) (v V, err error) {
	return Find(what, wanted, all, func(v V) string { return v.Described().Name })
}

// shipped reports whether a name is that of a shipped variant of the object.
func shipped(of variant.Object, name string) bool { return slices.Contains(Shipped(of), name) }

// ContenderOf names the variants of a run.
func ContenderOf(c scenarios.Config) reports.Contender {
	used := func(of variant.Object, name string) string {
		if c.Scenario.Uses(of) {
			return name
		}
		return ""
	}
	return reports.Contender{
		Lock: c.Lock.Name, Sale: used(variant.Sale, c.Sale.Name), Queue: used(variant.Queue, c.Queue.Name),
		IDs: used(variant.IDs, c.IDs.Name), Dispatch: used(variant.Dispatch, c.Dispatch.Name),
	}
}
