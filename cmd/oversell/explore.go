package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/explore"
	"oversell/internal/limits"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/reports/page"
	"oversell/server"
)

func exploreCommand(code *int) *cobra.Command {
	e := exploreFlags{code: code}
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Try every interleaving of the real code, within bounds",
		Long: `Try every interleaving of the real code, within bounds.

A few clients run the code of the lock, the sale or the queue, and a search tries
every order of their commands, every expiry and, within the bounds, crashes and lost
and late messages. It ends with a schedule that breaks a promise (the shortest one,
unless a limit ended the search), with a proof that within these bounds there is none,
or undecided.

With no flags: every shipped lock, two clients that each try twice, with sections that
last longer than half the lease; one client may crash, one message may be lost and one be
late, time may pass twice while a client could run, and a client may be held up once
between reading its clock and what it does next. The exit code is 0
when no promise can be broken within the bounds, 1 when one can, 2 for wrong usage,
3 when the search could not decide, and 5 for an environment error.

With --replay, the schedule that an earlier search found is driven against a real
Redis, command by command. The exit code is 1 when every replay broke the promise, and
3 when one did not. With --emit-test, it is written as a Go test that fails
while the schedule breaks the promise.`,
		Example: `  oversell explore
  oversell explore --lock php-lock-printed
  oversell explore --lock lua-release --clients 3 --crashes 2
  oversell explore --lock lua-release --sale plain
  oversell explore --lock fenced --sale fenced --clients 3 --advances 2 --lost 1
  oversell explore --queue reliable --crashes 1
  oversell explore --system examples/php/lock-printed.yaml
  oversell explore --lock set-nx-ex --emit-test lock_test.go
  oversell explore --replay trace.json --target process --times 20
  oversell explore --replay trace.json --emit-test lock_test.go`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	e.o.BindSearch(f)
	f.StringVar(&e.trace, "replay", "", "drive the schedule in this file, written by an earlier search, against a real Redis")
	f.StringVar(&e.spec.Target, "target", "process", "server to replay on: process, container or embedded")
	f.IntVar(&e.times, "times", 1, "number of replays")
	f.StringVar(&e.emitTest, "emit-test", "", "write a Go test that replays the schedule to this file, …_test.go")
	f.StringVar(&e.dest, "out", "", "directory for pages and traces (default: oversell-runs/ and the time)")
	f.BoolVar(&e.asJSON, "json", false, "print one JSON document on stdout")
	limits.Explore.Bind(f)
	return cmd
}

// exploreFlags are the flags of explore.
type exploreFlags struct {
	o        campaign.SearchOptions
	asJSON   bool
	dest     string
	trace    string
	spec     server.Spec
	times    int
	emitTest string
	code     *int // exit code of the process, to be set
}

// run searches or replays, depending on the flags.
func (e *exploreFlags) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("emit-test") {
		if err := campaign.CheckTest(e.emitTest); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("replay") {
		return replay(cmd, e.code, e.trace, e.spec, e.times, e.emitTest)
	}
	for _, flag := range replayFlags {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s goes with --replay", flag)
		}
	}
	cs, skipped, err := campaign.Searches(e.o)
	if err != nil {
		return err
	}
	if e.emitTest != "" && len(cs) > 1 {
		return fmt.Errorf("--emit-test needs a single search, and these are %d: name one lock or queue", len(cs))
	}
	for _, why := range skipped {
		tellf(cmd.ErrOrStderr(), "left out: %s\n", why)
	}
	if e.dest == "" {
		e.dest = campaign.DefaultDir(time.Now())
	}
	if err := unsearched(e.dest); err != nil {
		return err
	}
	all, unfiled := searchAll(cmd, cs, e.dest, e.asJSON)
	*e.code = all.ExitCode()
	if unfiled != nil && len(all.Explorations) == 0 {
		return unfiled
	}
	if cmd.Context().Err() != nil && len(all.Explorations) < len(cs) {
		tellf(cmd.ErrOrStderr(), "interrupted: %d of %d searches were made\n", len(all.Explorations), len(cs))
		if *e.code == reports.ExitPass {
			*e.code = reports.ExitInconclusive
		}
	}
	if e.asJSON {
		err = printing(reports.WriteJSON(cmd.OutOrStdout(), all))
	} else {
		err = printFiles(cmd, all, e.dest)
	}
	return errors.Join(unfiled, err, emitted(cmd.ErrOrStderr(), e.emitTest, all))
}

