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

// bench provides what a measurement needs: runs and searches of this program, and a Redis to talk to directly. It
// records commands, so that the answer can name those that repeat it. It is for one goroutine.
type bench struct {
	spec  server.Spec    // target
	given *server.Target // servers that already run; nil if there are none
	dir   string         // for histories
	quick bool

	prefix   string // marks the keys of this measurement
	opened   *server.Target
	closers  []func() error
	plans    int      // made so far
	commands []string // that repeat the measurement
	versions []string // of the measured servers
}

func newBench(spec server.Spec, given *server.Target, dir string, quick bool) *bench {
	return &bench{spec: spec, given: given, dir: dir, quick: quick, prefix: mark.New()}
}

// times returns the number of repetitions: fewer if the measurement must be quick.
func (b *bench) times(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

// ran is a finished run with the path of its history.
type ran struct {
	reports.Run
	path string
}

// broke returns how often a property was broken.
func (r ran) broke(of variant.Object, p variant.Property) int {
	for _, x := range r.Properties {
		if x.Of == of && x.Name == p && x.Measured == reports.Broken {
			return max(x.Count, 1)
		}
	}
	return 0
}

// held reports whether a property held in a run that ended normally.
func (r ran) held(of variant.Object, p variant.Property) bool {
	return !r.Interrupted && r.Cut == "" && slices.ContainsFunc(r.Properties, func(x reports.Property) bool {
		return x.Of == of && x.Name == p && x.Measured == reports.Holds
	})
}

// powerless explains why the run shows nothing; empty if it does.
func (r ran) powerless() string {
	for _, f := range r.Faults {
		if f.Fired == 0 || f.Failed != "" {
			return fmt.Sprintf("the fault %q fired %d times; %s", f.Name, f.Fired, f.Failed)
		}
	}
	return ""
}

// watcher records the paths of histories.
type watcher struct{ paths []string }

func (*watcher) Target(*server.Target)      {}
func (*watcher) Database(*database.DB)      {}
func (*watcher) Done(int, int, reports.Run) {}
func (w *watcher) Start(_, _ int, _ scenarios.Config, live *scenarios.Live) {
	w.paths = append(w.paths, live.History)
}

// again makes a run with these flags of "oversell run" several times, each with another seed.
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

// grants counts the grants of the lock in a run's history by how they were obtained.
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

// grantsMeanwhile counts the grants of the lock from d after the last fault began until the first of them ended.
func (r ran) grantsMeanwhile(d time.Duration) (n int, err error) {
	h, err := history.Read(r.path)
	if err != nil {
		return 0, err
	}
	from, to := time.Duration(0), history.Forever
	for _, op := range h.Ops {
		if op.Kind == history.Fault {
			from = max(from, op.Call+d)
			if op.Return > op.Call+d { // a fault that lasted
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

// replays is how often a counterexample is replayed against a real server.
const replays = 3

// replayed replays a search's counterexample against servers of its own, and counts how often the promise was
// broken. On servers that already run, it does nothing.
func (b *bench) replayed(ctx context.Context, e reports.Exploration) (confirmed, times int, err error) {
	if e.Counterexample == nil || b.spec.IsAddress() {
		return 0, 0, nil
	}
	r, err := campaign.Replay(ctx, e, b.spec, replays)
	return r.Confirmed, r.Times, err
}

// done records a command line that repeats the measurement, once. A search needs no server.
func (b *bench) done(command string) {
	if b.spec.Target != string(server.Process) && !strings.HasPrefix(command, "oversell explore") {
		command += " --target " + b.spec.String()
	}
	if !slices.Contains(b.commands, command) {
		b.commands = append(b.commands, command)
	}
}

// measured records the version of a measured server.
func (b *bench) measured(version string) {
	for v := range strings.SplitSeq(version, ",") {
		if v = strings.TrimSpace(v); !slices.Contains(b.versions, v) {
			b.versions = append(b.versions, v)
		}
	}
}

// server returns a Redis for this measurement alone or, if an address was given, the one there.
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

// client opens a connection to the server.
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

// clients opens n connections to the server.
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

// env returns the environment of a lock or a queue that is driven directly: its own connection, the real clock,
// and short waits.
func (b *bench) env(ctx context.Context, hooks ...redis.Hook) (variant.Env, error) {
	c, err := b.client(ctx, hooks...)
	return variant.Env{
		Redis: []redis.UniversalClient{c}, Clock: clock.Real{}, Token: rand.Text,
		Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
			return clock.Real{}.Sleep(ctx, min(atMost, shortWait))
		},
	}, err
}

// shortWait is how long a client waits before it tries a busy lock again.
const shortWait = 5 * time.Millisecond

// locker returns a client of the named lock.
func (b *bench) locker(ctx context.Context, name string, hooks ...redis.Hook) (lockimpl.Locker, error) {
	v, ok := lockimpl.Find(name)
	if !ok {
		return nil, fmt.Errorf("no lock %q", name)
	}
	env, err := b.env(ctx, hooks...)
	if err != nil {
		return nil, err
	}
	return v.New(env), nil
}

// key returns a key name within this measurement.
func (b *bench) key(name string) string { return b.prefix + name }

// close closes what was opened, in reverse order.
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
