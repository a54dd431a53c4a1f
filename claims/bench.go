package claims

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/clock"
	"oversell/database"
	"oversell/history"
	"oversell/internal/mark"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/variant"
)

// bench is what a measurement works with: runs and searches of this program, and a
// Redis to talk to directly. It remembers what was done, so that the answer can say
// how to do it again. One goroutine uses it.
type bench struct {
	spec  server.Spec    // where
	given *server.Target // what runs there already; nil if nothing does
	dir   string         // for histories
	quick bool

	prefix   string // marks the keys of this measurement
	opened   *server.Target
	closers  []func() error
	plans    int      // made so far
	commands []string // that show the same
	versions []string // of the servers that were measured
}

func newBench(spec server.Spec, given *server.Target, dir string, quick bool) *bench {
	return &bench{spec: spec, given: given, dir: dir, quick: quick, prefix: mark.New()}
}

// times is how often something is done: less often when it has to be quick.
func (b *bench) times(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// ran is a run that was made, with the path of its history.
type ran struct {
	reports.Run
	path string
}

// broke is how often a property was seen broken.
func (r ran) broke(of variant.Object, p variant.Property) int {
	for _, x := range r.Properties {
		if x.Of == of && x.Name == p && x.Measured == reports.Broken {
			return max(x.Count, 1)
		}
	}
	return 0
}

// held reports whether a property is known to have held, in a run that came to its end.
func (r ran) held(of variant.Object, p variant.Property) bool {
	return !r.Interrupted && r.Cut == "" && slices.ContainsFunc(r.Properties, func(x reports.Property) bool {
		return x.Of == of && x.Name == p && x.Measured == reports.Holds
	})
}

// powerless says why the run shows nothing; empty if it does.
func (r ran) powerless() string {
	for _, f := range r.Faults {
		if f.Fired == 0 || f.Failed != "" {
			return fmt.Sprintf("the fault %q fired %d times; %s", f.Name, f.Fired, f.Failed)
		}
	}
	return ""
}

// watcher notes where histories go.
type watcher struct{ paths []string }

func (*watcher) Target(*server.Target)      {}
func (*watcher) Database(*database.DB)      {}
func (*watcher) Done(int, int, reports.Run) {}
func (w *watcher) Start(_, _ int, _ scenarios.Config, live *scenarios.Live) {
	w.paths = append(w.paths, live.History)
}

// again makes a run with these flags of "oversell run" so often, each with another seed.
func (b *bench) again(ctx context.Context, times int, args ...string) ([]ran, error) {
	cells := make([][]string, times)
	for i := range cells {
		cells[i] = args
	}
	return b.runs(ctx, cells...)
}

// runs makes runs, one after the other; those with the same flags get different seeds.
func (b *bench) runs(ctx context.Context, cells ...[]string) ([]ran, error) {
	var plan campaign.Plan
	seeds := map[string]int{}
	for i, args := range cells {
		command := commandLine("run", args)
		seeds[command]++
		o, err := campaign.Parse(append(slices.Clone(args), "--seed", fmt.Sprint(seeds[command])))
		if err != nil {
			return nil, err
		}
		if seeds[command] == 1 {
			b.done(command + " --seed 1")
		}
		o.Target.Target, o.Target.AllowRemote = b.spec.Target, b.spec.AllowRemote
		p, err := campaign.NewPlan(ctx, *o)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			plan = p
		} else {
			plan.Runs = append(plan.Runs, p.Runs...)
		}
	}
	b.plans++
	plan.Dir = filepath.Join(b.dir, fmt.Sprintf("runs-%d", b.plans))
	var w watcher
	d, err := campaign.Run(ctx, plan, &w)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	var rs []ran
	for i, r := range d.Runs {
		b.measured(r.ServerVersion)
		rs = append(rs, ran{r, w.paths[i]})
	}
	return rs, nil
}

// grants counts the grants of the lock in a run's history by how they came about.
func (r ran) grants() (map[string]int, error) {
	h, err := history.Read(r.path)
	if err != nil {
		return nil, err
	}
	by := map[string]int{}
	for _, op := range h.Ops {
		if op.Kind == history.Acquire && op.Outcome == history.OK {
			by[op.Result.String()]++
		}
	}
	return by, nil
}

// grantsMeanwhile counts the grants of the lock later than d after the last fault began,
// and before the first of them ended.
func (r ran) grantsMeanwhile(d time.Duration) (n int, err error) {
	h, err := history.Read(r.path)
	if err != nil {
		return 0, err
	}
	from, to := time.Duration(0), history.Forever
	for _, op := range h.Ops {
		if op.Kind == history.Fault {
			from = max(from, op.Call+d)
			if op.Return > op.Call+d { // it lasted
				to = min(to, op.Return)
			}
		}
	}
	for _, op := range h.Ops {
		if op.Kind == history.Acquire && op.Outcome == history.OK && op.Call > from && op.Return < to {
			n++
		}
	}
	return n, nil
}

