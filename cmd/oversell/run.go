package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/server"
)

func runCommand(code *int) *cobra.Command {
	r := runFlags{code: code}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a scenario under load and judge what happened",
		Long: `Run a scenario under load and judge what happened.

With no flags: a flash sale of 500 pieces to 64 clients under every shipped lock,
on a redis-server started for it; or of 200 pieces to 16 clients on an embedded
emulation if none is installed. A run that names no lock, queue or system is a
demonstration: the exit code is 0 when every violation is declared as a flaw,
1 when one is not, and 3 when a run decided nothing.

With --lock, --queue or --system the exit code is 0 when the run passed, 1 when a promise
was broken, and 3 when the run was inconclusive. It is 2 for wrong usage, and 5 for an
environment error.`,
		Example: `  oversell run
  oversell run --lock php-lock-printed --clients 64 --stock 500
  oversell run --lock lua-release --ttl 50ms --hold 80ms
  oversell run --scenario mutex --lock incr-max --duration 1h --stop-on-violation
  oversell run --lock setnx-expire --ttl 1s --fault 'crash before EXPIRE nth 20'
  oversell run --scenario queue --die 0.05
  oversell run --scenario mutex --lock redlock --topology masters:5
  oversell run --lock lua-release --target redis://127.0.0.1:6379/5`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	r.o.Bind(f)
	f.StringVar(&r.dest, "out", "", "directory for the histories (default: oversell-runs/ and the time)")
	f.BoolVar(&r.stop, "stop-on-violation", false, "judge promises during the run, and stop the run at the first violation, like Ctrl-C; with several runs, each is stopped separately")
	f.BoolVar(&r.asJSON, "json", false, "print one JSON document on stdout")
	r.live.bind(f)
	return cmd
}

// runFlags are the flags of run.
type runFlags struct {
	o      campaign.Options
	asJSON bool
	stop   bool
	dest   string
	live   showing
	code   *int // exit code of the process, to be set
}

// run plans the runs, makes them, and prints the results.
func (r *runFlags) run(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("seed") {
		r.o.Seed = uint64(time.Now().UnixNano() % 1e9)
	}
	plan, err := campaign.NewPlan(cmd.Context(), r.o)
	if err != nil {
		return err
	}
	plan.Dir = r.dest
	if r.dest == "" {
		plan.Dir = campaign.DefaultDir(time.Now())
	}
	progress, err := r.live.open(cmd, r.o.Target.AllowRemote)
	if err != nil {
		return err
	}
	defer progress.Close()
	progress.stopping = r.stop
	for _, why := range plan.Skipped {
		tellf(cmd.ErrOrStderr(), "left out: %s\n", why)
	}
	for _, note := range plan.Notes {
		tellf(cmd.ErrOrStderr(), "note: %s\n", note)
	}
	if n := len(plan.Runs); n > 1 {
		progress.begin(&course{noun: "run", n: n, takes: plan.Takes()})
	}
	d, runErr := campaign.Run(cmd.Context(), plan, progress)
	progress.Close() // before anything else is written
	outcome := d.ExitCode
	if r.o.Sweeps() {
		outcome = d.DemonstrationCode
	}
	switch {
	case cmd.Context().Err() != nil && len(d.Runs) < len(plan.Runs):
		*r.code = interrupted(outcome())
	case len(d.Runs) > 0:
		*r.code = outcome()
	}
	if len(d.Runs) < len(plan.Runs) && cmd.Context().Err() != nil {
		tellf(cmd.ErrOrStderr(), "interrupted: %d of %d runs were judged\n", len(d.Runs), len(plan.Runs))
	}
	if len(d.Runs) == 0 && !r.asJSON {
		return whileRunning(runErr)
	}
	if err := show(cmd, d, r.asJSON); err != nil {
		return err
	}
	tellf(cmd.ErrOrStderr(), "\n")
	if campaign.Exists(plan.Page()) { // unless the disk was full
		tellf(cmd.ErrOrStderr(), "page: %s\n", plan.Page())
	}
	if campaign.Saved(plan.Dir) {
		tellf(cmd.ErrOrStderr(), "judge again: oversell check %s\nseed %d; histories in %s\n", quoted(plan.Dir), r.o.Seed, plan.Dir)
	} else {
		tellf(cmd.ErrOrStderr(), "seed %d; no history was saved\n", r.o.Seed)
	}
	return whileRunning(runErr)
}

// quoted quotes a path for a shell. Control characters are escaped as bash and zsh read them.
func quoted(path string) string {
	if text := printable.Text(path); text != path {
		return "$'" + strings.ReplaceAll(text, "'", `\'`) + "'"
	}
	return phrase.ShellWord(path)
}

// interrupted returns the exit code of a campaign that was stopped: the remaining runs are undecided.
func interrupted(outcome int) int {
	if outcome == reports.ExitViolated {
		return reports.ExitViolated
	}
	return reports.ExitInconclusive
}

// whileRunning classifies an error during a run: unless it is a usage error, it is an environment error.
func whileRunning(err error) error {
	if err == nil || errors.Is(err, server.ErrUsage) || errors.Is(err, campaign.ErrUsed) {
		return err
	}
	return environment{err}
}
