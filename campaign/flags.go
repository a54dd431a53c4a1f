package campaign

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/pflag"

	"oversell/database"
	"oversell/internal/limits"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
)

// Bind defines the flags of a run with their defaults, which fill o when f is parsed.
func (o *Options) Bind(f *pflag.FlagSet) {
	o.BindClosed(f)
	o.bindArrivals(f)
}

// BindClosed is like [Options.Bind] without the flags of an open load.
func (o *Options) BindClosed(f *pflag.FlagSet) {
	o.Set = f.Changed
	o.Waiting = load.Poll
	f.StringVar(&o.Scenario, "scenario", "seckill", "what the clients do: "+scenarioNames("seckill", scenarios.All)+" (default with --system: a scenario that uses the object of the system)")
	bindLocks(f, &o.Locks)
	f.StringVar(&o.Sale, "sale", "", "the sale (default: plain; fenced under locks that grant fencing tokens)")
	f.StringVar(&o.Queue, "queue", "", "the task queue (default: every shipped one)")
	f.StringVar(&o.System, "system", "", "a file that describes a lock, sale, queue or id generator outside of oversell, in place of a variant (see docs/systems.md)")
	f.DurationVar(&o.Delay, "delay", 0, "maximum delay of a task; delays are random (default, where the queue can delay: 50ms; given as 0: none)")
	f.Float64Var(&o.Repeat, "repeat", 0, "probability that a producer enqueues its last id again (default, where the queue promises one entry per id: 0.1; given as 0: none)")
	f.BoolVar(&o.QueueOptions.Overwrite, "overwrite", false, "an id that is enqueued again replaces its entry, instead of being ignored")
	f.IntVar(&o.Batch, "batch", 1, "maximum number of task ids per enqueue, and of tasks per pop")
	f.Float64Var(&o.Withdraw, "withdraw", 0, "probability that a producer withdraws (dequeues) the task that it enqueued")
	f.Float64Var(&o.Peek, "peek", 0, "probability that a consumer peeks before it takes a task")
	f.Float64Var(&o.Die, "die", 0, "probability that a client dies with its task or number; in dispatch, that a user returns too late")
	f.IntVar(&o.Abandon, "abandon", 0, "tasks of a dispatch that their user never submits, so that their holds end by the limit (default: 5, or none with --die; given as 0: none)")
	f.DurationVar(&o.QueueOptions.Visibility, "visibility", 0, "how long a consumer has for a task (default, where there is such a limit: 1s)")
	f.IntVar(&o.QueueOptions.MaxAttempts, "attempts", 0, "deliveries after which a task becomes a dead letter; 0: never")
	f.StringVar(&o.Dispatch, "dispatch", "", "the dispatch (default: dispatch-locked; dispatch-fenced under locks that grant fencing tokens)")
	f.StringVar(&o.SQL.DSN, "sql", "", "database, for what is kept in one: sqlite, postgres://… or mysql://… (default: sqlite, a temporary file; password also in $"+database.PasswordVariable+")")
	f.StringVar(&o.IDs, "ids", "", "the id generator, in ids and floors (default: get-set)")
	f.StringVar(&o.Target.Target, "target", "auto", "auto, embedded, process, container, or redis://[user:password@]host:port[/db] (password also in $"+server.PasswordVariable+")")
	f.StringVar(&o.Target.Topology, "topology", "", "single, replica, sentinel, cluster or masters:N (default: what the lock needs)")
	f.BoolVar(&o.Target.Persist, "aof", false, "servers started for the run keep an append-only file, and lose no data when they are killed")
	f.StringVar(&o.Target.Image, "image", "", "image of the target container (default: $REDIS_IMAGE, or redis:7)")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Second, "how long a client waits for an answer")
	f.StringVar(&o.Engine, "engine", load.Goroutines, "engine of the clients: goroutine (one each, on connections of their own or a pool) or mux (coroutines on a few pipelines, for scale; see docs/engine.md)")
	f.DurationVar(&o.RTT, "rtt", 0, fmt.Sprintf("mean of the virtual round-trip time that --engine mux adds to every reply (default: %v; given as 0: none)", scenarios.DefaultRTT))
	f.IntVar(&o.Clients, "clients", 64, "concurrent clients (on the emulation: 16)")
	f.Int64Var(&o.Stock, "stock", 500, "pieces on sale (on the emulation: 200)")
	f.IntVar(&o.Quantity, "quantity", 1, "largest order: each is for 1 to N pieces")
	f.Float64Var(&o.Resend, "resend", 0, "probability that a buyer sends an order twice concurrently, or a worker behind a queue twice in a row (default, where the sale promises once-per-order and is not a control: 0.1; given as 0: none)")
	f.Float64Var(&o.Refund, "refund", 0, "probability that a buyer refunds a purchase")
	f.BoolVar(&o.RefuseStale, "refuse-stale", false, "refuse an order whose data is stale instead of retrying (optimistic sales)")
	f.DurationVar(&o.TTL, "ttl", 0, "lease of the lock, and in dispatch the limit of a hold (default: 10s; dispatch: 2s)")
	f.DurationVar(&o.Wait, "wait", 10*time.Second, "how long an acquisition keeps trying")
	f.DurationVar(&o.Retry, "retry", 0, "maximum pause between two attempts (default: by strategy and number of clients)")
	f.DurationVar(&o.Hold, "hold", 0, "how long a section lasts beyond its own commands; in a sale, after its first command (default: 0; mutex and dispatch: 1ms)")
	f.Var(nameFlag[load.Waiting]{&o.Waiting, load.ParseWaiting}, "waiting", "how clients wait for a busy lock: "+load.WaitingNames()+"; fixed is the 100 ms of the blog posts, without jitter")
	f.IntVar(&o.Pool, "pool", 0, "connections shared by all clients, per server; 0: a connection each")
	f.DurationVar(&o.Duration, "duration", 0, "duration of the run (default: until sold out, or 5 times the stock and 100,000 pieces are sold, at most 1m; mutex: 2s; with faults both are longer)")
	f.Int64Var(&o.Ops, "ops", 0, "maximum number of steps of all clients together (default: no limit; without --duration in queue 1000, in ids and floors 2000, in seckill-queued twice the stock; in dispatch the number of tasks)")
	f.StringArrayVar(&o.Faults, "fault", nil, "fault to inject, as a sentence; may be given several times (see: oversell list faults)")
	f.Uint64Var(&o.Seed, "seed", 0, "fixes every random choice (default: from the clock, and printed)")
	f.BoolVar(&o.JSONL, "jsonl", false, "also write each history as JSON lines")
	BindAddress(f, &o.Target)
	limits.Run.Bind(f)
}

