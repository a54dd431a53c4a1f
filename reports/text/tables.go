package text

import (
	"cmp"
	"slices"
	"strings"

	"oversell/reports"
)

// column is a column of a table with a row for each R.
type column[R any] struct {
	title, unit string
	cell        func(R) string // empty: nothing to show
	// tone colours a cell; nil: no colour.
	tone func(R) tone
	// rank orders the columns by importance. If the columns do not fit, the one with the highest rank is left out
	// first. Columns of rank 0 are never left out.
	rank int
	// prose means that the text may be folded, so that the column can be narrower than its cells. Other columns are
	// as wide as their widest cell.
	prose bool
	// blank leaves empty cells empty. Other columns show a hyphen.
	blank bool
}

// table is the layout of all tables on a terminal.
type table[R any] struct {
	indent  string
	columns []column[R]
}

const (
	// gap separates columns.
	gap = "  "
	// comfortable is the minimum width of a prose column while other columns can be left out instead.
	comfortable = 18
)

// write writes the titles, if there are any, the units and the rows. Columns that are empty in every row are left
// out, then those that do not fit, by rank; a line lists their titles. If the rest does not fit, every row becomes
// a list.
func (x table[R]) write(s *sheet, rows []R) {
	columns := slices.DeleteFunc(slices.Clone(x.columns), func(c column[R]) bool {
		return !slices.ContainsFunc(rows, func(r R) bool { return c.cell(r) != "" })
	})
	var all []extent
	for _, c := range columns {
		all = append(all, c.extent(rows))
	}
	kept, widths, fits := fit(all, s.width-reports.Width(x.indent))
	var shown []column[R]
	var omitted []string
	for i, c := range columns {
		if slices.Contains(kept, i) {
			shown = append(shown, c)
		} else if c.title != "" {
			omitted = append(omitted, c.title)
		}
	}
	if !fits {
		listed(s, x.indent, shown, rows)
	} else {
		headed(s, x.indent, shown, widths)
		for _, r := range rows {
			cells, tones := make([][]string, len(shown)), make([]tone, len(shown))
			for i, c := range shown {
				cells[i] = folded(c.text(r), widths[i])
				if c.tone != nil {
					tones[i] = c.tone(r)
				}
			}
			s.cells(x.indent, widths, cells, tones)
		}
	}
	if len(omitted) > 0 {
		s.linef("%sNot shown in %d columns: %s. A wider terminal, or COLUMNS, shows more.", x.indent, s.width, strings.Join(omitted, ", "))
	}
}

// text returns the text of a cell.
func (c column[R]) text(r R) string {
	if c.blank {
		return c.cell(r)
	}
	return cmp.Or(c.cell(r), "-")
}

// extent measures a column.
func (c column[R]) extent(rows []R) extent {
	e := extent{rank: c.rank, natural: max(reports.Width(c.title), reports.Width(c.unit)), words: max(widestWord(c.title), widestWord(c.unit))}
	e.least = e.words
	for _, r := range rows {
		text, width := c.text(r), 0
		for line := range strings.SplitSeq(text, "\n") {
			width = max(width, reports.Width(line))
		}
		e.texts = append(e.texts, text)
		e.natural = max(e.natural, width)
		if c.prose {
			e.words = max(e.words, widestWord(text))
			e.least = max(e.least, e.words, min(width, comfortable))
		} else {
			e.words = max(e.words, width)
			e.least = max(e.least, width)
		}
	}
	return e
}

// widestWord returns the width of the widest unbreakable part of a text.
func widestWord(text string) (width int) {
	for _, word := range reports.Words(text) {
		for _, piece := range reports.Pieces(word) {
			width = max(width, reports.Width(piece))
		}
	}
	return width
}

// extent is the width of a column: by its whole texts, the minimum while others can be left out, and the absolute
// minimum, by its words.
type extent struct {
	rank, natural, least, words int
	texts                       []string // of the rows
}

