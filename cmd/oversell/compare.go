package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"oversell/campaign"
	"oversell/compare"
	"oversell/database"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
)

func compareCommand(code *int) *cobra.Command {
	var (
		o      compare.Options
		live   showing
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare variants: which break, and which are fast",
		Long: `Compare variants: which break, and which are fast.

Contenders are combinations of variants; configurations are targets, faults, and
values of a flag that has several, such as --clients 10,100,1000. In every round
the contenders take turns in random order, so that noise affects all alike. Without
faults each runs twice: a sale to its last piece, which tests the promises, then a
measured second (--measure). In every configuration a control, known to break, must
be caught; otherwise the absence of violations there is inconclusive.
A ratio divides a contender's throughput by the reference's in the same round; the
reference is the fastest contender without a violation. Contenders whose intervals
overlap have the same rank, marked with =.

With no flags: a flash sale under every shipped lock that is not a control, and without
a lock where the sale needs none, in some minutes; with --quick under a few locks, in
less than one.

The exit code is 0 when every outcome is as declared, 1 when a promise was broken
that no flaw explains, 2 for wrong usage, 3 when something was not decided, and 5 for
an environment error. A declared flaw that did not show is "declared, not seen".`,
		Example: `  oversell compare --quick
  oversell compare --lock lua-release,redlock,fenced --clients 10,100,1000
  oversell compare --lock none --sale lua,watch,reserve --quantity 1,5
  oversell compare --lock lua-release,fenced,watchdog --ttl 100ms --fault 'freeze holder 150ms 5%' --fault 'slow 150ms 5%'
  oversell compare --lock redlock --topology masters:5 --fault 'kill node 4 at 300ms for good; kill node 5 at 300ms for good'
  oversell compare --scenario queue --quick --target process,embedded`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				o.Seed = uint64(time.Now().UnixNano() % 1e9)
			}
			if o.Dir == "" {
				o.Dir = campaign.DefaultDir(time.Now())
			}
			plan, err := compare.New(cmd.Context(), &o)
			if err != nil {
				return err
			}
			progress, err := live.open(cmd, o.Target.AllowRemote)
			if err != nil {
				return err
			}
			defer progress.Close()
			for _, note := range plan.Notes {
				tellf(cmd.ErrOrStderr(), "note: %s\n", note)
			}
			tellf(cmd.ErrOrStderr(), "%s\n", plan.Announcement())
			c, err := compare.Run(cmd.Context(), plan, newRounds(progress))
			progress.Close() // before anything else is written
			if len(c.Cells) == 0 {
				if cmd.Context().Err() != nil {
					*code = reports.ExitInconclusive
					tellf(cmd.ErrOrStderr(), "interrupted before anything was judged\n")
				}
				return whileRunning(err)
			}
			*code = c.ExitCode()
			if err := showComparison(cmd, c, asJSON); err != nil {
				return err
			}
			tellf(cmd.ErrOrStderr(), "\nseed %d; the page and all histories are in %s\nagain with: %s\n", o.Seed, quoted(o.Dir), c.Command)
			return whileRunning(err)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.Bind(f)
	live.bind(f)
	f.StringVar(&o.Dir, "out", "", "directory for the result and the histories (default: oversell-runs/ and the time)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document on stdout")
	return cmd
}

// showComparison prints a comparison as JSON or as text.
func showComparison(cmd *cobra.Command, c reports.Comparison, asJSON bool) error {
	if asJSON {
		return printing(reports.WriteJSON(cmd.OutOrStdout(), c))
	}
	t := terminal(cmd)
	return printing(t.Comparison(c))
}

// rounds reports the progress of a comparison: one line per round, and on a terminal also the current run.
type rounds struct {
	*progress
	told   map[string]bool
	rounds int // completed rounds
}

func newRounds(p *progress) *rounds {
	p.brief = true
	p.begin(&course{label: "round 1"})
	return &rounds{progress: p, told: map[string]bool{}}
}

// Target reports each kind of server once: a comparison starts many.
func (r *rounds) Target(t *server.Target) {
	what := fmt.Sprint(t.Kind, t.Topology)
	if !r.told[what] {
		r.progress.Target(t)
	}
	r.told[what] = true
}

// Database reports the database once.
func (r *rounds) Database(db *database.DB) {
	if !r.told[db.Why] {
		r.progress.Database(db)
	}
	r.told[db.Why] = true
}

// Start reports the current run of the round.
func (r *rounds) Start(i, n int, c scenarios.Config, live *scenarios.Live) {
	r.did(0, fmt.Sprintf("round %d, run %d of %d", r.rounds+1, i+1, n))
	r.progress.Start(i, n, c, live)
}

// Round reports the standing after a round.
func (r *rounds) Round(c reports.Comparison) {
	r.rounds = c.Rounds
	count := map[string]int{}
	for _, x := range c.Cells {
		count[x.Outcome]++
	}
	r.say(fmt.Sprintf("round %d, %.0f s: %d without a violation so far, %d broke, %d inconclusive", c.Rounds, c.ElapsedMS/1e3, count[reports.NoViolation]+count[reports.NotSeen], count[reports.Broke], count[reports.Undecided]))
}
