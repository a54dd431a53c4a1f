package page

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
	"oversell/variant"
)

// RunInput is the input of a run's page.
type RunInput struct {
	History *history.History
	// Run and Latencies are its judgement.
	Run       reports.Run
	Latencies *reports.Latencies
	// Command is a command line that repeats the run, and Check one that judges this run again; may be empty.
	Command, Check string
	// Picture is the path of the violation's picture, relative to the page; may be empty.
	Picture string
}

// Run writes the page of a run: the verdict, the story of the violation, a timeline around it, stock, load and
// latency over time, and all measures. It is self-contained: it loads nothing and, however large the history, holds
// only a summary of the operations.
func Run(w io.Writer, in RunInput) error {
	if in.History == nil {
		return errors.New("the page of a run needs its history")
	}
	p, err := in.page()
	if err != nil {
		return err
	}
	return writePage(w, "run.html.tmpl", p)
}

// runPage is the data of the template.
type runPage struct {
	Frame       frame
	Run         reports.Run
	Class, Icon string
	Headline    string
	// Leads describe the violation, the cause first.
	Leads    []string
	Facts    []fact
	Steps    []narrated
	Timeline *timeline
	Charts   []chart.Chart
	// Percentiles is the chart of the latencies, if there are any.
	Percentiles []chart.Chart
	Properties  []propertyRow
	Faults      []faultRow
	Phases      []phaseRow
	Numbers     []number
	Refusals    []number
	Notes       []string
	Command     string
	Check       string
	Picture     string
}

// fact is a line of the verdict.
type fact struct {
	Name, Text string
	// Of is a user-given name at the beginning of the text. It may be in a right-to-left script, so it keeps its
	// own direction.
	Of string
}

// propertyRow is a property in the table.
type propertyRow struct {
	Name, Of, Result, Class, Why string
	Count                        string
	// Opportunities is the number of opportunities to break it; Bound bounds the frequency of violations if none
	// was seen.
	Opportunities, Bound string
}

type faultRow struct{ Name, Level, Story string }

type phaseRow struct{ Name, From, To, Rate, Latency string }

// icons precede verdicts, for readers who do not see colours.
var icons = map[string]string{reports.Pass: "✓", reports.Violated: "✗", reports.Inconclusive: "?"}

func (in RunInput) page() (p runPage, err error) {
	r := &in.Run
	s := storyOf(in.History, r)
	w := windowOf(in.History, s)
	p = runPage{Run: *r, Class: r.Verdict, Icon: icons[r.Verdict], Headline: headline(r, s), Leads: s.leads(), Command: in.Command, Check: in.Check, Picture: in.Picture}
	p.Facts = factsOf(r, &in.History.Header, s)
	p.Steps = s.steps(func(client int32) string { return storyClass(s, client) })
	p.Timeline = drawScene(sceneOf(in.History, s, w), s, &in.History.Header, r)
	over := seriesOf(in.History, r)
	p.Charts = over.charts(r)
	if c, ok := in.percentiles(); ok {
		p.Percentiles = append(p.Percentiles, c)
	}
	p.Properties, p.Faults, p.Phases = propertyRows(r), faultRows(r), phaseRows(r)
	p.Numbers, p.Refusals, p.Notes = numbersOf(r), refusalsOf(r), remarksOn(r)
	p.Frame, err = framed(p.Headline)
	return p, err
}

