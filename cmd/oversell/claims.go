package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/claims"
	"oversell/reports"
	"oversell/reports/text"
)

func claimsCommand(code *int) *cobra.Command {
	var (
		o              claims.Options
		asJSON         bool
		dest, markdown string
	)
	cmd := &cobra.Command{
		Use:   "claims [C1 …]",
		Short: "Measure on a real Redis what published texts claim",
		Long: `Measure on a real Redis what published texts claim.

Each of twenty-six claims, about locks, queues, scripts and connections, is confirmed,
refuted, or depends on a condition, which is named. Without arguments all are measured,
in less than three minutes (--quick: one). For up to three claims, all numbers are shown.

Each measurement starts a redis-server of its own, which must be installed, or a
container with --target container. With --target redis://… it uses the server there:
claims that kill servers are then inconclusive, C14 leaves two thousand small scripts in
the server's script cache, and C20 and C22 keep the server busy for some seconds.

The exit code is 0 when every answer is as declared, 1 when one differs, 2 for wrong
usage, 3 when one could not be decided, and 5 for an environment error.`,
		Example: `  oversell claims
  oversell claims C14
  oversell claims C2 C3 --quick
  oversell claims C14 C16 --target redis://127.0.0.1:6379/5
  oversell claims --markdown docs/claims.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				o.Numbers = append(o.Numbers, strings.Split(arg, ",")...)
			}
			plan, err := claims.NewPlan(cmd.Context(), o)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("markdown") {
				page := campaign.Output{Named: campaign.Named{By: "--markdown", Path: markdown}, What: "a page of claims", Ours: text.IsClaimsMarkdown}
				if err := campaign.CheckOutputs([]campaign.Output{page}); err != nil {
					return err
				}
			}
			if dest == "" {
				dest = campaign.DefaultDir(time.Now())
			}
			plan.Dir = dest
			all, runErr := measured(cmd, plan)
			if len(all.Claims) == 0 && runErr != nil {
				return whileRunning(runErr)
			}
			*code = all.ExitCode()
			all.Command = asTyped(args, o.Quick, o.Target.String(), cmd.Flags().Changed("target"))
			return errors.Join(tell(cmd, all, asJSON, markdown), whileRunning(runErr))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.Quick, "quick", false, "fewer repetitions: all claims in less than a minute")
	f.StringVar(&o.Target.Target, "target", "process", "process, container, or redis://[user:password@]host:port[/db]")
	campaign.BindAddress(f, &o.Target)
	f.StringVar(&dest, "out", "", "directory for the histories (default: oversell-runs/ and the time)")
	f.StringVar(&markdown, "markdown", "", "also write the answers as a Markdown page to this file")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// measured measures the claims and reports each on stderr.
func measured(cmd *cobra.Command, plan claims.Plan) (reports.Claims, error) {
	n, stderr := 0, cmd.ErrOrStderr()
	p := newProgress(stderr)
	defer p.Close()
	plan.Opened = p.Target
	p.begin(&course{noun: "claim", n: plan.Claims(), takes: plan.Takes()})
	all, err := claims.Run(cmd.Context(), plan, func(c reports.Claim) {
		n++
		p.did(1, "")
		p.say(fmt.Sprintf("%2d/%d %s: %s (%.1f s)", n, plan.Claims(), c.Number, c.Answer, c.ElapsedMS/1e3))
	})
	p.Close()
	if cmd.Context().Err() != nil && all.Interrupted {
		tellf(stderr, "interrupted: %d of %d claims were answered\n", len(all.Claims), plan.Claims())
	}
	return all, err
}

// tell prints the answers and, unless some are missing, writes the page. A failure of one does not prevent the
// other.
func tell(cmd *cobra.Command, all reports.Claims, asJSON bool, markdown string) error {
	if asJSON {
		return errors.Join(printing(reports.WriteJSON(cmd.OutOrStdout(), all)), claimsPage(cmd, all, markdown))
	}
	return errors.Join(printing(terminal(cmd).Claims(all)), claimsPage(cmd, all, markdown))
}

// claimsPage writes the page if --markdown asked for it.
func claimsPage(cmd *cobra.Command, all reports.Claims, path string) error {
	switch {
	case path == "":
		return nil
	case all.Interrupted:
		tellf(cmd.ErrOrStderr(), "%s was not written: not every claim was answered\n", path)
		return nil
	}
	if err := reports.ToFile(path, func(w io.Writer) error { return text.ClaimsMarkdown(w, all) }); err != nil {
		return environment{err}
	}
	tellf(cmd.ErrOrStderr(), "wrote %s\n", path)
	return nil
}

// asTyped returns the command line that repeats the measurement, without passwords.
func asTyped(args []string, quick bool, target string, named bool) string {
	words := append([]string{"oversell claims"}, args...)
	if quick {
		words = append(words, "--quick")
	}
	if named {
		words = append(words, "--target="+quoted(target))
	}
	return strings.Join(words, " ")
}
