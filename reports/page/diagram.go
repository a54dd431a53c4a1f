package page

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"oversell/reports"
	"oversell/reports/page/chart"
)

// diagram is a drawn schedule: a lifeline per client and per node, with time running down. It holds only what the
// template writes out unchanged.
type diagram struct {
	// ID is "wide" or "narrow", by the screen.
	ID            string
	Width, Height int
	Label         string
	// Style is for a diagram in a file of its own; a page already has it.
	Style template.CSS

	// Under are drawn below the lifelines, Over on top.
	Under, Over []chart.Rect

	Lines  []segment
	Arrows []arrow
	Pills  []chart.Pill
	Texts  []label
	Rows   []row
}

type segment struct {
	X1, Y1, X2, Y2 int
	Class          string
}

// arrow is a line with a head, which is a path.
type arrow struct {
	segment
	Head string
}

type label struct {
	X, Y          int
	Anchor, Class string
	Text          string
}

// row is the area of a step, which reacts to the pointer and takes focus.
type row struct {
	Top, Height int
	// Up means that the step's description is shown above it.
	Up bool
	Entry
}

// geometry holds the differences between wide and narrow screens.
type geometry struct {
	id    string
	width int
	// first is the position of the first client's lifeline, gap the distance between clients, node the position of
	// the first node and nodeGap the distance between nodes.
	first, gap, node, nodeGap int
	// holds is the position of the server's contents; 0: below the step.
	holds int
	// char is the width of a character in pixels, estimated generously.
	char float64
	// leftmost is the leftmost position of a text.
	leftmost int
}

const (
	headTop    = 6
	headHeight = 26
	firstRow   = 46
	tail       = 58
	barHalf    = 6
	line1      = 18 // baseline of the command, below the row's top
	arrow1     = 25
	line2      = 42
	arrow2     = 49
)

// wide fills the page. Most room is between the last client and the nodes, where commands are written.
func wide(clients, masters int) geometry {
	g := geometry{id: "wide", width: 1086, char: 7.3, first: 154, leftmost: 128}
	g.nodeGap = min(84, 240/max(1, masters-1))
	g.holds = g.width - 236
	g.node = g.holds - 44 - (masters-1)*g.nodeGap
	g.gap = min(250, max(80, (g.node-g.first-320)/max(1, clients-1)))
	return g
}

// narrow fits a phone in portrait orientation.
func narrow(clients, masters int) geometry {
	g := geometry{id: "narrow", width: 340, char: 6.7, first: 92, leftmost: 58}
	g.nodeGap = min(34, 120/masters)
	g.node = g.width - 26 - (masters-1)*g.nodeGap
	g.gap = min(84, max(30, (g.node-g.first-66)/max(1, clients-1)))
	return g
}

// drawing is a diagram under construction.
type drawing struct {
	diagram
	geometry
	c       counterexample
	masters int
	// tops are the upper edges of the rows, and the lower edge of the last one.
	tops []int
	// ends are the ends of the lifelines of crashed clients.
	ends map[int]int
	bars []bar
	// tinted is the top of the step that breaks the promise; 0: not yet known.
	tinted int
}

// bar is the time that a client spends in the critical section.
type bar struct {
	client, from, to int
}

// draw draws a counterexample.
func (c counterexample) draw(masters int, layout func(clients, masters int) geometry) diagram {
	masters = max(masters, 1)
	d := &drawing{c: c, masters: masters, geometry: layout(max(1, len(c.Clients)), masters), ends: map[int]int{}}
	d.ID = d.id
	d.Width = d.width
	d.Label = fmt.Sprintf("Sequence diagram of %s between %s and Redis; the table below it says the same", reports.Count(int64(len(c.Steps)), "step"), strings.Join(c.Clients, ", "))
	d.place()
	d.lifelines()
	d.sections()
	for i := range c.Steps {
		d.step(i)
	}
	return d.diagram
}

// ErrNoSchedule means that a search found no schedule to draw.
var ErrNoSchedule = errors.New("the search found no counterexample, so there is no schedule to draw")

