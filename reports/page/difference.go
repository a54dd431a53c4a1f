package page

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
)

// DifferenceInput is the input of a page that compares two runs.
type DifferenceInput struct {
	Difference reports.Difference
	// Runs are A and B.
	Runs [2]DifferenceRun
}

// DifferenceRun is one of the two.
type DifferenceRun struct {
	History   *history.History
	Latencies *reports.Latencies
	// Name is the path of the run, and Page the link to its own page, relative to this one; may be empty.
	Name, Page string
}

// Difference writes the self-contained page about what changed from one run to another.
func Difference(w io.Writer, in DifferenceInput) error {
	if in.Runs[0].History == nil || in.Runs[1].History == nil {
		return errors.New("the page of two runs needs their histories")
	}
	p := in.page()
	return writeFramed(w, "difference.html.tmpl", p.Headline, &p.Frame, &p)
}

// differencePage is the data of the template.
type differencePage struct {
	Frame                 frame
	Class, Icon, Headline string
	Leads                 []string
	Runs                  []differentRun
	Settings              []settingRow
	Properties            []propertyPairRow
	Measures              []measureRow
	Method                string
	Charts                []chart.Chart
}

// differentRun is one of the two runs in the table.
type differentRun struct {
	Letter, Name, Page, Title, Class, Icon, Verdict, Sold string
}

// settingRow is a setting that differs; Unlike if it makes the runs incomparable.
type settingRow struct {
	reports.Setting
	Unlike bool
}

// propertyPairRow is a property in both runs.
type propertyPairRow struct {
	Name, Of, A, ClassA, B, ClassB, Why string
	Changed                             bool
}

// measureRow is a measure of both runs; the bar of its ratio is in percent of the width, from a quarter to four
// times, with One in the middle.
type measureRow struct {
	Name, A, SpreadA, B, SpreadB, Ratio, SpreadR, Class, Says string
	From, Long, At                                            string
}

func (in DifferenceInput) page() differencePage {
	d := &in.Difference
	p := differencePage{Headline: d.Headline(), Method: reports.DifferenceMethod, Class: d.B.Verdict, Icon: icons[d.B.Verdict]}
	if !d.Alike() {
		p.Class, p.Icon = reports.Inconclusive, icons[reports.Inconclusive]
		p.Leads = append(p.Leads, "These differences may have caused the changes below, so no ratios are given")
	}
	p.Leads = append(p.Leads, d.Moved()...)
	if d.Alike() && len(d.Measures) > 0 && len(d.Moved()) == 0 {
		p.Leads = append(p.Leads, "No measure changed by more than its interval")
	}
	for i, r := range []*reports.Run{&d.A, &d.B} {
		p.Runs = append(p.Runs, differentRun{Letter: letters[i], Name: in.Runs[i].Name, Page: in.Runs[i].Page, Title: r.Title(), Class: r.Verdict, Icon: icons[r.Verdict], Verdict: r.Verdict, Sold: r.SoldOfStock()})
	}
	for _, s := range d.Unlike {
		p.Settings = append(p.Settings, settingRow{s, true})
	}
	for _, s := range d.Chosen {
		p.Settings = append(p.Settings, settingRow{s, false})
	}
	for _, pair := range d.Pairs() {
		p.Properties = append(p.Properties, propertyPairRowOf(pair, d))
	}
	for _, m := range d.Measures {
		p.Measures = append(p.Measures, measureRowOf(m))
	}
	p.Charts = in.charts()
	return p
}

// letters are the names of the two runs.
var letters = [2]string{"A", "B"}

func propertyPairRowOf(pair reports.PropertyPair, d *reports.Difference) propertyPairRow {
	row := propertyPairRow{Name: string(pair.Any().Name), Of: string(pair.Any().Of), Changed: pair.Changed()}
	row.A, row.ClassA = resultIn(pair.A, &d.A)
	row.B, row.ClassB = resultIn(pair.B, &d.B)
	var whys []string
	if row.Changed {
		for i, p := range []*reports.Property{pair.A, pair.B} {
			if p != nil && p.Measured == reports.Broken {
				whys = append(whys, letters[i]+": "+p.Why)
			}
		}
	}
	row.Why = strings.Join(whys, "; ")
	return row
}

