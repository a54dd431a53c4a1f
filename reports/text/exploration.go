package text

import (
	"cmp"
	"fmt"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
)

const (
	// narrowest and shortenedTo bound the minimum width of a column of a schedule: the width of its
	// widest word, but at least narrowest and at most shortenedTo.
	narrowest, shortenedTo = 18, 24
	// between separates columns.
	between = " | "
)

// Exploration writes the result of a search: the verdict, the schedule that breaks the promise, if there is one,
// and the extent of the search.
func (t Terminal) Exploration(e reports.Exploration) error {
	e = printable.Of(e)
	s := t.sheet()
	s.linef("%s%s", s.toned(toneOf(e.Verdict), verdictOf(e)), strings.TrimPrefix(e.Headline(), verdictOf(e)))
	if e.Verdict == reports.Pass && e.Why != "" {
		s.linef("%s", e.Why)
	}
	if c := e.Counterexample; c != nil {
		s.linef("")
		schedule(s, *c, e.Masters)
		s.linef("\n%s violated: %s", c.Property, c.Sentence)
	}
	s.linef("\n%s", searched(e))
	table[reports.Property]{indent: "  ", columns: propertyColumns()}.write(s, e.Properties)
	s.linef("\nBounds: %s", strings.Join(e.Limits(), ", "))
	s.list("Effort", effort(e))
	if e.Verdict != reports.Violated {
		s.list("Not checked", e.NotChecked)
	}
	if e.Command != "" {
		s.linef("")
		s.commandLine("Again:", e.Command)
	}
	return t.show(s)
}

// Explorations writes a line or two for each of several searches, and counts the verdicts.
func (t Terminal) Explorations(all reports.Explorations) error {
	all = printable.Of(all)
	s := t.sheet()
	table[reports.Exploration]{columns: []column[reports.Exploration]{
		{prose: true, cell: func(e reports.Exploration) string { return cmp.Or(e.Queue, e.Lock) }},
		{prose: true, cell: verdictOf, tone: func(e reports.Exploration) tone { return toneOf(e.Verdict) }},
		{prose: true, cell: func(e reports.Exploration) string {
			_, rest, _ := strings.Cut(e.Headline(), ": ")
			return rest
		}},
	}}.write(s, all.Explorations)
	verdicts := map[string]int{}
	for _, e := range all.Explorations {
		verdicts[e.Verdict]++
	}
	s.linef("\n%d hold, %d violated, %d inconclusive", verdicts[reports.Pass], verdicts[reports.Violated], verdicts[reports.Inconclusive])
	return t.show(s)
}

// verdictOf returns the start of a headline, up to the colon.
func verdictOf(e reports.Exploration) string {
	verdict, _, _ := strings.Cut(e.Headline(), ":")
	return verdict
}

// searched describes what was searched and the expected outcome.
func searched(e reports.Exploration) string {
	s := "Searched: " + e.Title()
	if d := e.Declared(); d != "" {
		s += "; the outcome is " + e.Verdict + ", " + d
	}
	for _, why := range e.ExpectedWhy {
		s += "\n  declared: " + why
	}
	return s
}

// propertyColumns returns the columns for a property, its result, and the reason.
func propertyColumns() []column[reports.Property] {
	return []column[reports.Property]{
		{cell: func(p reports.Property) string { return string(p.Of) }},
		{cell: func(p reports.Property) string { return string(p.Name) }},
		{cell: func(p reports.Property) string { return p.Result }, tone: func(p reports.Property) tone { return toneOf(p.Result) }},
		{prose: true, blank: true, cell: func(p reports.Property) string { return p.Why }},
	}
}