// search makes a search with these flags of "oversell explore".
func (b *bench) search(ctx context.Context, args ...string) (found reports.Exploration, err error) {
	var o campaign.SearchOptions
	f := pflag.NewFlagSet("explore", pflag.ContinueOnError)
	o.BindSearch(f)
	if err := f.Parse(args); err != nil {
		return found, err
	}
	cs, _, err := campaign.Searches(o)
	if err != nil {
		return found, err
	}
	b.done(commandLine("explore", args))
	err = campaign.Explore(ctx, cs, func(e reports.Exploration) { found = e })
	if ctx.Err() != nil {
		return found, context.Cause(ctx)
	}
	return found, err
}

// replays is how often a counterexample is driven against a real server.
const replays = 3

// replayed drives a search's counterexample against servers of its own, and counts how
// often the promise was broken there, too. Where servers run already, it does nothing.
func (b *bench) replayed(ctx context.Context, e reports.Exploration) (confirmed, times int, err error) {
	if e.Counterexample == nil || b.spec.IsAddress() {
		return 0, 0, nil
	}
	r, err := campaign.Replay(ctx, e, b.spec, replays)
	return r.Confirmed, r.Times, err
}

// done notes a command line that shows the same, once. A search needs no server.
func (b *bench) done(command string) {
	if b.spec.Target != string(server.Process) && !strings.HasPrefix(command, "oversell explore") {
		command += " --target " + b.spec.String()
	}
	if !slices.Contains(b.commands, command) {
		b.commands = append(b.commands, command)
	}
}

// measured notes the version of a server that was measured.
func (b *bench) measured(version string) {
	for v := range strings.SplitSeq(version, ",") {
		if v = strings.TrimSpace(v); !slices.Contains(b.versions, v) {
			b.versions = append(b.versions, v)
		}
	}
}

// server is a Redis for this measurement alone or, where an address was given, that one.
func (b *bench) server(ctx context.Context) (*server.Target, error) {
	if b.opened != nil {
		return b.opened, nil
	}
	t := b.given
	if t == nil {
		var err error
		if t, err = server.Open(ctx, b.spec); err != nil {
			return nil, err
		}
		b.closers = append(b.closers, t.Close)
	} else {
		if err := t.Claim(b.prefix); err != nil {
			return nil, err
		}
		b.closers = append(b.closers, func() error {
			_, err := t.Sweep(context.WithoutCancel(ctx), b.prefix)
			return err
		})
	}
	b.measured(t.ServerVersion)
	b.opened = t
	return t, nil
}

// client is a connection of its own to the server.
func (b *bench) client(ctx context.Context, hooks ...redis.Hook) (*redis.Client, error) {
	t, err := b.server(ctx)
	if err != nil {
		return nil, err
	}
	c := redis.NewClient(t.Options(0, server.ConnOptions{}))
	b.closers = append(b.closers, c.Close)
	for _, h := range hooks {
		c.AddHook(h)
	}
	return c, c.Ping(ctx).Err()
}

// clients are n connections of their own.
func (b *bench) clients(ctx context.Context, n int) ([]*redis.Client, error) {
	cs := make([]*redis.Client, n)
	for i := range cs {
		var err error
		if cs[i], err = b.client(ctx); err != nil {
			return nil, err
		}
	}
	return cs, nil
}

// world is what a lock or a queue may touch when it is driven directly: a connection
// of its own, the real clock, and short waits.
func (b *bench) world(ctx context.Context, hooks ...redis.Hook) (variant.Env, error) {
	c, err := b.client(ctx, hooks...)
	return variant.Env{
		Redis: []redis.UniversalClient{c}, Clock: clock.Real{}, Token: rand.Text,
		Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
			return clock.Real{}.Sleep(ctx, min(atMost, shortWait))
		},
	}, err
}

// shortWait is how long a client waits for a busy lock before it tries again.
const shortWait = 5 * time.Millisecond

// locker is a client of a lock, by the lock's name.
func (b *bench) locker(ctx context.Context, name string, hooks ...redis.Hook) (lockimpl.Locker, error) {
	v, ok := lockimpl.Find(name)
	if !ok {
		return nil, fmt.Errorf("no lock %q", name)
	}
	env, err := b.world(ctx, hooks...)
	if err != nil {
		return nil, err
	}
	return v.New(env), nil
}

// key is a name within this measurement.
func (b *bench) key(name string) string { return b.prefix + name }

// close ends what was opened, the last thing first.
func (b *bench) close() error {
	var errs []error
	for _, c := range slices.Backward(b.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// commandLine returns the command as a user would type it.
func commandLine(command string, args []string) string {
	words := []string{"oversell", command}
	for _, a := range args {
		if strings.ContainsAny(a, " *%") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
