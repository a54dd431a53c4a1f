package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// column is a column of a table with a row for each R.
type column[R any] struct {
	title, unit string
	cell        func(R) string // empty: there is nothing to say
}

// table writes the titles, the units and a row for each of rows, and colours lines.
func table[R any](t Terminal, b *strings.Builder, columns []column[R], rows []R, paint func(line string) string) {
	t.align(b, paint, func(w io.Writer) {
		line := func(cell func(column[R]) string) {
			for _, c := range columns {
				fmt.Fprintf(w, "%s\t", cell(c))
			}
			fmt.Fprintln(w)
		}
		line(func(c column[R]) string { return c.title })
		line(func(c column[R]) string { return c.unit })
		for _, r := range rows {
			line(func(c column[R]) string { return cmp.Or(c.cell(r), "-") })
		}
	})
}

// align writes lines whose cells end in tabs in columns. It colours them after the layout,
// because colours have no width.
func (t Terminal) align(b *strings.Builder, paint func(line string) string, write func(io.Writer)) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	write(w)
	w.Flush() // to memory
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if t.Color {
			line = paint(line)
		}
		fmt.Fprintln(b, line)
	}
}