// scenarioNames lists scenarios in a help text, the default first.
func scenarioNames(byDefault string, all []scenarios.Scenario) string {
	names := []string{byDefault}
	for _, s := range all {
		if s.Name != byDefault {
			names = append(names, s.Name)
		}
	}
	return english.WordSeries(names, "or")
}

// bindLocks defines the flag that names locks.
func bindLocks(f *pflag.FlagSet, names *[]string) {
	f.StringSliceVar(names, "lock", nil, "the lock, or several: a,b (default: every shipped one)")
	flag := f.Lookup("lock")
	flag.Value = &lockNames{Value: flag.Value, SliceValue: flag.Value.(pflag.SliceValue), names: names}
	flag.DefValue = "" // the usage text explains it
}

// lockNames is the value of a flag that takes lock names. Names of earlier versions are replaced by current ones.
type lockNames struct {
	pflag.Value
	pflag.SliceValue
	names *[]string
	notes []string
}

// Set implements pflag.Value.
func (l *lockNames) Set(text string) error {
	if err := l.Value.Set(text); err != nil {
		return err
	}
	for i, name := range *l.names {
		if note := Renamed(name); note != "" {
			(*l.names)[i] = lockimpl.CurrentName(name)
			l.notes = append(l.notes, note)
		}
	}
	return nil
}

// Renamed returns a sentence with the current name of a lock if name is one of an earlier version; otherwise "".
func Renamed(name string) string {
	if today := lockimpl.CurrentName(name); today != name {
		return "lock " + name + " is called " + today + " now"
	}
	return ""
}

// RenamedIn reports which locks had other names when the histories of runs were written.
func RenamedIn(d reports.Document) (notes []string) {
	for _, v := range lockimpl.Variants {
		for _, was := range v.Was {
			note := Renamed(was)
			if slices.ContainsFunc(d.Runs, func(r reports.Run) bool { return slices.Contains(r.Notes, note) }) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// Notes returns remarks on how flags were given.
func Notes(f *pflag.FlagSet) (notes []string) {
	f.Visit(func(flag *pflag.Flag) {
		if l, ok := flag.Value.(*lockNames); ok {
			notes = append(notes, l.notes...)
		}
	})
	return notes
}

// BindAddress defines the flags for servers that already run.
func BindAddress(f *pflag.FlagSet, s *server.Spec) {
	f.BoolVar(&s.Mend, "mend", false, "first repair the target and the database after a run that was killed, and remove its keys and tables")
	f.BoolVar(&s.AllowRemote, "allow-remote", false, "allow a target that is not this machine")
}

// Parse parses the flags of a run.
func Parse(args []string) (*Options, error) {
	o := &Options{}
	f := pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.Bind(f)
	return o, limits.Explain(f.Parse(args))
}

// nameFlag is a flag's value that is the name of something.
type nameFlag[N ~string] struct {
	to    *N
	parse func(name string) (N, error)
}

// String implements pflag.Value.
func (n nameFlag[N]) String() string {
	if n.to == nil {
		return ""
	}
	return string(*n.to)
}

// Set implements pflag.Value.
func (n nameFlag[N]) Set(name string) (err error) {
	*n.to, err = n.parse(name)
	return err
}

// Type implements pflag.Value.
func (nameFlag[N]) Type() string { return "string" }
