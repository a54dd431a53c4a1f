package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/gate"
	"oversell/internal/limits"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/reports/ci"
	"oversell/reports/text"
)

// gateFlags are the flags of gate.
type gateFlags struct {
	baseline, junit, markdown, out string
	write, annotations, asJSON     bool
	seed                           uint64
	live                           showing
}

func gateCommand(code *int) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate PLAN.yaml",
		Short: "Check in CI what must hold, what must break, and what must be fast",
		Long: `Check in CI what must hold, what must break, and what must be fast.

The plan lists entries. Each entry under safety names a run, a search or a command of
your own, and its expected outcome; its control, known to be broken, must be caught in
the same configuration. Each entry under performance compares a candidate with a
baseline in turns, with a false-alarm rate of at most 1 %. docs/gate.md explains the
plan, and examples/gate has one with a workflow for GitHub.

The exit code is 0 when all is as expected, 1 when a promise was broken, 2 for wrong
usage or a wrong plan, 3 when something could not be decided or a control was not
caught, 4 when something is slower than allowed, and 5 for an environment error; of
several, 5 counts first, then 1, 3 and 4.`,
		Example: `  oversell gate examples/gate/gate.yaml
  oversell gate gate.yaml --junit gate.xml --markdown gate.md
  oversell gate gate.yaml --baseline baseline.json --write-baseline
  oversell gate gate.yaml --baseline baseline.json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], code) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.baseline, "baseline", "", "baseline file of an earlier gate")
	flags.BoolVar(&f.write, "write-baseline", false, "record the results of this gate, unless a promise was broken, in the file of --baseline (default: beside the plan, with the extension .baseline.json)")
	flags.StringVar(&f.junit, "junit", "", "write JUnit XML to this file")
	flags.StringVar(&f.markdown, "markdown", "", "write a summary in Markdown to this file (in GitHub Actions also to the step's summary)")
	flags.BoolVar(&f.annotations, "annotations", false, "print annotations for GitHub (default: in GitHub Actions)")
	flags.Uint64Var(&f.seed, "seed", 0, "fixes every random choice that the plan leaves open (default: from the clock, and printed)")
	flags.StringVar(&f.out, "out", "", "directory for the histories (default: oversell-runs/ and the time)")
	f.live.bind(flags)
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON document on stdout")
	limits.Gate.Bind(flags)
	return cmd
}

func (f gateFlags) run(cmd *cobra.Command, path string, code *int) error {
	plan, err := gate.Load(cmd.Context(), path)
	if err != nil {
		return err
	}
	for _, note := range plan.Renamed() {
		tellf(cmd.ErrOrStderr(), "note: %s\n", note)
	}
	o, err := f.options(cmd, path, plan.Histories())
	if err != nil {
		return err
	}
	progress, err := f.live.open(cmd, false)
	if err != nil {
		return err
	}
	defer progress.Close()
	g, err := plan.Run(cmd.Context(), o, &gateProgress{progress: progress})
	progress.Close() // before anything else is written
	if err != nil {
		return err
	}
	*code = g.ExitCode()
	err = errors.Join(f.tell(cmd, g), f.files(g), f.record(cmd, plan, g))
	tellf(cmd.ErrOrStderr(), "\nseed %d; run directories in %s\n", o.Seed, o.Dir)
	return err
}

// options returns the gate's options, or an error if one cannot be used.
func (f *gateFlags) options(cmd *cobra.Command, path string, histories []string) (o gate.Options, err error) {
	o = gate.Options{Dir: f.out, Seed: f.seed, Record: f.write}
	if o.Dir == "" {
		o.Dir = campaign.DefaultDir(time.Now())
	}
	if err := campaign.CheckDirectory(o.Dir); err != nil {
		return o, err
	}
	if _, err := os.Stat(o.Dir); err == nil && f.out != "" {
		if entries, err := os.ReadDir(o.Dir); err != nil || len(entries) > 0 {
			return o, fmt.Errorf("%w: %s exists and is not empty: choose another --out", campaign.ErrUsed, o.Dir)
		}
	}
	if !cmd.Flags().Changed("seed") {
		o.Seed = uint64(time.Now().UnixNano() % 1e9)
	}
	if f.write && f.baseline == "" {
		f.baseline = strings.TrimSuffix(path, filepath.Ext(path)) + ".baseline.json"
	}
	if err := f.places(cmd, path, histories); err != nil {
		return o, err
	}
	if !f.write && f.baseline != "" {
		o.Baseline, err = gate.ReadBaseline(f.baseline)
	}
	o.Command = f.again(path, o.Seed)
	return o, err
}

// places returns an error if a file cannot be written, or would replace the plan or a file that no gate has written.
func (f *gateFlags) places(cmd *cobra.Command, path string, histories []string) error {
	var outputs []campaign.Output
	if cmd.Flags().Changed("junit") {
		outputs = append(outputs, campaign.Output{Named: campaign.Named{By: "--junit", Path: f.junit}, What: "a JUnit file of a gate", Ours: ci.IsJUnit})
	}
	if cmd.Flags().Changed("markdown") {
		outputs = append(outputs, campaign.Output{Named: campaign.Named{By: "--markdown", Path: f.markdown}, What: "a summary of a gate", Ours: text.IsGateMarkdown})
	}
	if summary := stepSummary(); summary != "" {
		outputs = append(outputs, campaign.Output{Named: campaign.Named{By: "$" + summaryVariable, Path: summary}})
	}
	inputs := []campaign.Named{{By: "the plan", Path: path}}
	switch baseline := (campaign.Named{By: "--baseline", Path: f.baseline}); {
	case f.write:
		outputs = append(outputs, campaign.Output{Named: baseline, What: "a baseline", Ours: gate.IsBaseline})
	case f.baseline != "":
		inputs = append(inputs, baseline)
	}
	for _, h := range histories {
		inputs = append(inputs, campaign.Named{By: "the history", Path: h})
	}
	return campaign.CheckOutputs(outputs, inputs...)
}

// again returns the command line that repeats the gate.
func (f gateFlags) again(path string, seed uint64) string {
	words := []string{"oversell gate", quoted(path), fmt.Sprintf("--seed=%d", seed)}
	if f.baseline != "" {
		words = append(words, "--baseline="+quoted(f.baseline))
	}
	if f.write {
		words = append(words, "--write-baseline")
	}
	return strings.Join(words, " ")
}

// inActions reports whether the program runs in GitHub Actions.
func inActions() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// summaryVariable is the environment variable that names the file of the step's summary.
const summaryVariable = "GITHUB_STEP_SUMMARY"

// stepSummary returns the file of the step's summary; empty outside of GitHub Actions.
func stepSummary() string {
	if !inActions() {
		return ""
	}
	return os.Getenv(summaryVariable)
}

// tell prints the gate's annotations, then its report: the verdict is the last line.
func (f gateFlags) tell(cmd *cobra.Command, g reports.Gate) error {
	annotations := cmd.OutOrStdout()
	if f.asJSON {
		annotations = cmd.ErrOrStderr() // GitHub reads both
	}
	var err error
	if f.annotations || inActions() {
		err = ci.Annotations(annotations, g, inRepository(g.Plan))
	}
	if f.asJSON {
		err = errors.Join(err, reports.WriteJSON(cmd.OutOrStdout(), g))
	} else {
		err = errors.Join(err, terminal(cmd).Gate(g))
	}
	if err != nil {
		return environment{err}
	}
	return nil
}

// inRepository returns a path relative to the root of the repository that GitHub has checked out.
func inRepository(path string) string {
	root := os.Getenv("GITHUB_WORKSPACE")
	whole, err := filepath.Abs(path)
	if root == "" || err != nil {
		return filepath.ToSlash(path)
	}
	if relative, err := filepath.Rel(root, whole); err == nil && filepath.IsLocal(relative) {
		return filepath.ToSlash(relative)
	}
	return filepath.ToSlash(path)
}

// files writes the requested files and, in GitHub Actions, the step's summary.
func (f gateFlags) files(g reports.Gate) error {
	markdown := func(w io.Writer) error { return text.GateMarkdown(w, g) }
	var errs []error
	if f.junit != "" {
		errs = append(errs, reports.ToFile(f.junit, func(w io.Writer) error { return ci.JUnit(w, g) }))
	}
	if f.markdown != "" {
		errs = append(errs, reports.ToFile(f.markdown, markdown))
	}
	if summary := stepSummary(); summary != "" {
		errs = append(errs, appended(summary, markdown))
	}
	if err := errors.Join(errs...); err != nil {
		return environment{err}
	}
	return nil
}

func appended(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// record writes the baseline, or explains why it is not written or what is missing from it.
func (f gateFlags) record(cmd *cobra.Command, plan *gate.Plan, g reports.Gate) error {
	if !f.write {
		return nil
	}
	b, left, err := plan.Record(g, time.Now())
	for _, sentence := range left { // the exit code reflects these, too
		tellf(cmd.ErrOrStderr(), "%s\n", sentence)
	}
	if err != nil {
		tellf(cmd.ErrOrStderr(), "%s\n", err)
		return nil
	}
	if err := reports.ToFile(f.baseline, func(w io.Writer) error { return reports.WriteJSON(w, b) }); err != nil {
		return environment{err}
	}
	recorded := len(b.Safety) + len(b.Performance)
	tellf(cmd.ErrOrStderr(), "wrote %s with %s of %d\n", f.baseline, phrase.Count(recorded, "entry"), recorded+len(left))
	return nil
}

// gateProgress reports the progress of a gate on stderr.
type gateProgress struct{ *progress }

// Entry reports the next entry.
func (p *gateProgress) Entry(i, n int, name string) {
	p.say(fmt.Sprintf("entry %d/%d: %s", i+1, n, name))
}

// Said prints a note.
func (p *gateProgress) Said(line string) { p.say(line) }