// factsOf returns the lines below the headline.
func factsOf(r *reports.Run, h *history.Header, s story) (facts []fact) {
	if broke := strings.Join(r.Broke(), ", "); s.cause != nil && !strings.Contains(headline(r, s), broke) {
		facts = append(facts, fact{Name: "Broken promises", Text: broke})
	}
	clients := ""
	if r.Clients > 0 {
		clients = reports.Count(int64(r.Clients), "client")
	}
	ran := reports.Joined(", ", clients, reports.Count(int64(r.Operations), "operation")) + " in " + reports.Seconds(r.ElapsedMS)
	what := strings.TrimPrefix(r.Title()+serverOf(r), ", ")
	if what != "" {
		ran = ": " + ran
	}
	facts = append(facts, fact{Name: "What ran", Of: what, Text: ran})
	var fired []string
	for _, f := range r.Faults {
		fired = append(fired, f.Name+", "+f.Story())
	}
	if len(fired) == 0 {
		fired = h.Faults // requested; how often they fired is unknown
	}
	if len(fired) > 0 {
		facts = append(facts, fact{Name: "Faults", Text: strings.Join(fired, "; ")})
	}
	if wait := r.PoolWaiting(); wait != "" {
		facts = append(facts, fact{Name: "Connections", Text: wait})
	}
	if open := r.OpenLoad(); open != nil {
		facts = append(facts, fact{Name: "Open load", Text: strings.Join(open, "; ")})
	}
	if r.Verdict == reports.Inconclusive && len(r.KnownToBreak) > 0 { // for a pass, the headline says it
		facts = append(facts, fact{Name: "Not tried", Text: "known to break under: " + reports.Conditions(r.KnownToBreak)})
	}
	if r.Expected != "" {
		facts = append(facts, fact{Name: "Expected", Text: expectationOf(r)})
	}
	if r.Verdict == reports.Pass && len(r.Broke()) > 0 {
		facts = append(facts, fact{Name: "Not promised, and broken", Text: strings.Join(r.Broke(), ", ")})
	}
	return facts
}

// serverOf describes where a run ran, as far as known.
func serverOf(r *reports.Run) string {
	on := reports.Joined(", ", r.Target, r.Topology)
	switch {
	case r.ServerVersion == "" && on == "":
		return ""
	case on == "":
		return ", on Redis " + r.ServerVersion
	}
	return ", on " + strings.TrimSpace("Redis "+r.ServerVersion) + " (" + on + ")"
}

// expectationOf compares the outcome with the declared one.
func expectationOf(r *reports.Run) string {
	switch {
	case r.Surprise():
		return r.Expected + "; no flaw declares the violation"
	case r.Verdict == r.Expected:
		return r.Expected + r.VersusDeclared()
	}
	return reports.Joined("; ", r.Expected, reports.DeclaredNotSeen(r.NotSeen()))
}

// percentiles draws the run's latencies, a curve for each kind.
func (in RunInput) percentiles() (chart.Chart, bool) {
	if in.Latencies == nil {
		return chart.Chart{}, false
	}
	var curves []percentileCurve
	kinds := in.Latencies.Kinds()
	if idle := []history.Kind{history.Acquire, history.Extend, history.Release}; !in.History.Header.PromisedOf(variant.Lock) {
		if rest := slices.DeleteFunc(slices.Clone(kinds), func(k history.Kind) bool { return slices.Contains(idle, k) }); len(rest) > 0 {
			kinds = rest // clients never wait for a lock that excludes none
		}
	}
	for i, kind := range kinds {
		curves = append(curves, percentileCurve{kind.String(), seriesClass(i), in.Latencies.Curve(kind), in.Run.Latency[kind.String()].Call})
	}
	return percentileChart("Latency by percentile", curves)
}

// seriesClass returns the style of the i-th curve: a colour and a dash pattern, which distinguishes it without
// colour. The first 36 all differ.
func seriesClass(i int) string {
	return fmt.Sprintf("k%d d%d", i%6, (i+i/6)%6)
}

func propertyRows(r *reports.Run) (rows []propertyRow) {
	for _, p := range r.Properties {
		row := propertyRow{Name: string(p.Name), Of: string(p.Of), Result: p.Result, Class: p.Result, Why: p.Why}
		if p.Result == reports.NotClaimed {
			row.Result = "not promised"
			row.Class = "plain"
			switch p.Measured {
			case reports.Broken:
				row.Result += "; broken"
			case reports.Holds:
				row.Result += "; no violation seen"
			}
		}
		if p.Opportunities > 0 {
			row.Opportunities = reports.Thousands(p.Opportunities)
			if p.Measured == reports.Holds {
				row.Bound = "95 %: below " + reports.Below(p.Opportunities)
			}
		}
		if p.Count > 0 {
			row.Count = strings.TrimPrefix(p.Extent(), ", ")
		}
		rows = append(rows, row)
	}
	return rows
}