// schedule writes the steps: with a column per client and the server's contents or, if that does not fit, in a
// table that names the client of each step.
func schedule(s *sheet, c reports.Counterexample, masters int) {
	g := gridOf(c, masters)
	if g.fit(s.width) {
		g.write(s)
		return
	}
	table[gridRow]{columns: []column[gridRow]{
		{title: "#", cell: func(r gridRow) string { return r.number }},
		{title: "t(ms)", rank: 2, cell: func(r gridRow) string { return r.at }},
		{title: "who", blank: true, cell: func(r gridRow) string {
			if r.across != "" {
				return ""
			}
			return g.titles[r.column]
		}},
		{title: "step", prose: true, cell: func(r gridRow) string {
			return cmp.Or(r.across, reports.Joined(" ", r.command, r.outcome))
		}},
		{title: "redis", rank: 1, prose: true, blank: true, cell: func(r gridRow) string { return r.redis }},
	}}.write(s, g.rows)
}

// write draws the grid.
func (g *grid) write(s *sheet) {
	g.row(&s.Builder, g.titles)
	for _, r := range g.rows {
		if r.across != "" {
			g.band(&s.Builder, r)
			continue
		}
		for _, line := range g.lines(r) {
			g.row(&s.Builder, line)
		}
	}
}

// grid is a schedule as a table, before its widths are fixed. Its columns are the number, the time,
// one per client, and the server's contents.
type grid struct {
	titles []string
	widths []int
	least  []int
	rows   []gridRow
}

// gridRow is one step: in a client's column, or across all of them.
type gridRow struct {
	number, at, redis string
	column            int
	command, outcome  string
	across            string
}

// gridOf creates a table of the steps. It shows the server's contents where they changed.
func gridOf(c reports.Counterexample, masters int) *grid {
	g := &grid{titles: append(append([]string{"#", "t(ms)"}, c.Clients...), "redis")}
	before := ""
	for i, s := range c.Steps {
		r := gridRow{number: fmt.Sprint(i + 1), at: reports.MillisFigure(s.AtMS), column: s.Client + 2}
		if s.Redis != before || i == 0 {
			r.redis = s.Holds()
		}
		before = s.Redis
		t := s.Words(masters)
		r.command, r.outcome = t.Command, reports.Joined("  ", outcomeOf(t), stars(s))
		if s.Kind == reports.StepAdvance || c.By(s) == "" {
			r.across = reports.Joined(" ", r.command, r.outcome)
		}
		g.rows = append(g.rows, r)
	}
	g.natural()
	return g
}

// natural sets every column to its natural width, and its minimum width.
func (g *grid) natural() {
	g.widths, g.least = make([]int, len(g.titles)), make([]int, len(g.titles))
	widen := func(i int, text string) {
		g.widths[i] = max(g.widths[i], reports.Width(text))
		g.least[i] = max(g.least[i], narrowest, min(widestWord(text), shortenedTo))
	}
	for i, title := range g.titles {
		widen(i, title)
	}
	for _, r := range g.rows {
		widen(0, r.number)
		widen(1, r.at)
		widen(len(g.widths)-1, r.redis)
		if r.across == "" {
			widen(r.column, reports.Joined(" ", r.command, r.outcome))
		}
	}
}

// fit narrows the widest columns until the grid fits the width. It returns false if that is impossible.
func (g *grid) fit(width int) bool {
	over := len(between)*(len(g.widths)-1) - width
	for _, w := range g.widths {
		over += w
	}
	for ; over > 0; over-- {
		widest := -1
		for i := range g.widths {
			if g.widths[i] > g.least[i] && (widest < 0 || g.widths[i] > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		g.widths[widest]--
	}
	return true
}

// lines returns the cells of a step, which takes several lines if its result does not fit beside the command, or
// the server's contents beside both.
func (g *grid) lines(r gridRow) [][]string {
	last := len(g.widths) - 1
	step, redis := g.stepLines(r), reports.Folded(r.redis, g.widths[last])
	var out [][]string
	for i := range max(len(step), len(redis)) {
		line := make([]string, last+1)
		if i == 0 {
			line[0], line[1] = r.number, r.at
		}
		if i < len(step) {
			line[r.column] = step[i]
		}
		if i < len(redis) {
			line[last] = redis[i]
		}
		out = append(out, line)
	}
	return out
}

// stepLines returns the lines of a step in its client's column.
func (g *grid) stepLines(r gridRow) []string {
	width := g.widths[r.column]
	if whole := reports.Joined(" ", r.command, r.outcome); reports.Width(whole) <= width {
		return []string{whole}
	}
	lines := reports.Folded(r.command, width)
	for _, part := range reports.Folded(r.outcome, width-2) {
		lines = append(lines, "  "+part)
	}
	return lines
}

// row writes cells, cut to their columns.
func (g *grid) row(b *strings.Builder, cells []string) {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString(between)
		}
		line.WriteString(pad(reports.Cut(cell, g.widths[i]), g.widths[i]))
	}
	fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
}

