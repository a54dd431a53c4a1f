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
	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/explore"
	"oversell/reports"
	"oversell/target"
)

func exploreCommand(code *int) *cobra.Command {
	var (
		o        campaign.SearchOptions
		asJSON   bool
		dest     string
		trace    string
		spec     target.Spec
		times    int
		emitTest string
	)
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "Try every interleaving of the real code, within bounds",
		Long: `Try every interleaving of the real code, within bounds.

A few clients run the code of the lock, the sale or the queue, and a search tries
every order of their commands and every expiry and, as far as the bounds allow,
crashes, lost and late messages. It ends in the shortest schedule that breaks a
promise, or in the certainty that within these bounds there is none.

With no flags: every shipped lock, two clients that try twice. The exit code is 0
when no promise can be broken, 1 when one can, 2 for wrong usage, and 3 when the
search could not decide.

With --replay, the schedule that an earlier search found is driven against a real
Redis, command by command.`,
		Example: `  oversell explore
  oversell explore --lock redislock-printed
  oversell explore --lock lua-release --clients 3 --crashes 2
  oversell explore --lock lua-release --sale plain
  oversell explore --lock fenced --sale fenced --clients 3 --advances 2 --lost 1
  oversell explore --queue reliable --crashes 1
  oversell explore --replay trace.json --target process --times 20`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if trace != "" {
				return replay(cmd, code, trace, spec, times, emitTest)
			}
			for _, flag := range []string{"target", "times", "emit-test"} {
				if cmd.Flags().Changed(flag) {
					return fmt.Errorf("--%s goes with --replay", flag)
				}
			}
			cs, skipped, err := campaign.Searches(o)
			if err != nil {
				return err
			}
			for _, why := range skipped {
				fmt.Fprintln(cmd.ErrOrStderr(), "left out: "+why)
			}
			if dest == "" {
				dest = campaign.DefaultDir(time.Now())
			}
			all, err := searchAll(cmd, cs, dest, asJSON)
			*code = all.ExitCode()
			if err != nil {
				return err
			}
			if cmd.Context().Err() != nil && len(all.Explorations) < len(cs) {
				fmt.Fprintf(cmd.ErrOrStderr(), "interrupted: %d of %d searches were made\n", len(all.Explorations), len(cs))
				if *code == reports.ExitPass {
					*code = reports.ExitInconclusive
				}
			}
			if asJSON {
				return printing(reports.WriteJSON(cmd.OutOrStdout(), all))
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "\npages and traces in %s\n", dest)
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.BindSearch(f)
	f.StringVar(&trace, "replay", "", "drive the schedule in this file, written by an earlier search, against a real Redis")
	f.StringVar(&spec.Target, "target", "process", "what to replay on: process, container or embedded")
	f.IntVar(&times, "times", 1, "how often to replay")
	f.StringVar(&emitTest, "emit-test", "", "write a Go test that replays the schedule to this file")
	f.StringVar(&dest, "out", "", "directory for pages and traces (default: oversell-runs/ and the time)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// searchAll makes the searches, shows each as it ends, and files them.
func searchAll(cmd *cobra.Command, cs []explore.Config, dest string, quiet bool) (all reports.Explorations, err error) {
	all = reports.Explorations{Schema: reports.ExplorationsSchema, Explorations: []reports.Exploration{}}
	if err := os.MkdirAll(dest, 0o777); err != nil {
		return all, environment{err}
	}
	terminal := reports.Terminal{W: cmd.OutOrStdout(), Color: isTerminal(cmd.OutOrStdout())}
	p := newProgress(cmd.ErrOrStderr())
	for i := range cs {
		cs[i].Progress = p.searching
	}
	var failed error
	err = campaign.Explore(cmd.Context(), cs, func(e reports.Exploration) {
		p.found()
		name := fmt.Sprintf("explore-%02d-%s", len(all.Explorations)+1, fileName(e))
		e.Command = again(cmd)
		all.Explorations = append(all.Explorations, e)
		failed = errors.Join(failed, fileExploration(filepath.Join(dest, name), e))
		switch {
		case quiet:
		case len(cs) == 1:
			failed = errors.Join(failed, terminal.Exploration(e))
		default:
			fmt.Fprintf(cmd.OutOrStdout(), "%-20s  %s\n", firstOf(e.Queue, e.Lock), e.Headline())
		}
	})
	if failed != nil {
		failed = environment{failed}
	}
	return all, errors.Join(err, failed)
}

func firstOf(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}

// again is the command line as it was given.
func again(cmd *cobra.Command) string {
	words := []string{"oversell explore"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "out" || f.Name == "json" {
			return
		}
		words = append(words, "--"+f.Name+"="+quoted(strings.Trim(f.Value.String(), "[]")))
	})
	return strings.Join(words, " ")
}

func fileName(e reports.Exploration) string {
	var parts []string
	for _, part := range []string{e.Scenario, e.Queue, e.IDs, e.Lock, e.Sale} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "-")
}

// fileExploration writes a search as JSON, from which it can be replayed, and as a page.
func fileExploration(path string, e reports.Exploration) error {
	return errors.Join(
		toFile(path+".json", func(w io.Writer) error { return reports.WriteJSON(w, e) }),
		toFile(path+".html", e.HTML),
	)
}

func toFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replay drives a schedule that was found before against real servers.
func replay(cmd *cobra.Command, code *int, path string, spec target.Spec, times int, emitTest string) error {
	e, err := campaign.Trace(path)
	if err != nil {
		return err
	}
	if times < 1 {
		return fmt.Errorf("--times %d: a schedule is replayed once or more", times)
	}
	if emitTest != "" {
		if err := toFile(emitTest, func(w io.Writer) error { return campaign.WriteTest(w, e) }); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "wrote %s\n", emitTest)
		if !cmd.Flags().Changed("target") && !cmd.Flags().Changed("times") {
			return nil
		}
	}
	r, err := campaign.Replay(cmd.Context(), e, spec, times)
	if err != nil {
		return surroundings(err)
	}
	cx := e.Counterexample
	switch {
	case r.Confirmed == r.Times:
		*code = reports.ExitViolated
		fmt.Fprintf(cmd.OutOrStdout(), "confirmed on %s, %d of %d times: the same %d steps break %s\n%s\n", r.On, r.Confirmed, r.Times, len(cx.Steps), cx.Property, r.Why)
	default:
		*code = reports.ExitInconclusive
		fmt.Fprintf(cmd.OutOrStdout(), "confirmed on %s only %d of %d times\n%s\n", r.On, r.Confirmed, r.Times, r.Why)
	}
	return nil
}