// Diagram writes the sequence diagram of a search's counterexample as a self-contained SVG file that follows the
// reader's choice of light or dark. It returns ErrNoSchedule if there is none.
func Diagram(w io.Writer, e reports.Exploration) error {
	if e.Counterexample == nil || len(e.Counterexample.Steps) == 0 {
		return ErrNoSchedule
	}
	css, err := style("colours.css", "diagram.css")
	if err != nil {
		return err
	}
	d := counterexample{*e.Counterexample}.draw(e.Masters, wide)
	d.Style, d.Label = css, "Sequence diagram: "+e.Headline()
	return writePage(w, "diagram", d)
}

// place allocates the rows of the steps.
func (d *drawing) place() {
	y := firstRow
	for i, s := range d.c.Steps {
		d.tops = append(d.tops, y)
		y += d.height(i)
		if s.Kind == reports.StepCrash {
			d.ends[s.Client] = d.tops[i] + 18
		}
	}
	d.tops = append(d.tops, y)
	d.Height = y + 14
	if slices.ContainsFunc(d.c.Steps, func(s reports.Step) bool { return s.Has(reports.MarkEnter) }) {
		d.Height = y + tail // to show which clients are in the section after the last step
	}
}

func (d *drawing) height(i int) int {
	s := d.c.Steps[i]
	h := 40
	switch {
	case d.nobodys(s):
		h += 15 * (len(d.bandLines(s)) - 1)
	case s.Asks() && s.Kind != reports.StepArrive:
		h = 62
	}
	if d.holds == 0 && d.changed(i) {
		h += 18
	}
	return h
}

// changed reports whether the server's contents changed in the step.
func (d *drawing) changed(i int) bool {
	return i == 0 || d.c.Steps[i].Redis != d.c.Steps[i-1].Redis
}

func (d *drawing) clientX(i int) int { return d.first + i*d.gap }

func (d *drawing) nodeX(s reports.Step) int {
	return d.node + min(max(s.Node, 0), d.masters-1)*d.nodeGap
}

// lifelines draws the heads and the lines below them.
func (d *drawing) lifelines() {
	for i, name := range d.c.Clients {
		end, crashed := d.ends[i]
		if !crashed {
			end = d.Height - 4
		}
		room := 0
		if len(d.c.Clients) > 1 {
			room = d.gap
		}
		d.head(d.clientX(i), name, clientClass(i), room)
		d.Lines = append(d.Lines, segment{d.clientX(i), headTop + headHeight, d.clientX(i), end, "life " + clientClass(i)})
	}
	for n := range d.masters {
		x := d.node + n*d.nodeGap
		name := "Redis"
		if d.masters > 1 {
			name = fmt.Sprintf("node %d", n)
		}
		if d.masters > 1 && d.holds == 0 {
			name = fmt.Sprint("n", n)
		}
		room := 0
		if d.masters > 1 {
			room = d.nodeGap
		}
		d.head(x, name, "server", room)
		d.Lines = append(d.Lines, segment{x, headTop + headHeight, x, d.Height - 4, "life server"})
	}
	if d.holds > 0 {
		d.text(d.holds, headTop+18, "", "title", "Redis then holds")
	}
}

// head draws the box above a lifeline.
func (d *drawing) head(x int, name, class string, room int) {
	w := int(float64(utf8.RuneCountInString(name))*d.char) + 14
	if room > 0 {
		w = min(w, max(room-4, 24))
	}
	name = reports.Cut(name, max(1, int(float64(w-8)/d.char)))
	d.Pills = append(d.Pills, chart.Pill{Rect: chart.Rect{X: x - w/2, Y: headTop, W: w, H: headHeight, Class: "head " + class}, TextX: x, TextY: headTop + 17, Text: name})
}

func clientClass(i int) string { return fmt.Sprint("c", i%4) }

func (d *drawing) text(x, y int, anchor, class, s string) {
	if d.tinted > 0 && y > d.tinted {
		class += " tinted"
	}
	d.Texts = append(d.Texts, label{x, y, anchor, class, s})
}

