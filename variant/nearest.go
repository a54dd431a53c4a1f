package variant

import (
	"slices"
	"strings"
)

// Nearest returns up to three of names that are most like name, best first, whatever their case: those that contain it
// or are contained in it (the shorter one has at least three letters), and those within a few edits: none for names of
// one or two letters, one for three or four, then a third of the letters, at least two. It serves hints about misspelt
// names.
func Nearest(name string, names []string) []string {
	type scored struct {
		name string
		cost int
	}
	var near []scored
	name = strings.ToLower(name)
	for _, original := range names {
		n := strings.ToLower(original)
		cost := Edits(name, n)
		if min(len(name), len(n)) >= 3 && (strings.Contains(n, name) || strings.Contains(name, n)) {
			cost = min(cost, 1)
		}
		if cost <= slips(min(len(name), len(n))) {
			near = append(near, scored{original, cost})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.cost - b.cost })
	var out []string
	for _, s := range near[:min(3, len(near))] {
		out = append(out, s.name)
	}
	return out
}

// slips returns how many edits may separate a name of so many letters from a similar one.
func slips(letters int) int {
	if letters < 5 {
		return letters / 3
	}
	return max(2, letters/3)
}

// Edits returns how many bytes must be added, removed, replaced, or exchanged with their neighbour to turn one text
// into another.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	above := slices.Clone(row) // the row before row
	for i := range len(a) {
		diagonal := row[0]
		before := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], above[j-1]+1)
			}
		}
		above = before
	}
	return row[len(b)]
}

// First returns the first element of all for which is reports true, and whether there is one.
func First[V any](all []V, is func(V) bool) (first V, found bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return first, false
}
