package campaign

import (
	"fmt"
	"strings"

	"oversell/queueimpl"
	"oversell/scenarios"
	"oversell/server"
	"oversell/variant"
)

// A flag that is set and can have no effect is refused, because the user would believe that something was tested
// that was not. A flag whose value takes effect only in part causes a note. A flag shared by several runs, such as
// a default of a gate's plan, need not matter to each of them.

// Subject is a run and its target.
type Subject struct {
	Config scenarios.Config
	Spec   server.Spec
}

// Effective refuses the first flag that was set and matters to none of these runs. The notes are about flags whose
// value takes effect only in part, in every run.
func (o Options) Effective(runs []Subject) (notes []string, err error) {
	return partly(o.meant, runs), ineffective(o.meant, effects, runs)
}

// effect states where a flag has an effect.
type effect struct {
	flags []string
	// in reports whether the flags matter to a run on these servers.
	in func(c scenarios.Config, s server.Spec) bool
	// otherwise is a clause that says why they have no effect elsewhere.
	otherwise string
}

// uses returns a condition: the run uses the object.
func uses(o variant.Object) func(scenarios.Config, server.Spec) bool {
	return func(c scenarios.Config, _ server.Spec) bool { return c.Scenario.Uses(o) }
}

// effects lists the flags of a run. Flags not listed always have an effect, or give a permission or choose an
// output format.
var effects = []effect{
	{[]string{"sale", "stock", "resend"}, uses(variant.Sale), "there is no sale"},
	{[]string{"quantity", "refund"}, sellsToBuyers, "no buyer orders pieces"},
	{[]string{"ids"}, uses(variant.IDs), "no numbers are generated"},
	{[]string{"refuse-stale"}, func(c scenarios.Config, _ server.Spec) bool {
		return c.Scenario.Uses(variant.Sale) && c.Sale.Optimistic
	}, "no sale is optimistic, so no data is stale"},
	{[]string{"queue", "repeat", "batch"}, uses(variant.Queue), "there is no queue"},
	{[]string{"dispatch"}, uses(variant.Dispatch), "nothing is dispatched"},
	{[]string{"abandon"}, uses(variant.Dispatch), "nothing is dispatched"},
	{[]string{"delay"}, ofQueue(func(q queueimpl.Queue) bool { _, can := q.(queueimpl.Delayer); return can }), "no queue delays tasks"},
	{[]string{"withdraw"}, ofQueue(func(q queueimpl.Queue) bool { _, can := q.(queueimpl.Dequeuer); return can }), "no queue withdraws tasks"},
	{[]string{"peek"}, ofQueue(func(q queueimpl.Queue) bool { _, can := q.(queueimpl.Peeker); return can }), "no queue can be peeked into"},
	{[]string{"overwrite"}, enqueuesAgain, "no task is enqueued again, which needs --repeat"},
	{[]string{"visibility"}, func(c scenarios.Config, _ server.Spec) bool {
		return c.Scenario.Uses(variant.Queue) && c.Queue.AtLeastOnce
	}, "no queue has a visibility timeout"},
	{[]string{"attempts"}, ofQueue(func(q queueimpl.Queue) bool { _, can := q.(queueimpl.DeadLetters); return can }), "no queue has dead letters"},
	{[]string{"die"}, func(c scenarios.Config, _ server.Spec) bool {
		return c.Scenario.Uses(variant.Queue) || c.Scenario.Uses(variant.IDs) || c.Scenario.Uses(variant.Dispatch)
	}, "no client receives a task or a number"},
	{[]string{"lock"}, func(c scenarios.Config, _ server.Spec) bool { return c.Lock.New != nil }, "no lock is taken"},
	{[]string{"ttl"}, func(c scenarios.Config, _ server.Spec) bool { return c.Locks() || c.Scenario.Uses(variant.Dispatch) }, "no lock is taken, so nothing has a lease"},
	{[]string{"wait"}, func(c scenarios.Config, _ server.Spec) bool { return c.Locks() }, "no lock is taken, so no client waits for one"},
	{[]string{"retry", "waiting"}, looksAgain, "nobody waits"},
	{[]string{"hold"}, func(c scenarios.Config, _ server.Spec) bool {
		return c.Scenario.Uses(variant.Sale) || c.Scenario.Uses(variant.Dispatch) || c.LockAlone()
	}, "there is no section to lengthen"},
	{[]string{"sql"}, func(c scenarios.Config, _ server.Spec) bool { return c.NeedsSQL() }, "nothing is kept in a database"},
	{[]string{"arrival"}, func(c scenarios.Config, _ server.Spec) bool { return c.OpenLoad() }, "the load is closed, without --rate or --stages, so nothing arrives"},
	{[]string{"image"}, func(_ scenarios.Config, s server.Spec) bool { return s.Target == string(server.Container) }, "no server is started in a container"},
}