func faultRows(r *reports.Run) (rows []faultRow) {
	for _, f := range r.Faults {
		rows = append(rows, faultRow{f.Name, f.Level, f.Story()})
	}
	return rows
}

func phaseRows(r *reports.Run) (rows []phaseRow) {
	main := r.MainKind()
	for _, p := range r.Phases {
		rows = append(rows, phaseRow{p.Name + " the faults", reports.Seconds(p.FromMS), reports.Seconds(p.ToMS), p.Answers(), p.LatencySummary(main)})
	}
	return rows
}

// MainKind names the operation whose latency the phases compare.
func (p runPage) MainKind() string { return p.Run.MainKind() }

// numbersOf returns the measures of a run.
func numbersOf(r *reports.Run) (list []number) {
	add := func(name, value string) { list = append(list, number{name, value}) }
	if r.Sold != nil && r.Stock != nil {
		add("sold, of "+reports.Thousands(*r.Stock), reports.Thousands(*r.Sold))
		if *r.Unknown > 0 {
			add("more may have been sold", reports.Thousands(*r.Unknown))
		}
		if r.Returned > 0 {
			add("refunded", reports.Thousands(r.Returned))
		}
	}
	add("operations", reports.Thousands(int64(r.Operations)))
	add("operations a second", reports.Rate(r.Throughput))
	add("time", reports.Seconds(r.ElapsedMS))
	if r.Clients > 0 { // histories of other programs need not have it
		add("clients", reports.Thousands(int64(r.Clients)))
	}
	if r.Acquired > 0 {
		add("acquisitions", reports.Thousands(r.Acquired))
	}
	if r.Commands > 0 {
		add("commands", reports.Thousands(r.Commands))
		if r.Acquired > 0 {
			add("commands per acquisition", strconv.FormatFloat(float64(r.Commands)/float64(r.Acquired), 'f', 1, 64))
		}
	}
	if r.Pipelines > 0 {
		add("engine", fmt.Sprintf("%s, %s, round-trip time %g ms", r.Engine, reports.Count(int64(r.Pipelines), "pipeline"), r.RTT))
	}
	if i := r.Intervals.Operations; i != nil {
		add("intervals of operations, p50 and p99", fmt.Sprintf("%g ms, %g ms", i.P50, i.P99))
	}
	list = append(list, serverNumbers(r.Servers)...)
	if r.Fairness > 0 {
		add("fairness (Jain's index: 1 is fair)", strconv.FormatFloat(r.Fairness, 'f', 2, 64))
	}
	if r.Overruns > 0 || r.PromisesOf(variant.Lock) {
		add("sections that outlived their lease", reports.Thousands(int64(r.Overruns)))
	}
	if r.Engine != "" || r.Seed > 0 {
		add("seed", strconv.FormatUint(r.Seed, 10))
	}
	return list
}

// refusalsOf returns the declared refusals by reason, the most frequent first.
func refusalsOf(r *reports.Run) (list []number) {
	var reasons []string
	for reason := range r.Refusals {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		if n := r.Refusals[b] - r.Refusals[a]; n != 0 {
			return int(min(max(n, -1), 1))
		}
		return strings.Compare(a, b)
	})
	for _, reason := range reasons {
		list = append(list, number{"refused: " + reason, reports.Thousands(r.Refusals[reason])})
	}
	return list
}

// remarksOn returns sentences about the run.
func remarksOn(r *reports.Run) (list []string) {
	if r.Why != "" && r.Verdict != reports.Inconclusive {
		list = append(list, r.Why)
	}
	if r.Interrupted {
		list = append(list, "the run was stopped before its end")
	}
	if r.Cut != "" {
		list = append(list, "the history is incomplete: "+r.Cut)
	}
	if r.FirstOverrun != "" {
		list = append(list, fmt.Sprintf("%s outlived the lease; the first: %s", reports.Count(int64(r.Overruns), "section"), r.FirstOverrun))
	}
	for _, why := range r.ExpectedWhy {
		list = append(list, "declared: "+why)
	}
	for _, u := range r.KnownToBreak {
		list = append(list, "not tried: "+untriedSentence(u))
	}
	return append(list, r.Notes...)
}