// resultIn returns the result of a property in a run, and its CSS class.
func resultIn(p *reports.Property, r *reports.Run) (result, class string) {
	if p == nil {
		return "not judged", "plain"
	}
	rows := propertyRows(&reports.Run{Properties: []reports.Property{*p}})
	return reports.Joined(" ", rows[0].Result, rows[0].Count), rows[0].Class
}

func measureRowOf(m reports.Measure) measureRow {
	format := millisAxis
	if m.Unit != "ms" {
		format = amount
	}
	row := measureRow{Name: m.Name + ", " + m.Unit, A: format(m.A.Value), B: format(m.B.Value), Says: "too few operations for an interval"}
	if m.Sure {
		row.SpreadA, row.SpreadB, row.Says = format(m.A.Low)+" to "+format(m.A.High), format(m.B.Low)+" to "+format(m.B.High), ""
	}
	if m.Ratio == nil {
		return row
	}
	row.Ratio, row.SpreadR = reports.Figures3(m.Ratio.Value), reports.Figures3(m.Ratio.Low)+" to "+reports.Figures3(m.Ratio.High)
	x := chart.Scale{Low: 0.25, High: 4, Log: true}
	from, to := 100*x.At(m.Ratio.Low), 100*x.At(m.Ratio.High)
	row.From, row.Long, row.At = chart.Percent(from), chart.Percent(max(to-from, 0.5)), chart.Percent(100*x.At(m.Ratio.Value))
	row.Says = "no change beyond the interval"
	if m.Moved() {
		row.Class, row.Says = "moved", "less than A"
		if m.Ratio.Low > 1 {
			row.Says = "more than A"
		}
	}
	return row
}

// charts draws both runs together, each from its start.
func (in DifferenceInput) charts() (all []chart.Chart) {
	d := &in.Difference
	if d.A.Scenario != d.B.Scenario {
		return nil
	}
	over := [2]series{seriesOf(in.Runs[0].History, &d.A), seriesOf(in.Runs[1].History, &d.B)}
	end := max(over[0].end, over[1].end)
	if end <= 0 {
		return nil
	}
	x := timeAxis(end)
	both := func(of func(*series) []chart.Point) (lines []chart.Line) {
		for i := range over {
			lines = append(lines, chart.Line{Name: letters[i], Class: seriesClass(i), Points: of(&over[i])})
		}
		return lines
	}
	add := func(title, unit string, lines []chart.Line, y chart.Scale, format func(float64) string) {
		c := chart.New(title, unit, lines, x, chart.Axis{Scale: y, Format: format})
		c.Label = fmt.Sprintf("%s of A and of B over time: at most %s and %s", title, format(highest(lines[:1])), format(highest(lines[1:])))
		c.XTicks, c.XName = chart.TimeTicks(0, end), "time"
		all = append(all, c)
	}
	rate := both(func(s *series) []chart.Point { return s.rate })
	add(d.A.UsefulWork(), "a second", rate, chart.FromZero(highest(rate)), amount)
	if over[0].timedKind == over[1].timedKind {
		median := both(func(s *series) []chart.Point { return s.p50 })
		add("Median of "+d.A.MainKind(), "ms", median, chart.LogScale(chart.Ys(median)), millisAxis)
	}
	var curves []percentileCurve
	for i, r := range []*reports.Run{&d.A, &d.B} {
		if kind := kindNamed(d.Kind); in.Runs[i].Latencies != nil {
			curves = append(curves, percentileCurve{letters[i], seriesClass(i), in.Runs[i].Latencies.Curve(kind), r.Latency[kind.String()].Call})
		}
	}
	if c, ok := percentileChart("Latency of "+d.Kind+" by percentile", curves); ok {
		all = append(all, c)
	}
	return all
}
