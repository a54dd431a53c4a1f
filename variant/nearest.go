package variant

import (
	"slices"
	"strings"
)

// Nearest returns up to three of names that are most like name, best first:
// those that contain it or are contained in it, and those within a few edits.
// It is for telling somebody what they may have meant.
func Nearest(name string, names []string) []string {
	type scored struct {
		name string
		cost int
	}
	var near []scored
	for _, n := range names {
		cost := Edits(name, n)
		if name != "" && (strings.Contains(n, name) || strings.Contains(name, n)) {
			cost = min(cost, 1)
		}
		if cost <= max(2, len(name)/3) {
			near = append(near, scored{n, cost})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.cost - b.cost })
	var out []string
	for _, s := range near[:min(3, len(near))] {
		out = append(out, s.name)
	}
	return out
}

// Edits is the Levenshtein distance.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
