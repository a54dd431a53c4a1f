package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/load"
	"oversell/reports"
	"oversell/target"
)

func runCommand(code *int) *cobra.Command {
	var (
		o             campaign.Options
		asJSON        bool
		waiting, dest string
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
  oversell run --scenario queue --die 0.05
  oversell run --scenario mutex --lock redlock --topology masters:5
  oversell run --lock lua-release --target redis://127.0.0.1:6379/5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Waiting, err = load.ParseWaiting(waiting); err != nil {
				return err
			}
			o.Set = func(flag string) bool { return cmd.Flags().Changed(flag) }
			o.SQL.AllowRemote = o.Target.AllowRemote
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
			progress := newProgress(cmd.ErrOrStderr())
			for _, why := range plan.Skipped {
				fmt.Fprintln(cmd.ErrOrStderr(), "left out: "+why)
			}
			d, runErr := campaign.Run(cmd.Context(), plan, progress)
			switch {
			case cmd.Context().Err() != nil:
				*code = interrupted(d)
				runErr = nil // what failed because of the signal is no failure
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
	f.StringVar(&o.Scenario, "scenario", "seckill", "what the clients do: seckill, mutex, queue, seckill-queued, ids, floors or dispatch")
	f.StringSliceVar(&o.Locks, "lock", nil, "the lock, or several: a,b (default: every shipped one)")
	f.StringVar(&o.Sale, "sale", "", "how the sale is written (default: plain; fenced under locks that grant fencing tokens)")
	f.StringVar(&o.Queue, "queue", "", "the task queue (default: every shipped one)")
	f.DurationVar(&o.Delay, "delay", 0, "tasks are due after a part of this, drawn by chance")
	f.Float64Var(&o.Repeat, "repeat", 0, "probability that a producer enqueues its last id again")
	f.BoolVar(&o.QueueOptions.Overwrite, "overwrite", false, "an id that is enqueued again replaces its entry, instead of being ignored")
	f.Float64Var(&o.Die, "die", 0, "probability that a client dies with the task or number it was given; in dispatch, that a user comes back too late")
	f.DurationVar(&o.QueueOptions.Visibility, "visibility", 0, "how long a consumer has for a task (default, where there is such a limit: 1s)")
	f.IntVar(&o.QueueOptions.MaxAttempts, "attempts", 0, "deliveries after which a task becomes a dead letter; 0: never")
	f.StringVar(&o.Dispatch, "dispatch", "", "how tasks are dispatched (default: dispatch-locked; dispatch-fenced under locks that grant fencing tokens)")
	f.StringVar(&o.SQL.DSN, "sql", "", "database, for what is kept in one: sqlite, postgres://… or mysql://… (default: sqlite, a temporary file)")
	f.StringVar(&o.IDs, "ids", "", "how numbers are generated, in ids and floors (default: get-set)")
	f.StringVar(&o.Target.Target, "target", "auto", "auto, embedded, process, or redis://[user:password@]host:port[/db]")
	f.StringVar(&o.Target.Topology, "topology", "", "single or masters:N (default: what the lock needs)")
	f.IntVar(&o.Clients, "clients", 64, "concurrent clients (on the emulation: 16)")
	f.Int64Var(&o.Stock, "stock", 500, "pieces on sale (on the emulation: 200)")
	f.IntVar(&o.Quantity, "quantity", 1, "largest order: each is for 1 to N pieces")
	f.Float64Var(&o.Resend, "resend", 0, "probability that a buyer sends an order twice at once")
	f.Float64Var(&o.Refund, "refund", 0, "probability that a buyer gives a purchase back")
	f.DurationVar(&o.TTL, "ttl", 10*time.Second, "lease of the lock")
	f.DurationVar(&o.Wait, "wait", 10*time.Second, "how long one acquisition keeps trying")
	f.DurationVar(&o.Retry, "retry", 0, "longest pause between two tries (default: by strategy and number of clients)")
	f.DurationVar(&o.Hold, "hold", 0, "how long a section lasts beyond its own commands; in a sale, after its first command (default: 0; mutex: 1ms)")
	f.StringVar(&waiting, "waiting", string(load.Poll), "how clients wait for a busy lock: poll, exponential or pubsub")
	f.IntVar(&o.Pool, "pool", 0, "connections shared by all clients, per server; 0: a connection each")
	f.DurationVar(&o.Duration, "duration", 0, "end the run after this time (default: sold out, at most 1m; mutex: 2s)")
	f.Int64Var(&o.Ops, "ops", 0, "end the run after this many rounds of all clients together; 0: no limit")
	f.Uint64Var(&o.Seed, "seed", 0, "fixes every random choice (default: from the clock, and printed)")
	f.StringVar(&dest, "out", "", "directory for the histories (default: oversell-runs/ and the time)")
	f.BoolVar(&o.JSONL, "jsonl", false, "also write each history as JSON lines")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	f.BoolVar(&o.Target.AllowRemote, "allow-remote", false, "allow a target that is not this machine")
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