// sections draws the times in the critical section, and where they overlap.
func (d *drawing) sections() {
	open := map[int]int{}
	leave := func(client, y int) {
		if from, ok := open[client]; ok && client >= 0 {
			d.bars = append(d.bars, bar{client, from, y})
			delete(open, client)
		}
	}
	for i, s := range d.c.Steps {
		switch y := d.tops[i]; {
		case s.Kind == reports.StepCrash:
			leave(s.Client, y+18)
		case s.Has(reports.MarkLeave):
			leave(s.Client, y+arrow1)
		case s.Has(reports.MarkEnter) && s.Asks():
			open[s.Client] = y + arrow2
		case s.Has(reports.MarkEnter):
			open[s.Client] = y + 14
		}
	}
	for i := range d.c.Clients {
		leave(i, d.Height-4)
	}
	for _, o := range overlaps(d.bars) {
		d.overlap(o)
	}
	for _, b := range d.bars {
		d.Over = append(d.Over, chart.Rect{X: d.clientX(b.client) - barHalf, Y: b.from, W: 2 * barHalf, H: b.to - b.from, Class: "bar " + clientClass(b.client)})
	}
	for _, o := range overlaps(d.bars) {
		for _, client := range o.clients {
			d.Over = append(d.Over, chart.Rect{X: d.clientX(client) - barHalf, Y: o.from, W: 2 * barHalf, H: o.to - o.from, Class: "hatch"})
		}
	}
}

// shared is a time with several clients in the section.
type shared struct {
	clients  []int
	from, to int
}