// fit selects the columns that fit, and their widths. It returns false if not even the columns that are never left
// out fit.
func fit(all []extent, room int) (kept, widths []int, fits bool) {
	for i := range all {
		kept = append(kept, i)
	}
	least := func(e extent) int { return e.least }
	for total(all, kept, least) > room {
		last := slices.MaxFunc(kept, func(i, j int) int { return cmp.Or(cmp.Compare(all[i].rank, all[j].rank), cmp.Compare(i, j)) })
		if all[last].rank == 0 {
			least = func(e extent) int { return e.words }
			break
		}
		kept = slices.DeleteFunc(kept, func(i int) bool { return i == last })
	}
	if total(all, kept, least) > room {
		return kept, nil, false
	}
	for _, i := range kept {
		widths = append(widths, all[i].natural)
	}
	for over := total(all, kept, func(e extent) int { return e.natural }) - room; over > 0; over-- {
		widest := -1
		for n, i := range kept {
			if widths[n] > least(all[i]) && (widest < 0 || widths[n] > widths[widest]) {
				widest = n
			}
		}
		widths[widest]--
	}
	flatten(all, kept, widths, least)
	return kept, widths, true
}

// total returns the width of a table of some columns.
func total(all []extent, kept []int, width func(extent) int) int {
	sum := len(gap) * (len(kept) - 1)
	for _, i := range kept {
		sum += width(all[i])
	}
	return sum
}

// flatten moves width from one column to another while that makes the table shorter.
func flatten(all []extent, kept, widths []int, least func(extent) int) {
	heights := map[[2]int][]int{} // of a column's cells, at a width
	height := func() (sum int) {
		for row := range all[0].texts {
			most := 0
			for n, i := range kept {
				at := [2]int{i, widths[n]}
				if heights[at] == nil {
					for _, text := range all[i].texts {
						heights[at] = append(heights[at], len(folded(text, widths[n])))
					}
				}
				most = max(most, heights[at][row])
			}
			sum += most
		}
		return sum
	}
	if len(all) == 0 {
		return
	}
	best := height()
	for _, step := range []int{8, 4, 2, 1} {
		for from := range kept {
			for to := range kept {
				for from != to && widths[from]-step >= least(all[kept[from]]) {
					widths[from], widths[to] = widths[from]-step, widths[to]+step
					now := height()
					if now >= best {
						widths[from], widths[to] = widths[from]+step, widths[to]-step
						break
					}
					best = now
				}
			}
		}
	}
}

// headed writes the titles and below them the units, unless no column has any.
func headed[R any](s *sheet, indent string, columns []column[R], widths []int) {
	heads := make([][]string, len(columns))
	for i, c := range columns {
		if c.title != "" {
			heads[i] = reports.Folded(c.title, widths[i])
		}
		if c.unit != "" {
			heads[i] = append(heads[i], reports.Folded(c.unit, widths[i])...)
		}
	}
	s.cells(indent, widths, heads, nil)
}

// cells writes a row of cells, which takes as many lines as its tallest cell.
func (s *sheet) cells(indent string, widths []int, cells [][]string, tones []tone) {
	height := 0
	for _, c := range cells {
		height = max(height, len(c))
	}
	for n := range height {
		line, blanks := indent, ""
		for i, c := range cells {
			text := ""
			if n < len(c) {
				text = c[n]
			}
			if text != "" {
				line += blanks
				blanks = ""
				if tones != nil {
					line += s.toned(tones[i], text)
				} else {
					line += text
				}
			}
			blanks += strings.Repeat(" ", max(0, widths[i]-reports.Width(text))) + gap
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// listed writes every row as a list of titles and cells, for a terminal too narrow for a table.
func listed[R any](s *sheet, indent string, columns []column[R], rows []R) {
	for n, r := range rows {
		if n > 0 {
			s.linef("")
		}
		for _, c := range columns {
			text := c.text(r)
			if text == "" {
				continue
			}
			if c.tone != nil {
				text = s.toned(c.tone(r), text)
			}
			if c.title != "" {
				text = c.title + ": " + text
			}
			s.linef("%s%s", indent, text)
		}
	}
}
