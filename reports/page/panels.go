package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/reports"
	"oversell/reports/page/chart"
)

// panels are small multiples: a small chart for each contender, all on the same scales, with the curves of the
// others faint in the background. One chart with nineteen curves would need nineteen colours and an unreadable
// legend.
type panels struct {
	// ID identifies the curves of all contenders, which are written once.
	ID, Title, Unit, Foot string
	Behind                []chart.Plotted
	Panels                []panel
	Height, Base, Bottom  int
}

// panel is the chart of one contender.
type panel struct {
	Name, Class, Icon, Text, Label string
	Own                            []chart.Curve
	Behind                         string // ID of all contenders' curves
	XTicks, YTicks                 []chart.Tick
	Height, Base, Bottom           int
}

// panelHeight is the height of the plot of a panel, in pixels.
const panelHeight = 96

// pictured is a contender with its curves, the first of which also appears behind the others.
type pictured struct {
	name, outcome, text string
	lines               []chart.Line
}

// newPanels draws contenders on common scales.
func newPanels(p panels, all []pictured, x, y chart.Scale, xticks []chart.Tick, format func(float64) string) panels {
	ticks := chart.Ticks(y)
	if len(ticks) > 4 { // there is room for every second one
		ticks = slices.DeleteFunc(ticks, func(v float64) bool { return slices.Index(ticks, v)%2 == len(ticks)%2 })
	}
	var yticks []chart.Tick
	for _, v := range ticks {
		at := int(math.Round((1 - y.At(v)) * panelHeight))
		yticks = append(yticks, chart.Tick{At: strconv.Itoa(at), Text: format(v), TextY: at + 4})
	}
	for _, d := range all {
		p.Behind = append(p.Behind, d.lines[0].Path(x, y))
	}
	for _, d := range all {
		look := outcomeLooks[d.outcome]
		n := panel{Name: d.name, Class: look.class, Icon: look.icon, Text: d.text, Behind: p.ID, XTicks: xticks, YTicks: yticks,
			Label: d.name + ", " + p.Title + ": " + d.text, Height: panelHeight + 20, Base: panelHeight, Bottom: panelHeight + 15}
		for _, l := range d.lines {
			n.Own = append(n.Own, chart.Curve{Class: l.Class, Path: l.Path(x, y), Name: l.Name})
		}
		p.Panels = append(p.Panels, n)
	}
	return p
}

// latencies draws the percentile curves of a configuration's contenders, and those of a single client beside them.
func (c comparison) latencies(configuration int, cells []reports.ComparisonCell) []panels {
	var all []pictured
	nines := 1.0
	curve := func(name, class string, points []reports.Quantile) chart.Line {
		l, most := percentileLine(name, class, points)
		nines = max(nines, most)
		return l
	}
	for _, x := range cells {
		if x.Request == nil {
			continue
		}
		d := pictured{name: c.Contenders[x.Contender].String(), outcome: x.Outcome, text: "p50/p99/p99.9 " + reports.PercentilesOf(x.Request) + " ms"}
		d.lines = append(d.lines, curve("all", "", orPercentiles(x.Curve, x.Request)))
		if x.RequestAlone != nil {
			d.lines = append(d.lines, curve("one client alone", "aside", orPercentiles(nil, x.RequestAlone)))
			d.text += ", alone p50 " + reports.Short(x.RequestAlone.Call.P50) + " ms"
		}
		all = append(all, d)
	}
	if all == nil {
		return nil
	}
	var values []float64
	for _, d := range all {
		values = append(values, chart.Ys(d.lines)...)
	}
	x := chart.Linear(0, nines)
	var xticks []chart.Tick
	for i := 0; float64(i) <= nines; i++ {
		xticks = append(xticks, chart.Tick{At: chart.Percent(100 * float64(i) / nines), Text: quantileName(float64(i)), Anchor: anchored(float64(i) / nines), Minor: i%2 == 0 && i > 0})
	}
	p := panels{ID: "latency" + strconv.Itoa(configuration), Title: "Latency", Unit: "ms, by the share of requests that were faster",
		Foot: "dashed: one client alone; faint: all others"}
	return []panels{newPanels(p, all, x, chart.LogScale(values), xticks, millisAxis)}
}

// anchored returns the text anchor of a label at this percentage of the width.
func anchored(share float64) string {
	switch {
	case share < 0.04:
		return "start"
	case share > 0.96:
		return "end"
	}
	return "middle"
}

// sweep is a set of configurations that differ only in the number of clients.
type sweep struct {
	name    string // what they have in common
	indexes []int  // of the configurations, by number of clients
	clients []float64
}

const clientsFlag = "--clients="

