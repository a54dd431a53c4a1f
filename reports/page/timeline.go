package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
	"oversell/variant"
)

// timeline is a drawn scene: a lane per client, with time running to the right. Positions in time are in percent of
// the width, so one drawing fits every screen, and zooming only makes it wider.
type timeline struct {
	Height   int
	From, To int64 // nanoseconds since the start of the run
	Why      string
	Label    string
	Lanes    []laneName
	Ticks    []chart.Tick
	Bands    []band
	Pills    []sign
	Bars     []strip
	Faults   []strip
	Marks    []mark
	Leases   []sign
	Badges   []sign
	// Others says what is not shown; may be empty.
	Others string
	// Numbers explains the numbers of clients; may be empty.
	Numbers string
	// Has are the things that occur, for the legend.
	Has map[string]bool
}

// laneName is the label of a lane.
type laneName struct {
	Top         int
	Name, Class string
}

// band spans all lanes.
type band struct {
	X, W  string
	Class string
	Text  string
}

// strip is a stay of a client, or a fault that hit it.
type strip struct {
	X, W        string
	Y, H, Lane  int
	Class, Text string
	TextY       int
	Label       string
	// Parts are the hatched parts, in percent of the bar.
	Parts []part
}

type part struct{ X, W, Class string }

// mark is an operation.
type mark struct {
	X, W        string
	Y, H, Lane  int
	Class, Text string
	TextY       int
	Label       string
}

// sign is a sign of fixed size at a time.
type sign struct {
	X     string
	Y     int
	Shift int // to the right, in pixels
	Text  string
	Pill  chart.Pill
	Label string
}

// Geometry of a lane, in pixels.
const (
	laneTop    = 46 // above the first lane: the scale and the labels of bands
	laneHeight = 54
	holdTop    = 5
	holdHeight = 21
	opTop      = 29
	opHeight   = 15
	waitTop    = 47
)

// sketch is a timeline under construction.
type sketch struct {
	timeline
	scene
	header *history.Header
	run    *reports.Run
	lane   map[int32]int
	story  story
	// row is the height of a second row of things held; 0: there is one row.
	row int
}

// drawScene draws the operations in a window.
func drawScene(sc scene, s story, header *history.Header, r *reports.Run) *timeline {
	if len(sc.clients) == 0 || sc.to <= sc.from {
		return nil
	}
	d := &sketch{scene: sc, header: header, run: r, lane: map[int32]int{}, story: s}
	d.From, d.To, d.Why = int64(sc.from), int64(sc.to), sc.why
	d.Has = map[string]bool{}
	if twoKinds(sc.stays) {
		d.row = holdHeight + 1
	}
	d.Height = laneTop + d.laneHeight()*len(sc.clients) + 4
	for i, c := range sc.clients {
		d.lane[c] = i
		d.Lanes = append(d.Lanes, laneName{laneTop + i*d.laneHeight(), strconv.Itoa(int(c)), d.class(c)})
	}
	d.Ticks = chart.TimeTicks(sc.from, sc.to)
	d.serverFaults()
	d.clientFaults()
	d.holdings()
	d.operations()
	d.badges()
	d.Others, d.Numbers = d.leftOut(), d.numbers(header)
	d.Label = fmt.Sprintf("Timeline from %s to %s: %s, %s", moment(sc.from), moment(sc.to), reports.Count(int64(len(d.Lanes)), "client"), reports.Count(int64(len(d.Marks)+len(d.Bars)), "operation"))
	return &d.timeline
}