// replayFlags need --replay. emit-test works without it, too.
var replayFlags = []string{"target", "times"}

// emitted writes a test for the counterexample of a search, or reports that there is none.
func emitted(stderr io.Writer, path string, all reports.Explorations) error {
	if path == "" {
		return nil
	}
	if len(all.Explorations) == 0 || all.Explorations[0].Counterexample == nil {
		tellf(stderr, "%s was not written: the search found no counterexample\n", path)
		return nil
	}
	return emit(stderr, path, all.Explorations[0])
}

// emit writes a test for a counterexample.
func emit(stderr io.Writer, path string, e reports.Exploration) error {
	err := campaign.WriteTest(path, e)
	if err == nil {
		told := "wrote " + path
		if own := campaign.OwnPackage(path); own != "" {
			told += ", of package " + own + ": Go files of another package need another directory"
		}
		tellf(stderr, "%s\n", told)
	}
	if errors.As(err, new(*fs.PathError)) {
		return environment{err}
	}
	return err
}

// printFiles prints, after the searches, which files exist and how to replay them.
func printFiles(cmd *cobra.Command, all reports.Explorations, dest string) error {
	if len(all.Explorations) > 1 {
		if err := terminal(cmd).Explorations(all); err != nil {
			return printing(err)
		}
	}
	tellf(cmd.ErrOrStderr(), "\npages and traces in %s\n", dest)
	if len(all.Explorations) == 1 && all.Explorations[0].Counterexample != nil {
		path := filepath.Join(dest, traceName(1, all.Explorations[0])+".json")
		tellf(cmd.ErrOrStderr(), "on a real Redis: oversell explore --replay %s\n", quoted(path))
	}
	return nil
}

// unsearched returns an error if a search in dir would overwrite an earlier one.
func unsearched(dir string) error {
	if err := campaign.CheckDirectory(dir); err != nil {
		return err
	}
	files, _ := os.ReadDir(dir) // a directory that cannot be read fails again on writing
	for _, f := range files {
		if strings.HasPrefix(f.Name(), tracePrefix) {
			return fmt.Errorf("%w: %s holds an earlier search: choose another --out", campaign.ErrUsed, filepath.Join(dir, f.Name()))
		}
	}
	return nil
}

// tracePrefix begins the names of all files that searches write.
const tracePrefix = "explore-"

// traceName returns the base name of the files of the n-th search.
func traceName(n int, e reports.Exploration) string {
	return fmt.Sprintf("%s%02d-%s", tracePrefix, n, fileName(e))
}

// searchAll makes the searches, prints each as it ends, and writes their files.
func searchAll(cmd *cobra.Command, cs []explore.Config, dest string, quiet bool) (all reports.Explorations, err error) {
	all = reports.Explorations{Schema: reports.ExplorationsSchema, Explorations: []reports.Exploration{}}
	if err := os.MkdirAll(dest, 0o777); err != nil {
		return all, environment{err}
	}
	p := newProgress(cmd.ErrOrStderr())
	defer p.Close()
	if len(cs) > 1 {
		p.begin(&course{noun: "search", n: len(cs)})
		p.say(longestSearch(cs))
	}
	for i := range cs {
		limit := reports.FromMS(cs[i].Bounds.TimeMS)
		cs[i].Progress = func(e reports.Effort) { p.searching(e, limit) }
	}
	var failed error
	err = campaign.Explore(cmd.Context(), cs, func(e reports.Exploration) {
		p.found()
		name := traceName(len(all.Explorations)+1, e)
		e.Command = again(cmd, e)
		all.Explorations = append(all.Explorations, e)
		failed = errors.Join(failed, fileExploration(filepath.Join(dest, name), e))
		switch {
		case quiet:
		case len(cs) == 1:
			failed = errors.Join(failed, terminal(cmd).Exploration(e))
		default:
			p.did(1, "")
			p.say(fmt.Sprintf("%2d/%d %s: %s", len(all.Explorations), len(cs), cmp.Or(e.Queue, e.Lock), e.Headline()))
		}
	})
	if failed != nil {
		failed = environment{failed}
	}
	return all, errors.Join(err, failed)
}