// band writes a step that belongs to no client across their columns: a ruled line, and more lines if its text needs
// them.
func (g *grid) band(b *strings.Builder, r gridRow) {
	last := len(g.widths) - 1
	width := len(between) * (last - 3)
	for _, w := range g.widths[2:last] {
		width += w
	}
	text, redis := reports.Folded(r.across, width-6), reports.Folded(r.redis, g.widths[last])
	for i := range max(len(text), len(redis)) {
		cells := []string{pad("", g.widths[0]), pad("", g.widths[1]), "", ""}
		if i == 0 {
			cells[0], cells[1] = pad(r.number, g.widths[0]), pad(r.at, g.widths[1])
		}
		if i < len(text) {
			cells[2] = "   " + reports.Cut(text[i], width-6)
		}
		if i == 0 {
			cells[2] = "── " + reports.Cut(text[0], width-6) + " "
			cells[2] += strings.Repeat("─", max(0, width-reports.Width(cells[2])))
		}
		if i < len(redis) {
			cells[3] = reports.Cut(redis[i], g.widths[last])
		}
		cells[2] = pad(cells[2], width)
		fmt.Fprintln(b, strings.TrimRight(strings.Join(cells, between), " "))
	}
}

// outcomeOf returns the reply and the marks that follow a command.
func outcomeOf(t reports.StepWords) string {
	var parts []string
	if t.Answer != "" {
		parts = append(parts, "-> "+t.Answer)
	}
	if t.Note != "" {
		parts = append(parts, "("+t.Note+")")
	}
	return strings.Join(parts, " ")
}

// stars formats the marks.
func stars(s reports.Step) string {
	var marks []string
	for _, m := range s.Marks {
		marks = append(marks, "*"+m+"*")
	}
	return strings.Join(marks, " ")
}

// effort returns sentences about the extent of the search.
func effort(e reports.Exploration) []string {
	s := e.Stats
	done := fmt.Sprintf("%s and %s in %s", reports.Count(s.States, "state"), reports.Count(s.Transitions, "transition"), reports.Seconds(s.ElapsedMS))
	if s.ElapsedMS > 0 {
		done += ", which is " + reports.PerSecond(s) + " transitions a second"
	}
	lines := []string{
		done + "; the longest schedule has " + reports.Count(int64(s.Depth), "step"),
		fmt.Sprintf("the real code was run %s, and made %s", reports.Count(s.Executions, "time"), reports.Count(s.Observed, "different observation")),
		"along the way: " + strings.Join(happened(e), ", "),
	}
	if s.Collision > 0 {
		lines = append(lines, "two different states were taken for one with a probability of at most "+reports.Chance(s.Collision))
	}
	if s.BytesPerState > 0 {
		lines = append(lines, reports.Size(s.BytesPerState)+" of memory per state")
	}
	if s.Random != nil {
		lines = append(lines, s.Random.String())
	}
	return lines
}

// happened counts what occurred in the search. It also names what did not occur: a promise about crashes means
// little if nothing crashed.
func happened(e reports.Exploration) []string {
	s := e.Stats
	list := []string{reports.Count(s.Entered, e.Entries())}
	return append(list, reports.Count(s.Advances, "advance")+" of the clock", reports.Count(s.Expiries, "expiry"), reports.Count(s.Lapses, "lease")+" run out", reports.Count(s.Crashes, "crash"),
		reports.Count(s.Lost, "lost message"), reports.Count(s.Late, "late request"), reports.Count(s.Ends, "end state")+" judged")
}
