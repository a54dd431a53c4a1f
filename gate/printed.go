package gate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"oversell/campaign/judging"
	"oversell/internal/exactjson"
	"oversell/internal/phrase"
	"oversell/reports"
)

// begunDocument matches the beginning of a document of any version, even of one that is cut off.
var begunDocument = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"` + reports.Schemas)

// byDocument judges a program by the oversell document that it printed. If it printed something else, ok is false. A
// document that cannot be read decides nothing.
func byDocument(dir string, exit int) (r reports.Run, ok bool) {
	source, err := os.ReadFile(filepath.Join(dir, stdoutFile))
	if err != nil {
		return undecidedRun("the output of the command cannot be read: " + phrase.OneLine(err.Error())), true
	}
	var head struct {
		Schema string `json:"schema"`
	}
	whole := json.Unmarshal(source, &head) == nil && strings.HasPrefix(head.Schema, reports.Schemas)
	if !whole && !begunDocument.Match(source) {
		return r, false
	}
	runs, err := runsIn(source)
	if err != nil {
		return undecidedRun(fmt.Sprintf("the document that the command printed %s (it exited with %d)", phrase.OneLine(err.Error()), exit)), true
	}
	r = combined(runs)
	if exit != reports.ExitPass && r.Verdict == reports.Pass {
		r = undecidedRun(fmt.Sprintf("the command printed a pass, but exited with %d", exit))
	}
	return r, true
}

// runsIn returns the runs of a document with the verdicts that they deserve.
func runsIn(source []byte) ([]reports.Run, error) {
	var d reports.Document
	if err := exactjson.Unmarshal(source, &d); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	switch {
	case d.Schema != reports.Schema:
		return nil, fmt.Errorf("has the schema %q, and this build reads %q", d.Schema, reports.Schema)
	case len(d.Runs) == 0:
		return nil, fmt.Errorf("has no runs")
	}
	for i, r := range d.Runs {
		d.Runs[i] = believed(r)
	}
	return d.Runs, nil
}

// believed returns a run of a document with the worse of its verdict and the verdict that the rest of it allows.
func believed(r reports.Run) reports.Run {
	says := r.Verdict
	r.Properties = slices.Clone(r.Properties)
	for i := range r.Properties {
		p := &r.Properties[i]
		switch {
		case !slices.Contains(reports.Results, p.Result):
			p.Why = fmt.Sprintf("its result is %q, and must be %s", p.Result, english.WordSeries(reports.Results, "or"))
			p.Result = reports.Unknown
		case p.Result != reports.NotClaimed && p.Measured == reports.Broken:
			p.Result = reports.Broken
		}
		if p.Result == reports.Broken {
			r.Verdict = reports.Violated
		}
	}
	if why := doubt(r); why != "" && r.Verdict != reports.Violated {
		r.Verdict, r.Why = reports.Inconclusive, fmt.Sprintf("the verdict that the command printed is %q, %s", says, why)
	}
	return r
}

// doubt explains why a run of a document does not have the verdict that it says, as a clause; empty if it may have it.
// docs/verdicts.md says what a pass needs.
func doubt(r reports.Run) string {
	switch {
	case !slices.Contains(reports.Verdicts, r.Verdict):
		return "and must be " + english.WordSeries(reports.Verdicts, "or")
	case r.Verdict != reports.Pass:
		return ""
	case r.Interrupted:
		return "but the run was stopped before its end"
	case r.Cut != "":
		return "but its history is incomplete: " + r.Cut
	}
	for _, f := range r.Faults {
		if f.Fired <= 0 || f.Failed != "" {
			return fmt.Sprintf("but the fault %q %s", f.Name, f.Story())
		}
	}
	promised := slices.DeleteFunc(slices.Clone(r.Properties), func(p reports.Property) bool { return p.Result == reports.NotClaimed })
	if len(promised) == 0 {
		return "but nothing was promised, so nothing could be broken"
	}
	for _, p := range promised {
		switch {
		case p.Result == reports.Unknown:
			return fmt.Sprintf("but %s of the %s is not decided: %s", p.Name, p.Of, or(p.Why, "it gives no reason"))
		case p.Opportunities < judging.Needed:
			return fmt.Sprintf("but %s of the %s had %s, and a pass needs %d for each promise", p.Name, p.Of, phrase.Count(p.Opportunities, "opportunity"), judging.Needed)
		}
	}
	return ""
}