// longestSearch describes how long the searches may take. Only their limits are known in advance.
func longestSearch(cs []explore.Config) string {
	longest := 0.0
	for _, c := range cs {
		if c.Bounds.TimeMS == 0 {
			return "most take seconds, without a limit: --time sets one"
		}
		longest = max(longest, c.Bounds.TimeMS)
	}
	limit := reports.FromMS(longest)
	return fmt.Sprintf("most take seconds; each ends after at most %s (--time), the last part of which is for random schedules, and all after at most %s", roughly(limit), roughly(limit*time.Duration(len(cs))))
}

// again returns the command line as given, reduced to this one of its searches.
func again(cmd *cobra.Command, e reports.Exploration) string {
	words := []string{"oversell explore"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{"out", "json", "emit-test", "lock", "queue"}, f.Name) {
			return
		}
		words = append(words, "--"+f.Name+"="+quoted(strings.Trim(f.Value.String(), "[]")))
	})
	for _, named := range [][2]string{{"lock", e.Lock}, {"queue", e.Queue}} {
		if named[1] != "" && e.System == "" {
			words = append(words, "--"+named[0]+"="+named[1])
		}
	}
	return strings.Join(words, " ")
}

func fileName(e reports.Exploration) string {
	return reports.Joined("-", e.Scenario, e.Queue, e.IDs, e.Lock, e.Sale)
}

// fileExploration writes a search as JSON, from which it can be replayed, and as a page.
func fileExploration(path string, e reports.Exploration) error {
	return errors.Join(
		reports.ToFile(path+".json", func(w io.Writer) error { return reports.WriteJSON(w, campaign.BesideTrace(e, path+".json")) }),
		reports.ToFile(path+".html", func(w io.Writer) error { return page.Exploration(w, e, campaign.ReplayCommand(path+".json")) }),
	)
}

// replay drives a schedule from a file against real servers.
func replay(cmd *cobra.Command, code *int, path string, spec server.Spec, times int, emitTest string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(append([]string{"replay", "emit-test"}, replayFlags...), f.Name) {
			err = fmt.Errorf("--%s has no effect on --replay, which drives the schedule in the file: leave it out", f.Name)
		}
	})
	if err != nil {
		return err
	}
	e, renamed, err := campaign.Trace(path)
	if err != nil {
		return err
	}
	if renamed != "" {
		tellf(cmd.ErrOrStderr(), "note: %s\n", renamed)
	}
	if emitTest != "" {
		if err := emit(cmd.ErrOrStderr(), emitTest, e); err != nil {
			return err
		}
		if !cmd.Flags().Changed("target") && !cmd.Flags().Changed("times") {
			return nil
		}
	}
	r, err := campaign.Replay(cmd.Context(), e, spec, times)
	switch {
	case errors.Is(err, explore.ErrUsage):
		return err
	case cmd.Context().Err() != nil:
		*code = reports.ExitInconclusive
		tellf(cmd.ErrOrStderr(), "interrupted: replayed %d of %d times, confirmed %d times\n", r.Times, times, r.Confirmed)
		return nil
	case err != nil:
		return whileRunning(err)
	}
	cx := e.Counterexample
	switch {
	case r.Confirmed == r.Times:
		*code = reports.ExitViolated
		tellf(cmd.OutOrStdout(), "confirmed on %s, %d of %d times: %s breaks in the same %s\n%s\n", r.On, r.Confirmed, r.Times, cx.Property, phrase.Count(len(cx.Steps), "step"), r.Why)
	case r.Confirmed == 0:
		*code = reports.ExitInconclusive
		tellf(cmd.OutOrStdout(), "not confirmed on %s, in %d of %d times: %s does not break there\n%s\n", r.On, r.Times, r.Times, cx.Property, r.Why)
	default:
		*code = reports.ExitInconclusive
		tellf(cmd.OutOrStdout(), "confirmed on %s only %d of %d times: %s does not always break there\n%s\n", r.On, r.Confirmed, r.Times, cx.Property, r.Why)
	}
	return nil
}