// sweeps returns those with at least two numbers of clients.
func (c comparison) sweeps() (all []sweep) {
	type point struct {
		clients float64
		index   int
	}
	points := map[string][]point{}
	var names []string
	for i, f := range c.Configurations {
		at := slices.IndexFunc(f.Swept, func(s string) bool { return strings.HasPrefix(s, clientsFlag) })
		if at < 0 {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimPrefix(f.Swept[at], clientsFlag), 64)
		if err != nil {
			continue
		}
		f.Swept = slices.Delete(slices.Clone(f.Swept), at, at+1)
		name := f.String()
		if points[name] == nil {
			names = append(names, name)
		}
		points[name] = append(points[name], point{n, i})
	}
	for _, name := range names {
		if len(points[name]) < 2 {
			continue
		}
		slices.SortFunc(points[name], func(a, b point) int { return cmp.Compare(a.clients, b.clients) })
		s := sweep{name: name}
		for _, p := range points[name] {
			s.indexes, s.clients = append(s.indexes, p.index), append(s.clients, p.clients)
		}
		all = append(all, s)
	}
	return all
}

// sweptSection shows a sweep by the number of clients.
type sweptSection struct {
	Name   string
	Panels []panels
}

// swept draws throughput and latency of a sweep.
func (c comparison) swept(i int, s sweep) sweptSection {
	x := chart.Scale{Low: s.clients[0], High: s.clients[len(s.clients)-1], Log: s.clients[len(s.clients)-1] >= 8*s.clients[0]}
	var xticks []chart.Tick
	for i, n := range s.clients {
		share := x.At(n)
		xticks = append(xticks, chart.Tick{At: chart.Percent(100 * share), Text: reports.Thousands(int64(n)), Anchor: anchored(share), Minor: i > 0 && i < len(s.clients)-1 && len(s.clients) > 4})
	}
	rate := func(x reports.ComparisonCell) float64 { return x.Throughput.Median }
	rates := c.against(s, []figure{{"", "", rate}}, func(v float64) string { return reports.Thousands(int64(math.Round(v))) + "/s" })
	waits := c.against(s, []figure{
		{"p99", "", func(x reports.ComparisonCell) float64 { return x.Request.Call.P99 }},
		{"p50", "aside", func(x reports.ComparisonCell) float64 { return x.Request.Call.P50 }},
	}, func(v float64) string { return reports.Short(v) + " ms" })
	id := strconv.Itoa(i)
	of := func(all []pictured) (values []float64) {
		for _, d := range all {
			values = append(values, chart.Ys(d.lines)...)
		}
		return values
	}
	out := sweptSection{Name: s.name}
	if rates != nil {
		out.Panels = append(out.Panels, newPanels(panels{ID: "rates" + id, Title: "Throughput", Unit: c.Work + " a second, by the number of clients", Foot: "faint: all others"},
			rates, x, chart.LogScale(of(rates)), xticks, func(v float64) string { return amount(v) }))
	}
	if waits != nil {
		out.Panels = append(out.Panels, newPanels(panels{ID: "waits" + id, Title: "Latency", Unit: "ms, by the number of clients", Foot: "p99; dashed: p50; faint: p99 of all others"},
			waits, x, chart.LogScale(of(waits)), xticks, millisAxis))
	}
	return out
}

// figure returns a figure of a cell with requests.
type figure struct {
	name, class string
	of          func(reports.ComparisonCell) float64
}

// against returns contenders with their measures by the number of clients. A contender with a violation anywhere in
// the sweep is marked. words formats the first measure at both ends.
func (c comparison) against(s sweep, measures []figure, words func(float64) string) (all []pictured) {
	for _, i := range c.bestFirst() {
		d := pictured{name: c.Contenders[i].String(), outcome: reports.NoViolation}
		for _, m := range measures {
			d.lines = append(d.lines, chart.Line{Name: m.name, Class: m.class})
		}
		any := false
		for n, configuration := range s.indexes {
			x, ran := c.cell(i, configuration)
			for k, m := range measures {
				v := math.NaN()
				if ran && x.Request != nil && m.of(x) > 0 {
					v, any = m.of(x), true
				}
				d.lines[k].Points = append(d.lines[k].Points, chart.Point{X: s.clients[n], Y: v})
			}
			if ran && x.Outcome != reports.NoViolation && d.outcome != reports.Broke {
				d.outcome = x.Outcome
			}
		}
		if !any {
			continue
		}
		var told []string
		for _, n := range []int{0, len(s.clients) - 1} {
			if p := d.lines[0].Points[n]; !math.IsNaN(p.Y) {
				told = append(told, words(p.Y)+" with "+reports.Count(int64(p.X), "client"))
			}
		}
		d.text = reports.Joined(" ", measures[0].name, strings.Join(told, ", "))
		all = append(all, d)
	}
	return all
}