// overlaps finds the times with more than one client in the section.
func overlaps(bars []bar) (out []shared) {
	var at []int
	for _, b := range bars {
		at = append(at, b.from, b.to)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	for i := 1; i < len(at); i++ {
		s := shared{from: at[i-1], to: at[i]}
		for _, b := range bars {
			if b.from <= s.from && b.to >= s.to {
				s.clients = append(s.clients, b.client)
			}
		}
		if len(s.clients) > 1 {
			slices.Sort(s.clients)
			out = append(out, s)
		}
	}
	return out
}

// overlap marks a time with several clients in the section, between their lifelines. Its label is below the last
// step, or else between two steps, if there is room.
func (d *drawing) overlap(o shared) {
	left, right := d.clientX(o.clients[0]), d.clientX(o.clients[len(o.clients)-1])
	d.Under = append(d.Under, chart.Rect{X: left, Y: o.from, W: right - left, H: o.to - o.from, Class: "between"})
	y := d.tops[len(d.tops)-1] + tail/2
	if o.to < y {
		y = (o.from + o.to) / 2
		for _, top := range d.tops {
			if top > o.from && top < o.to {
				y = top
				break
			}
		}
	}
	words := "both inside"
	if len(o.clients) > 2 {
		words = fmt.Sprintf("%d inside at once", len(o.clients))
	}
	d.pill((left+right)/2, y, words, "alarm")
}

// pill draws a word in a box.
func (d *drawing) pill(x, y int, text, class string) {
	w := d.markWidth(text)
	x = min(x, d.width-w/2-2)
	d.Pills = append(d.Pills, chart.Pill{Rect: chart.Rect{X: x - w/2, Y: y - 9, W: w, H: 18, Class: class}, TextX: x, TextY: y + 4, Text: text})
}

// step draws one step.
func (d *drawing) step(i int) {
	s, y := d.c.Steps[i], d.tops[i]
	height := d.tops[i+1] - y
	last := i == len(d.c.Steps)-1 && s.Kind != reports.StepEnd
	d.Rows = append(d.Rows, row{Top: y, Height: height, Up: i > 2 && i >= len(d.c.Steps)/2, Entry: d.c.entry(i, d.masters)})
	if last {
		d.tinted = y
		d.Under = append(d.Under, chart.Rect{X: 0, Y: y + 2, W: d.width, H: height - 2, Class: "breaks"})
		d.Under = append(d.Under, chart.Rect{X: 0, Y: y + 2, W: 4, H: height - 2, Class: "edge"})
	}
	d.margin(i, y)
	d.contents(i, y)
	switch {
	case d.nobodys(s):
		d.band(s, y)
	case s.Kind == reports.StepArrive:
		d.arrives(s, y)
	case s.Asks():
		d.request(i, y)
	default:
		d.alone(s, y)
	}
}

// margin writes the number and the time of a step.
func (d *drawing) margin(i, y int) {
	s := d.c.Steps[i]
	class := "at"
	if i > 0 && s.AtMS == d.c.Steps[i-1].AtMS {
		class = "at same"
	}
	if d.holds == 0 {
		d.text(8, y+line1, "", "number", fmt.Sprint(i+1))
		const left = 8
		d.text(left, y+line1+15, "", class, narrowTime(s.AtMS, int(float64(d.leftmost-left)/d.char)))
		return
	}
	d.text(12, y+line1+4, "", "number", fmt.Sprint(i+1))
	d.text(116, y+line1+4, "end", class, reports.Millis(s.AtMS))
}

// narrowTime formats a time in few characters; the table has all of its digits.
func narrowTime(ms float64, room int) string {
	text := reports.Millis(ms)
	for _, shorter := range []string{fmt.Sprintf("%.1f ms", ms), fmt.Sprintf("%.0f ms", ms), fmt.Sprintf("%.2f s", ms/1e3), fmt.Sprintf("%.0f s", ms/1e3)} {
		if len(text) <= room {
			break
		}
		text = shorter
	}
	return text
}

// contents writes the server's contents after a step.
func (d *drawing) contents(i, y int) {
	s := d.c.Steps[i]
	if d.holds == 0 {
		if d.changed(i) {
			text := reports.Cut("Redis: "+s.Holds(), int(float64(d.width-d.leftmost)/d.char))
			d.text(d.width-2, d.tops[i+1]-8, "end", "holds new", text)
		}
		return
	}
	class := "holds"
	if d.changed(i) {
		class = "holds new"
	}
	room := int(float64(d.width-d.holds) / d.char)
	for n, line := range reports.Folded(s.Holds(), room) {
		if n == 3 {
			break
		}
		d.text(d.holds, y+line1+4+16*n, "", class, reports.Cut(line, room))
	}
}

// nobodys reports whether a step belongs to no client's lifeline.
func (d *drawing) nobodys(s reports.Step) bool {
	return s.Kind == reports.StepAdvance || d.c.By(s) == ""
}

// bandEdges returns the ends of a band across the lifelines.
func (d *drawing) bandEdges() (left, right int) {
	if d.holds > 0 {
		return d.leftmost - 4, d.holds - 14
	}
	return d.leftmost - 4, d.width
}

// bandLines wraps the text of such a step to the band.
func (d *drawing) bandLines(s reports.Step) []string {
	left, right := d.bandEdges()
	return reports.Folded(s.Words(d.masters).Command, int(float64(right-left-16)/d.char))
}

// band draws a step that belongs to no client across the lifelines.
func (d *drawing) band(s reports.Step, y int) {
	class := "band"
	if s.Kind == reports.StepEnd {
		class = "band end"
	}
	left, right := d.bandEdges()
	lines := d.bandLines(s)
	d.Under = append(d.Under, chart.Rect{X: left, Y: y + 5, W: right - left, H: 28 + 15*(len(lines)-1), Class: class})
	for i, line := range lines {
		d.text((left+right)/2, y+24+15*i, "middle", class, line)
	}
}

// alone draws a step in which a client sends nothing to a server.
func (d *drawing) alone(s reports.Step, y int) {
	x := d.clientX(s.Client)
	text := s.Words(d.masters).Command
	if s.Kind == reports.StepCrash {
		d.Lines = append(d.Lines, segment{x - 11, y + 7, x + 11, y + 29, "crash"}, segment{x - 11, y + 29, x + 11, y + 7, "crash"})
		d.text(x+18, y+23, "", "note dead", text)
		return
	}
	d.Over = append(d.Over, chart.Rect{X: x - 4, Y: y + 10, W: 8, H: 8, Class: "dot " + clientClass(s.Client)})
	end := d.words(x+14, y+line1, "note", text, s.Marks)
	d.marks(s, end, y+line1-4)
}

// words writes text beginning at x, or further left if it would not fit otherwise, and returns where it ends. It
// leaves room for marks.
func (d *drawing) words(x, y int, class, text string, marks []string) int {
	right := d.width
	if d.holds > 0 {
		right = d.node - 10
	}
	for _, m := range marks {
		right -= d.markWidth(m) + 8
	}
	text = reports.Cut(text, int(float64(right-d.leftmost)/d.char))
	w := int(math.Ceil(float64(utf8.RuneCountInString(text)) * d.char))
	if class == "note" {
		w = w * 7 / 8 // the letters are narrower than those of commands
	}
	x = max(d.leftmost, min(x, right-w))
	d.text(x, y, "", class, text)
	return x + w
}

func (d *drawing) markWidth(text string) int {
	return int(float64(utf8.RuneCountInString(text))*d.char) + 12
}

// marks draws the results of the client's operation.
func (d *drawing) marks(s reports.Step, x, y int) {
	for _, m := range s.Marks {
		w := d.markWidth(m)
		x += 8
		d.pill(x+w/2, y, m, "mark "+clientClass(s.Client))
		x += w
	}
}

// request draws a request and its reply.
func (d *drawing) request(i, y int) {
	s := d.c.Steps[i]
	class := clientClass(s.Client)
	x, node := d.clientX(s.Client)+barHalf, d.nodeX(s)
	t := s.Words(d.masters)
	said := d.words(x+8, y+line1, "command", t.Command, nil)
	switch s.Kind {
	case reports.StepLost:
		d.loses(x, min(node-14, max(x+(node-x)*3/5, said+14)), y+arrow1, class)
	case reports.StepLate:
		d.underWay(i, x, node, y+arrow2, class)
	case reports.StepNoReply:
		d.arrow(x, y+arrow1, node, y+arrow1, class)
		d.loses(node, x+(node-x)*2/3, y+arrow2, class+" reply")
	default:
		d.arrow(x, y+arrow1, node, y+arrow1, class)
		d.arrow(node, y+arrow2, x, y+arrow2, class+" reply")
	}
	text, kind := t.Answer, "answer"
	if t.Note != "" {
		text, kind = t.Note, "note"
	}
	end := d.words(x+8, y+line2, kind, text, s.Marks)
	d.marks(s, end, y+line2-4)
}

// arrow draws a message that arrives.
func (d *drawing) arrow(x1, y1, x2, y2 int, class string) {
	angle := math.Atan2(float64(y2-y1), float64(x2-x1))
	point := func(turn float64) string {
		return fmt.Sprintf("%.1f %.1f", float64(x2)-10*math.Cos(angle+turn), float64(y2)-10*math.Sin(angle+turn))
	}
	head := fmt.Sprintf("M%s L%d %d L%s", point(0.42), x2, y2, point(-0.42))
	if !strings.Contains(class, "reply") {
		head += "Z"
	}
	d.Arrows = append(d.Arrows, arrow{segment{x1, y1, x2, y2, class}, head})
}

// loses draws a message that is lost.
func (d *drawing) loses(from, to, y int, class string) {
	d.Lines = append(d.Lines, segment{from, y, to, y, "message " + class},
		segment{to - 6, y - 6, to + 6, y + 6, "lost"}, segment{to - 6, y + 6, to + 6, y - 6, "lost"})
}

// underWay draws a request that arrives in a later step, or not in this schedule.
func (d *drawing) underWay(i, x, node, y int, class string) {
	for j := i + 1; j < len(d.c.Steps); j++ {
		if s := d.c.Steps[j]; s.Kind == reports.StepArrive && s.Of == i {
			d.arrow(x, y, node, d.tops[j]+arrow1, class+" slow")
			return
		}
	}
	d.Lines = append(d.Lines, segment{x, y, x + (node-x)*3/4, y + 14, "message slow " + class})
}

// arrives labels the arrival of such a request, beside the node's lifeline.
func (d *drawing) arrives(s reports.Step, y int) {
	node := d.nodeX(s)
	t := s.Words(d.masters)
	text := reports.Joined(" → ", t.Command, t.Answer)
	room := node - 12 - d.leftmost
	d.text(node-14, y+line1+22-4, "end", "command", reports.Cut(text, int(float64(room)/d.char)))
}