// searchEffects lists the flags of a search that differ from those of a run.
var searchEffects = []effect{
	{[]string{"resends"}, sellsToBuyers, "no buyer orders pieces"},
	{[]string{"hold"}, func(c scenarios.Config, _ server.Spec) bool { return c.LockAlone() }, "only scenario mutex has sections with a length"},
	{[]string{"masters"}, func(c scenarios.Config, _ server.Spec) bool { return severalMasters(c) }, "everything is on one server"},
	{[]string{"ttl"}, func(c scenarios.Config, _ server.Spec) bool { return c.Locks() }, "no lock is taken, so nothing has a lease"},
}

// sellsToBuyers reports whether buyers order from the sale directly. Behind a queue each order is for one piece, is
// sent once and is never refunded.
func sellsToBuyers(c scenarios.Config, _ server.Spec) bool {
	return c.Scenario.Uses(variant.Sale) && !c.Scenario.Uses(variant.Queue)
}

func enqueuesAgain(c scenarios.Config, _ server.Spec) bool {
	return c.Scenario.Uses(variant.Queue) && (c.Repeat > 0 || len(c.Faults) > 0)
}

// looksAgain reports whether clients retry for a lock or for work.
func looksAgain(c scenarios.Config, _ server.Spec) bool {
	return c.Locks() && c.Wait > 0 || c.Scenario.Uses(variant.Queue) || c.Scenario.Uses(variant.Dispatch)
}

// ofQueue returns a condition: the run uses a queue that can do something.
func ofQueue(can func(queueimpl.Queue) bool) func(scenarios.Config, server.Spec) bool {
	return func(c scenarios.Config, _ server.Spec) bool {
		return c.Scenario.Uses(variant.Queue) && can(c.Queue.Sample())
	}
}

func severalMasters(c scenarios.Config) bool {
	for _, s := range c.Subjects() {
		if s.Needs.Masters > 1 {
			return true
		}
	}
	return false
}

// ineffective refuses the first flag that was set and matters to none of the runs.
func ineffective(set func(flag string) bool, list []effect, runs []Subject) error {
	for _, e := range list {
		for _, flag := range e.flags {
			if set(flag) && !anyRun(runs, e.in) {
				return fmt.Errorf("leave out --%s: in %s %s", flag, scenariosOf(runs), e.otherwise)
			}
		}
	}
	return nil
}

func anyRun(runs []Subject, in func(scenarios.Config, server.Spec) bool) bool {
	for _, r := range runs {
		if in(r.Config, r.Spec) {
			return true
		}
	}
	return len(runs) == 0
}

// scenariosOf names the scenario and, for a single run, its variants.
func scenariosOf(runs []Subject) string {
	c := runs[0].Config
	if len(runs) > 1 {
		return "scenario " + c.Scenario.Name
	}
	parts := []string{"scenario " + c.Scenario.Name}
	for _, s := range c.Subjects() {
		parts = append(parts, string(s.Of)+" "+s.Name)
	}
	return strings.Join(parts, ", ")
}

// partly returns notes about flags whose value takes effect only in part, in every run.
func partly(set func(flag string) bool, runs []Subject) (notes []string) {
	note := func(flag string, in func(c scenarios.Config) bool, say func(c scenarios.Config) string) {
		if set(flag) && len(runs) > 0 && !anyRun(runs, func(c scenarios.Config, _ server.Spec) bool { return !in(c) }) {
			notes = append(notes, say(runs[0].Config))
		}
	}
	note("pool", func(c scenarios.Config) bool { return c.Pool > connected(c) }, func(c scenarios.Config) string {
		return fmt.Sprintf("--pool %d: %d clients use no more than %d connections at once", c.Pool, c.Clients, connected(c))
	})
	note("retry", func(c scenarios.Config) bool { return c.Locks() && c.Retry > c.Wait }, func(c scenarios.Config) string {
		return fmt.Sprintf("--retry %v is longer than --wait %v: clients look again when the wait is over", c.Retry, c.Wait)
	})
	note("quantity", func(c scenarios.Config) bool { return int64(c.Quantity) > c.Stock }, func(c scenarios.Config) string {
		return fmt.Sprintf("--quantity %d is more than --stock %d: larger orders are always refused", c.Quantity, c.Stock)
	})
	return notes
}

// connected returns how many clients of a run may use a connection at once.
func connected(c scenarios.Config) int {
	if c.Resend > 0 {
		return 2 * c.Clients
	}
	return c.Clients
}
