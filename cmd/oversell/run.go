package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/reports"
	"oversell/target"
)

func runCommand(code *int) *cobra.Command {
	var (
		o      campaign.Options
		asJSON bool
		dest   string
		live   showing
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a scenario under load and judge what happened",
		Long: `Run a scenario under load and judge what happened.

With no flags: a flash sale of 500 pieces to 64 clients under every shipped lock,
on a redis-server started for it, or of 200 pieces to 16 clients on an embedded
emulation where none is installed. The exit code is 0 when every promise was kept, 1 when one was broken,
2 for wrong usage, 3 when the run could not decide, and 5 when the surroundings
failed.`,
		Example: `  oversell run
  oversell run --lock redislock-printed --clients 64 --stock 500
  oversell run --lock lua-release --ttl 50ms --hold 80ms
  oversell run --lock setnx-expire --ttl 1s --fault 'crash after SETNX 1%'
  oversell run --scenario queue --die 0.05
  oversell run --scenario mutex --lock redlock --topology masters:5
  oversell run --lock lua-release --target redis://127.0.0.1:6379/5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.Seed = uint64(time.Now().UnixNano() % 1e9)
			}
			plan, err := campaign.NewPlan(cmd.Context(), o)
			if err != nil {
				return err
			}
			plan.Dir = dest
			if dest == "" {
				plan.Dir = campaign.DefaultDir(time.Now())
			}
			progress, err := live.open(cmd, o.Target.AllowRemote)
			if err != nil {
				return err
			}
			defer progress.Close()
			for _, why := range plan.Skipped {
				fmt.Fprintln(cmd.ErrOrStderr(), "left out: "+why)
			}
			d, runErr := campaign.Run(cmd.Context(), plan, progress)
			progress.Close() // before anything else is written
			switch {
			case cmd.Context().Err() != nil:
				*code = interrupted(d)
			case len(d.Runs) > 0:
				*code = d.ExitCode()
			}
			if len(d.Runs) < len(plan.Runs) && cmd.Context().Err() != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "interrupted: %d of %d runs were judged\n", len(d.Runs), len(plan.Runs))
			}
			if len(d.Runs) == 0 && !asJSON {
				return surroundings(runErr)
			}
			if err := show(cmd, d, asJSON); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "\nseed %d; histories in %s; judge them again with: oversell check %s\n", o.Seed, plan.Dir, quoted(plan.Dir))
			return surroundings(runErr)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Bind(f)
	f.StringVar(&dest, "out", "", "directory for the histories (default: oversell-runs/ and the time)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	live.bind(f)
	return cmd
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+=:,@%", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// interrupted is the exit code of a campaign that was stopped: what it left out
// was not decided.
func interrupted(d reports.Document) int {
	if d.ExitCode() == reports.ExitViolated {
		return reports.ExitViolated
	}
	return reports.ExitInconclusive
}

// surroundings marks an error that came up while running: unless it says that
// the call was wrong, something around the program failed.
func surroundings(err error) error {
	if err == nil || errors.Is(err, target.ErrUsage) || errors.Is(err, campaign.ErrUsed) {
		return err
	}
	return environment{err}
}