// leftOut describes what the timeline does not show.
func (sc *scene) leftOut() (s string) {
	if sc.others > 0 {
		s = reports.Count(int64(sc.others), "more client") + " at work in this time " + isOrAre(sc.others) + " left out"
	}
	if sc.waiting > 0 {
		s = reports.Joined(", ", s, reports.Count(int64(sc.waiting), "more client")+" that only waited "+isOrAre(sc.waiting)+" not shown")
	}
	if sc.unmarked > 0 {
		if s != "" {
			s += ", "
		}
		s += reports.Count(int64(sc.unmarked), "more time") + " in which several had the same " + isOrAre(sc.unmarked) + " not marked"
	}
	if sc.left > 0 {
		if s != "" {
			s += ", and "
		}
		s += reports.Count(int64(sc.left), "operation") + " of those shown"
		if sc.others == 0 || sc.waiting > 0 || sc.unmarked > 0 {
			s += " " + isOrAre(sc.left) + " left out"
		}
	}
	return s
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// class returns the colour of a client: those of the story have their own.
func (d *sketch) class(client int32) string {
	return storyClass(d.story, client)
}

func storyClass(s story, client int32) string {
	var seen []int32
	for _, op := range s.ops {
		if op.Client >= 0 && op.Kind != history.Fault && !slices.Contains(seen, op.Client) {
			seen = append(seen, op.Client)
		}
	}
	if i := slices.Index(seen, client); i >= 0 && i < 4 {
		return clientClass(i)
	}
	return "server"
}

// share returns the position of a time in the window, in percent.
func (d *sketch) share(at time.Duration) float64 {
	at = min(max(at, d.scene.from), d.scene.to)
	return 100 * float64(at-d.scene.from) / float64(d.scene.to-d.scene.from)
}

// place returns the position and width of an interval.
func (d *sketch) place(from, to time.Duration) (x, w string) {
	a, b := d.share(from), d.share(to)
	return chart.Percent(a), chart.Percent(max(b-a, 0.0005))
}

func (d *sketch) top(client int32) int { return laneTop + d.lane[client]*d.laneHeight() }

func (d *sketch) laneHeight() int { return laneHeight + d.row }

// twoKinds reports whether clients hold locks and tasks, which then have a row each.
func twoKinds(stays []stay) bool {
	locks := func(s stay) bool { return s.by.Kind == history.Acquire }
	return slices.ContainsFunc(stays, locks) && slices.ContainsFunc(stays, func(s stay) bool { return !locks(s) })
}

// serverFaults draws bands across all lanes.
func (d *sketch) serverFaults() {
	for _, op := range d.faults {
		if op.Client >= 0 {
			continue
		}
		x, w := d.place(op.Call, faultEnd(op))
		d.Bands = append(d.Bands, band{x, w, "fault", sentence(op)})
		d.sign(op.Call, 34, reports.Cut(op.Key.String(), 40), "note")
		d.Has["fault"] = true
	}
}

// clientFaults draws faults in the lane of the client that they hit.
func (d *sketch) clientFaults() {
	for _, op := range d.faults {
		if op.Client < 0 {
			continue
		}
		x, w := d.place(op.Call, faultEnd(op))
		name := op.Key.String()
		if op.Result == (history.Value{}) {
			name = op.Arg.String()
		}
		top, class, seen := d.top(op.Client), "fault", "fault"
		if d.share(faultEnd(op))-d.share(op.Call) < leastFault {
			class, seen = "fault short", "short"
		}
		d.Faults = append(d.Faults, strip{X: x, W: w, Y: top + 2, H: d.laneHeight() - 4, Lane: d.lane[op.Client], Class: class, Text: name, TextY: d.row + opTop + 10, Label: sentence(op)})
		d.Has[seen] = true
	}
}

// leastFault is the share of the window, in percent, below which a fault is drawn at its minimum visible width.
const leastFault = 1

// exclusive reports whether two clients must never hold the same thing at once, and a violation was found. Without
// one, what looks alike has a reason, such as a task that was enqueued again.
func (d *sketch) exclusive(by history.Kind) bool {
	of, name := variant.Queue, variant.NoDuplicateDelivery
	switch by {
	case history.Acquire:
		of, name = variant.Lock, variant.MutualExclusion
	case history.Take:
		of, name = variant.Dispatch, variant.OneHolderPerTask
	}
	return d.header.Promised(of, name) && measuredBroken(d.run, of, name)
}

// thing names what a client holds.
func (s *stay) thing() string {
	if s.by.Kind == history.Acquire {
		return quotedKey(s.key)
	}
	return task(s.key)
}

// holdings draws which client held what, and where two clients held the same.
func (d *sketch) holdings() {
	clashes := d.nearest(d.clashes())
	for i, c := range clashes {
		x, w := d.place(c.from, c.to)
		d.Bands = append(d.Bands, band{x, w, "shared", c.words()})
		if i < 40 {
			d.sign(c.from, 34, reports.Cut(c.words(), 60), "alarm")
		}
		d.Has["shared"] = true
	}
	bars := slices.Clone(d.stays)
	slices.SortStableFunc(bars, func(a, b stay) int { return cmp.Compare(b.to-b.from, a.to-a.from) }) // so that none hides another
	for i := range bars {
		d.hold(&bars[i], clashes)
	}
}

// mostClashes is the maximum number of clashes drawn.
const mostClashes = 400

// nearest returns the clashes nearest to the time that matters, in order of time. The timeline says how many are
// left out.
func (d *sketch) nearest(all []clash) []clash {
	if len(all) <= mostClashes {
		return all
	}
	slices.SortStableFunc(all, func(a, b clash) int { return cmp.Compare(d.far(a.from, a.to), d.far(b.from, b.to)) })
	d.unmarked = len(all) - mostClashes
	all = all[:mostClashes]
	slices.SortStableFunc(all, func(a, b clash) int { return cmp.Compare(a.from, b.from) })
	return all
}

// hold draws one stay.
func (d *sketch) hold(s *stay, clashes []clash) {
	top := d.top(s.client)
	x, w := d.place(s.from, s.to)
	class := "hold "
	if s.by.Kind != history.Acquire {
		top, class = top+d.row, "hold task "
	}
	b := strip{X: x, W: w, Y: top + holdTop, H: holdHeight, Lane: d.lane[s.client], Class: class + d.class(s.client), Text: tag(s.by), TextY: 13, Label: s.sentence()}
	if s.to <= s.from {
		return // drawn as a mark instead
	}
	inner := func(from, to time.Duration) (string, string) {
		whole := float64(min(s.to, d.scene.to) - max(s.from, d.scene.from))
		a := 100 * float64(max(from, d.scene.from)-max(s.from, d.scene.from)) / whole
		return chart.Percent(a), chart.Percent(100*float64(min(to, d.scene.to)-max(s.from, d.scene.from))/whole - a)
	}
	from, to := s.core()
	for _, c := range clashes {
		if c.key == s.key && c.kind == s.by.Kind && c.from < to && c.to > from {
			px, pw := inner(max(c.from, from), min(c.to, to))
			b.Parts = append(b.Parts, part{px, pw, "clash"})
		}
	}
	if s.until > 0 && s.until < s.to && s.until < d.scene.to && s.to > d.scene.from {
		px, pw := inner(s.until, s.to)
		b.Parts = append(b.Parts, part{px, pw, "over"})
		d.Has["over"] = true
	}
	if s.until > max(d.scene.from, s.from) && s.until <= min(d.scene.to, s.to) {
		d.Leases = append(d.Leases, sign{X: chart.Percent(d.share(s.until)), Y: top + holdTop, Label: fmt.Sprintf("the lease of %s on %s ended at %s", who(s.by), s.thing(), moment(s.until))})
		d.Has["lease"] = true
	}
	if s.by.Kind == history.Acquire {
		d.Has["hold"] = true
	} else {
		d.Has["task"] = true
	}
	d.Bars = append(d.Bars, b)
}

// sentence describes a stay.
func (s *stay) sentence() string {
	t := sentence(s.by) + "; "
	if s.from > s.by.Return {
		t += "it held it again from " + moment(s.from) + "; "
	}
	it := "it"
	if s.end.Client != s.client {
		it = who(s.end)
	}
	switch {
	case s.end.Kind == history.Release && s.end.Outcome == history.Unknown:
		return t + it + " tried to release it at " + moment(s.to) + " and had no answer"
	case s.end.Kind == history.Extend && s.end.Outcome == history.Refused:
		return t + "at " + moment(s.end.Return) + " " + it + " was told that it was no longer the holder"
	case s.end.Kind == history.Extend:
		return t + "the lease ended at " + moment(s.until) + ", and was extended only at " + moment(s.end.Return)
	case s.end.Kind == history.NoKind:
		return t + "it never released it"
	case s.end.Kind == history.Effect || s.end.Kind == history.Ack:
		return t + it + " was done with it at " + moment(s.to)
	case s.until > 0 && s.until < s.to:
		return t + it + " released it only at " + moment(s.to) + ", " + moment(s.to-s.until) + " after the end of its lease"
	}
	return t + it + " released it at " + moment(s.to)
}

// clash is a time in which more than one client held the same thing.
type clash struct {
	key      history.Value
	kind     history.Kind
	thing    string
	from, to time.Duration
	clients  int // the maximum at once
}

func (c clash) words() string {
	verb := " hold "
	if c.kind != history.Acquire {
		verb = " have "
	}
	n := strconv.Itoa(c.clients)
	if c.clients > 2 {
		n = "up to " + n
	}
	return n + verb + c.thing + " at once"
}

// clashes finds overlapping stays of the same thing, by time. A task that was enqueued again is a different one,
// and may be held at the same time.
func (d *sketch) clashes() (all []clash) {
	type thing struct {
		kind     history.Kind
		key      history.Value
		enqueued int
	}
	type edge struct {
		at    time.Duration
		delta int
	}
	edges := map[thing][]edge{}
	named := map[thing]string{}
	for i := range d.every {
		s := &d.every[i]
		if from, to := s.core(); to > from && d.exclusive(s.by.Kind) {
			k := thing{s.by.Kind, s.key, s.enqueued}
			edges[k] = append(edges[k], edge{from, 1}, edge{to, -1})
			named[k] = s.thing()
		}
	}
	for k, es := range edges {
		slices.SortFunc(es, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
		holding, mayBe := 0, 1
		if k.enqueued > 1 { // enqueued this often since it was taken before
			mayBe = k.enqueued
			for other := range edges {
				if other.kind == k.kind && other.key == k.key && other.enqueued < k.enqueued {
					mayBe = min(mayBe, k.enqueued-other.enqueued)
				}
			}
		}
		var now *clash
		for _, e := range es {
			holding += e.delta
			switch {
			case holding > mayBe && now == nil:
				now = &clash{k.key, k.kind, named[k], e.at, e.at, holding}
			case holding > mayBe:
				now.clients = max(now.clients, holding)
			case now != nil:
				now.to = e.at
				if now.to > d.scene.from && now.from < d.scene.to {
					all = append(all, *now)
				}
				now = nil
			}
		}
	}
	slices.SortFunc(all, func(a, b clash) int { return cmp.Compare(a.from, b.from) })
	return all
}

// sign writes a word in a box at a time.
func (d *sketch) sign(at time.Duration, y int, text, class string) {
	w := textWidth(text) + 12
	share := d.share(at)
	d.Pills = append(d.Pills, sign{X: chart.Percent(share), Y: y, Pill: chart.Pill{Rect: chart.Rect{X: 0, Y: -9, W: w, H: 18, Class: class}, TextX: w / 2, TextY: 4, Text: text}})
}

// textWidth is a generous estimate, in pixels.
func textWidth(s string) int { return int(math.Ceil(float64(utf8.RuneCountInString(s)) * 7.3)) }

// operations draws the operations that are not stays, and those that began stays.
func (d *sketch) operations() {
	wanted := map[opKey]bool{}
	for _, op := range d.story.ops {
		wanted[keyOf(op)] = true
	}
	ops := slices.Clone(d.scene.ops)
	slices.SortStableFunc(ops, func(a, b history.Op) int { return cmp.Compare(b.Return-b.Call, a.Return-a.Call) }) // nested operations are drawn on top
	for _, op := range ops {
		x, w := d.place(op.Call, op.Return)
		m := mark{X: x, W: w, Lane: d.lane[op.Client], Label: sentence(op), Y: d.top(op.Client) + d.row + opTop, H: opHeight, TextY: 11}
		m.Class, m.Text = op.Outcome.String(), tag(op)
		switch {
		case op.Kind == history.Acquire || op.Kind == history.Take:
			m.Class, m.Y, m.H, m.Text = "wait "+m.Class, d.top(op.Client)+d.row+waitTop, 5, ""
			d.Has["wait"] = d.Has["wait"] || op.Outcome == history.OK
		case op.Kind == history.Release || op.Kind == history.Extend || op.Kind == history.Submit || op.Kind == history.Ack:
			m.Class = "minor " + m.Class
			d.Has["minor"] = true
		case op.Outcome != history.OK: // unsuccessful tries are thin
			m.Class, m.Y, m.H, m.Text = "wait "+m.Class, d.top(op.Client)+d.row+waitTop, 5, ""
		default:
			m.Class = "work " + m.Class
			d.Has["work"] = true
		}
		if op.Outcome == history.Unknown || op.Outcome == history.Refused && m.Text == "" {
			d.Has[op.Outcome.String()] = true
		}
		m.Class += " " + d.class(op.Client)
		if wanted[keyOf(op)] {
			m.Class += " told"
		}
		d.Marks = append(d.Marks, m)
	}
	slices.SortStableFunc(d.Marks, func(a, b mark) int { return cmp.Compare(a.Lane, b.Lane) })
}

// badges numbers the story's operations as in the story.
func (d *sketch) badges() {
	taken := map[int][]float64{}
	for i, op := range d.story.ops {
		lane, shown := d.lane[op.Client]
		if at := startOf(op); shown && at >= d.scene.from && at <= d.scene.to {
			y := laneTop + lane*d.laneHeight() + holdTop + 6
			switch op.Kind {
			case history.Acquire, history.Fault:
			case history.Take, history.Pop:
				y += d.row
			default:
				y += d.row + opTop - holdTop + 1
			}
			b := sign{X: chart.Percent(d.share(at)), Y: y, Text: strconv.Itoa(i + 1), Label: d.class(op.Client)}
			place := d.share(at) * smallPlot / 100
			if place < badgeWidth/2 { // not half outside
				b.Shift = int(math.Ceil(badgeWidth/2 - place))
			} else if room := smallPlot - badgeWidth/2 - place; room < 0 {
				b.Shift = int(math.Floor(room))
			}
			for _, other := range taken[y] { // in order of time
				if room := other + badgeWidth - place; room > float64(b.Shift) {
					b.Shift = int(math.Ceil(room))
				}
			}
			taken[y] = append(taken[y], place+float64(b.Shift))
			d.Badges = append(d.Badges, b)
		}
	}
}

// badgeWidth is the width of a badge, and smallPlot that of a timeline on a small screen, in pixels. Badges that do
// not overlap there never do.
const (
	badgeWidth = 16
	smallPlot  = 320
)
