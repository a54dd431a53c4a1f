package text

import (
	"cmp"
	"slices"
	"strings"

	"oversell/history"
)

// trait is what some rows of a table have in common.
type trait struct {
	names []string
	rows  string
}

// traits returns what rows have in common, traits of most rows first; names of the same rows form one trait.
func traits(rows []string, has func(row int) []string) (all []trait) {
	having := map[string][]string{} // the rows that have it
	var names []string
	for i, row := range rows {
		for _, name := range has(i) {
			if having[name] == nil {
				names = append(names, name)
			}
			if !slices.Contains(having[name], row) {
				having[name] = append(having[name], row)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(having[b]), len(having[a])) })
	for _, name := range names {
		set := rowSet(having[name], rows)
		if i := slices.IndexFunc(all, func(t trait) bool { return t.rows == set }); i >= 0 {
			all[i].names = append(all[i].names, name)
			continue
		}
		all = append(all, trait{names: []string{name}, rows: set})
	}
	return all
}

// rowSet names some of all rows as briefly as possible.
func rowSet(some, all []string) string {
	var others []string
	for _, name := range all {
		if !slices.Contains(some, name) && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	switch {
	case len(others) == 0 && len(some) > 1:
		return "all"
	case len(others) > 0 && len(others) < len(some):
		return "all but " + strings.Join(others, ", ")
	}
	return strings.Join(some, ", ")
}

// traits writes what rows have in common as a paragraph, if there is anything.
func (s *sheet) traits(label string, rows []string, has func(row int) []string) {
	var parts []string
	for _, t := range traits(rows, has) {
		parts = append(parts, strings.Join(t.names, ", ")+" ("+t.rows+")")
	}
	if len(parts) > 0 {
		s.linef("%s: %s", label, strings.Join(parts, "; "))
	}
}

// untried writes untried conditions under which flaws declare that rows of a table break.
func (s *sheet) untried(rows []string, of [][]history.Untried) {
	all := traits(rows, func(i int) (conditions []string) {
		for _, u := range of[i] {
			conditions = append(conditions, u.Under)
		}
		return conditions
	})
	if len(all) > 0 {
		s.linef("\nDeclared to break under conditions that were not tried here:")
		table[trait]{indent: "  ", columns: []column[trait]{
			{prose: true, cell: func(t trait) string { return strings.Join(t.names, ", ") }},
			{prose: true, cell: func(t trait) string { return t.rows }},
		}}.write(s, all)
	}
}
