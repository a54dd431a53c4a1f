package page

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"oversell/reports"
)

// OverviewInput is the input of a page about several runs or searches.
type OverviewInput struct {
	Runs         []OverviewRun
	Explorations []reports.Exploration
	// Unreadable are sentences about files that could not be read.
	Unreadable []string
}

// OverviewRun is one of several runs.
type OverviewRun struct {
	Run reports.Run
	// Name is the path of the run, and Page the link to its own page, relative to the overview; may be empty.
	Name, Page string
}

// Overview writes a self-contained page with a table of runs or searches, and a section for each with its
// violations.
func Overview(w io.Writer, in OverviewInput) error {
	p := overviewPage{Runs: in.runs(), Searches: in.searches(), Unreadable: in.Unreadable}
	p.Class, p.Headline, p.Lead = in.sum()
	p.Icon = icons[p.Class]
	p.Glance = glanceOf(p.Runs, in.Runs)
	return writeFramed(w, "overview.html.tmpl", p.Headline, &p.Frame, &p)
}

type overviewPage struct {
	Frame                       frame
	Class, Icon, Headline, Lead string
	Glance                      *glance
	Runs                        []overviewRow
	Searches                    []overviewRow
	Unreadable                  []string
}

// overviewRow is a run or a search in the table, with a link to its section.
type overviewRow struct {
	ID, Name, Page, Title     string
	Class, Icon, Verdict      string
	Sold, Rate, Latency, Main string
	Broke, Fired              string
	Without                   string
	Sentences                 []string
	Steps                     []string
	Surprise                  bool
}

func (in OverviewInput) runs() (rows []overviewRow) {
	titles := in.titles()
	for i, o := range in.Runs {
		r := o.Run
		row := overviewRow{ID: fmt.Sprintf("run-%d", i+1), Name: o.Name, Page: o.Page, Title: titles[i], Class: r.Verdict, Icon: icons[r.Verdict], Verdict: r.Verdict,
			Sold: r.SoldOfStock(), Rate: reports.Rate(r.Throughput), Main: r.MainKind(), Latency: r.LatencySummary(r.MainKind()), Broke: reports.Joined("; ", strings.Join(r.Broke(), ", "), reports.DeclaredNotSeen(r.NotSeen())), Without: r.Without(), Fired: r.FaultCounts()}
		row.Surprise = r.Surprise()
		if r.Verdict == reports.Pass {
			row.Sentences = append(row.Sentences, upper(r.Seen())+strings.TrimPrefix(r.VersusDeclared(), ", as declared"))
		}
		if r.Why != "" {
			row.Sentences = append(row.Sentences, reports.Joined("; ", r.Why, r.NotTried()))
		}
		for _, p := range r.Properties {
			if p.Result == reports.Broken {
				row.Sentences = append(row.Sentences, string(p.Name)+" ("+string(p.Of)+")"+p.Extent()+": "+p.Why)
			}
		}
		row.Sentences = append(row.Sentences, r.Notes...)
		rows = append(rows, row)
	}
	return rows
}

// titles describe what ran. Equal or empty titles are replaced by paths.
func (in OverviewInput) titles() []string {
	titles, same, bases := make([]string, len(in.Runs)), map[string]int{}, map[string]int{}
	for _, o := range in.Runs {
		same[o.Run.Title()]++
		bases[filepath.Base(o.Name)]++
	}
	for i, o := range in.Runs {
		titles[i] = o.Run.Title()
		where := o.Name
		if bases[filepath.Base(o.Name)] == 1 {
			where = filepath.Base(o.Name)
		}
		switch {
		case o.Name == "" || o.Run.Named() && same[titles[i]] == 1:
		case o.Run.Named():
			titles[i] += " (" + where + ")"
		default:
			titles[i] = where
		}
	}
	return titles
}

func (in OverviewInput) searches() (rows []overviewRow) {
	for i, e := range in.Explorations {
		row := overviewRow{ID: fmt.Sprintf("search-%d", i+1), Name: e.Title(), Title: e.Headline(), Class: e.Verdict, Icon: icons[e.Verdict], Verdict: e.Verdict, Rate: reports.Thousands(e.Stats.States), Latency: reports.Seconds(e.Stats.ElapsedMS)}
		row.Surprise = e.Verdict != reports.Inconclusive && e.Verdict != e.Expected
		p := exploration{e}.page()
		if s := p.Sentence(); s != "" {
			row.Sentences = append(row.Sentences, s)
		}
		for _, step := range p.Entries {
			row.Steps = append(row.Steps, step.Name())
		}
		if e.Command != "" {
			row.Page = e.Command
		}
		rows = append(rows, row)
	}
	return rows
}

// sum summarizes the outcomes.
func (in OverviewInput) sum() (class, headline, lead string) {
	d := reports.Document{}
	for _, o := range in.Runs {
		d.Runs = append(d.Runs, o.Run)
	}
	for _, e := range in.Explorations {
		result := reports.Holds
		if e.Verdict == reports.Violated {
			result = reports.Broken
		}
		d.Runs = append(d.Runs, reports.Run{Verdict: e.Verdict, Expected: e.Expected, Properties: []reports.Property{{Result: result, Declared: e.Expected == reports.Violated}}})
	}
	class = map[int]string{reports.ExitPass: reports.Pass, reports.ExitViolated: reports.Violated}[d.ExitCode()]
	if class == "" {
		class = reports.Inconclusive
	}
	n := map[string]int{}
	for _, r := range d.Runs {
		n[r.Verdict]++
	}
	total := len(d.Runs)
	words := "runs"
	switch {
	case len(in.Runs) == 0:
		words = "searches"
	case len(in.Explorations) > 0:
		words = "runs and searches"
	}
	switch class {
	case reports.Pass:
		headline = fmt.Sprintf("No violation seen in %d %s", total, words)
	case reports.Violated:
		headline = fmt.Sprintf("%d of %d %s broke a promise", n[reports.Violated], total, words)
	default:
		headline = fmt.Sprintf("%d of %d %s decided nothing", n[reports.Inconclusive], total, words)
	}
	return class, headline, strings.ReplaceAll(d.Summary(), " (marked with !)", "")
}
