package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"oversell/explore"
	"oversell/explore/rules"
	"oversell/history"
	"oversell/internal/exactjson"
	"oversell/internal/limits"
	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/variant"
)

// SearchOptions are the settings of a search, by name.
type SearchOptions struct {
	Options
	Bounds reports.Bounds
	// Time and Memory (in MB) bound a search.
	Time   time.Duration
	Memory int
	// Properties are the promises to check; empty: all that the variants make.
	Properties []string
	// Masters is the number of independent servers; 0: as many as the lock needs.
	Masters int
	// Plain switches reductions off.
	Plain bool
}

// sweepTime is the default bound on each of several searches, so that a sweep takes a minute or two.
const sweepTime = 20 * time.Second

// BindSearch defines the flags of a search with their defaults, which fill o when f is parsed.
func (o *SearchOptions) BindSearch(f *pflag.FlagSet) {
	o.Set = f.Changed
	b := &o.Bounds
	steppable := slices.DeleteFunc(slices.Clone(scenarios.All), func(s scenarios.Scenario) bool {
		return s.Uses(variant.Dispatch) // it keeps its tasks in a database
	})
	f.StringVar(&o.Scenario, "scenario", "", "what the clients do: "+scenarioNames("mutex", steppable)+" (default: by the named variants; mutex)")
	bindLocks(f, &o.Locks)
	f.StringVar(&o.Sale, "sale", "", "the sale (default: plain; fenced under locks that grant fencing tokens)")
	f.StringVar(&o.Queue, "queue", "", "the task queue (default: every shipped one)")
	f.StringVar(&o.IDs, "ids", "", "the id generator, in ids and floors (default: get-set)")
	f.StringVar(&o.System, "system", "", "a file that describes a lock or sale outside of oversell, a program that speaks JSON lines, in place of a variant (see docs/systems.md)")
	f.IntVar(&b.Clients, "clients", 2, "clients; with a queue the first one produces and the others consume (default there: 3)")
	f.IntVar(&b.Tries, "tries", 2, "acquisitions, or rounds, of each client")
	f.IntVar(&b.Crashes, "crashes", 1, "maximum number of clients that die")
	f.IntVar(&b.Lost, "lost", 1, "messages, requests or answers, that may be lost")
	f.IntVar(&b.Late, "late", 1, "requests that may arrive after their client gave up")
	f.IntVar(&b.Advances, "advances", 2, "how often time may pass while a client could go on")
	f.IntVar(&b.Resends, "resends", 0, "how often a buyer without an answer sends the same order again")
	f.IntVar(&b.Stalls, "stalls", 1, "how often a client may be held up between reading its clock and its next reading or command")
	f.IntVar(&b.Depth, "depth", 0, "longest schedule, in steps; 0: no limit")
	f.DurationVar(&o.Time, "time", 30*time.Second, "time limit of a search; 0: no limit (default for several searches: 20s each)")
	f.IntVar(&o.Memory, "memory", 8192, "memory limit, in MB; 0: no limit")
	f.StringSliceVar(&o.Properties, "property", nil, "the properties to check, promised or not: a,b (default: all that the variants promise)")
	f.IntVar(&o.Masters, "masters", 0, "independent servers (default: as many as the lock needs)")
	f.Int64Var(&o.Stock, "stock", 1, "pieces on sale")
	f.IntVar(&o.Quantity, "quantity", 1, "pieces per order")
	f.DurationVar(&o.TTL, "ttl", time.Second, "lease of the lock")
	f.DurationVar(&o.Hold, "hold", 0, "length of a section of mutex, in which the lock is extended after every half lease (default: three quarters of the lease)")
	f.DurationVar(&o.QueueOptions.Visibility, "visibility", 0, "how long a consumer has for a task (default, where there is such a limit: 1s)")
	f.BoolVar(&o.Plain, "no-reductions", false, "switch off reductions: distinguish interchangeable clients, and rounds that begin alike")
	limits.Explore.Bind(f)
}

// Searches resolves names into searches, and refuses those that cannot be made. The sentences say what a sweep
// leaves out.
func Searches(o SearchOptions) (cs []explore.Config, skipped []string, err error) {
	if err := o.readSystem(); err != nil {
		return nil, nil, err
	}
	base := scenarios.Config{Stock: o.Stock, Quantity: o.Quantity, TTL: o.TTL, Hold: o.Hold, QueueOptions: o.QueueOptions}
	name := cmp.Or(o.Scenario, o.suggested())
	if base.Scenario, err = Find("scenario", name, scenarios.All, func(s scenarios.Scenario) string { return s.Name }); err != nil {
		return nil, nil, err
	}
	if err := CheckLockNames(o.Locks, o.set("lock")); err != nil {
		return nil, nil, err
	}
	if err := o.sensible(); err != nil {
		return nil, nil, err
	}
	if o.Set != nil && !o.set("hold") && base.Scenario.Extends {
		base.Hold = base.TTL * 3 / 4 // so that the lock is extended
	}
	if base.Scenario.Uses(variant.Queue) && !o.set("clients") {
		o.Bounds.Clients = 3 // two consumers are the fewest that compete
	}
	var refused error
	runs, err := o.Combinations(base)
	if err != nil {
		return nil, nil, err
	}
	if o.Set != nil && !o.set("time") && len(runs) > 1 {
		o.Time = sweepTime
	}
	o.Bounds.TimeMS, o.Bounds.MemoryMB = reports.InMS(o.Time), o.Memory
	if err := o.ineffective(runs); err != nil {
		return nil, nil, err
	}
	for _, run := range runs {
		c := explore.Config{Run: run, Bounds: o.Bounds, Masters: o.Masters, Plain: o.Plain, System: o.Outside}
		if c.Look, err = o.looked(run); err != nil {
			return nil, nil, err
		}
		err := c.Complete()
		switch {
		case err == nil:
			cs = append(cs, c)
		case len(o.Locks) == 0 && o.Queue == "":
			skipped = append(skipped, fmt.Sprintf("%s, which %v", searched(c), err))
			refused = cmp.Or(refused, err)
		default: // what was named must be able to run
			return nil, nil, err
		}
	}
	if len(cs) == 0 {
		return nil, nil, refused
	}
	return cs, skipped, nil
}

// ineffective refuses a flag that matters to none of the searches.
func (o SearchOptions) ineffective(runs []scenarios.Config) error {
	var all []Subject
	for _, c := range runs {
		all = append(all, Subject{Config: c})
	}
	if err := ineffective(o.meant, searchEffects, all); err != nil {
		return err
	}
	return ineffective(func(flag string) bool {
		return o.meant(flag) && !slices.ContainsFunc(searchEffects, func(e effect) bool { return slices.Contains(e.flags, flag) })
	}, effects, all)
}

func (o SearchOptions) set(flag string) bool { return o.Set != nil && o.Set(flag) }

// sensible refuses values that would silently be replaced by a default.
func (o SearchOptions) sensible() error {
	switch {
	case int64(o.Quantity) > max(o.Stock, 1):
		return fmt.Errorf("--quantity %d is more than --stock %d: nothing could be sold", o.Quantity, o.Stock)
	case o.set("visibility") && o.QueueOptions.Visibility < time.Millisecond:
		return errors.New("--visibility must be 1ms or more")
	}
	return nil
}

// suggested returns the scenario for the named variants.
func (o SearchOptions) suggested() string {
	switch {
	case o.Queue != "" && o.Sale != "":
		return "seckill-queued"
	case o.Queue != "":
		return "queue"
	case o.Sale != "":
		return "seckill"
	case o.IDs != "":
		return "floors"
	}
	return "mutex"
}

// looked returns the named promises, for each object of the run that can make them.
func (o SearchOptions) looked(run scenarios.Config) (ps []history.Promise, err error) {
	for _, name := range o.Properties {
		known, found := false, false
		for _, s := range run.Subjects() {
			p := history.Promise{Of: s.Of, Property: variant.Property(name)}
			if !slices.ContainsFunc(variant.Properties, func(i variant.PropertyInfo) bool { return i.Of == p.Of && i.Name == p.Property }) {
				continue
			}
			known = true
			if rules.CanJudge(p.Of, p.Property) {
				found = true
				ps = append(ps, p)
			}
		}
		switch {
		case !known:
			return nil, fmt.Errorf("nothing in scenario %s has a property %q (see: oversell list properties); --sale, --queue and --ids select other objects", run.Scenario.Name, name)
		case !found:
			return nil, fmt.Errorf("a search cannot judge %s, which depends on whole histories: use oversell run", name)
		}
	}
	return ps, nil
}

// Explore makes the searches one after the other and reports each result. When ctx ends, it reports what has been
// found by then.
func Explore(ctx context.Context, cs []explore.Config, done func(reports.Exploration)) error {
	for _, c := range cs {
		r, err := explore.Run(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", searched(c), err)
		}
		if c.System != nil {
			doubt(&r, c.System.Doubt())
		}
		done(r)
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// doubt withdraws the proof that no two leases overlap if the search does not know when they end (why). The search
// assumes the shortest possible lease, so violations stand.
func doubt(r *reports.Exploration, why error) {
	if why == nil {
		return
	}
	for i, p := range r.Properties {
		if p.Of == variant.Lock && p.Name == variant.MutualExclusion && p.Result == reports.Holds {
			r.Properties[i].Result, r.Properties[i].Measured, r.Properties[i].Why = reports.Unknown, reports.Unknown, why.Error()
			r.Verdict, r.Why = reports.Inconclusive, why.Error()
		}
	}
}

// searched names a search by its variants.
func searched(c explore.Config) string {
	name := ""
	for _, s := range c.Run.Subjects() {
		if name != "" {
			name += " with "
		}
		name += fmt.Sprintf("%s %s", s.Of, s.Name)
	}
	return name
}

// Replayed is the result of replaying a schedule against real servers.
type Replayed struct {
	// On describes the servers.
	On string
	// Times is the number of replays; Confirmed is how many of them broke the same promise.
	Times, Confirmed int
	// Why describes the last violation, or what happened instead.
	Why string
}

// Replay replays the schedule of a counterexample, several times, on servers started for it.
func Replay(ctx context.Context, e reports.Exploration, spec server.Spec, times int) (r Replayed, err error) {
	c, err := explore.ConfigOf(e)
	if err != nil {
		return r, err
	}
	if spec.IsAddress() {
		return r, fmt.Errorf("%w: a schedule is replayed with its own key names, so only on servers started for it: process, container or embedded", server.ErrUsage)
	}
	if e.Masters > 1 {
		spec.Topology = fmt.Sprintf("masters:%d", e.Masters)
	}
	for range times {
		p, on, err := replayOnce(ctx, c, e.Counterexample, spec)
		if r.On = on; err != nil && !errors.Is(err, explore.ErrDiverged) {
			return r, err
		}
		r.Times++
		switch {
		case err != nil:
			r.Why = err.Error()
		case p == nil:
			r.Why = "the schedule was replayed without a violation"
		default:
			r.Confirmed++
			r.Why = p.Why
		}
	}
	return r, nil
}

// replayOnce starts its own servers: a replay needs empty ones.
func replayOnce(ctx context.Context, c explore.Config, cx *reports.Counterexample, spec server.Spec) (*reports.Property, string, error) {
	t, err := server.Open(ctx, spec)
	if err != nil {
		return nil, "", err
	}
	defer t.Close()
	var servers []*redis.Options
	for node := range t.Nodes() {
		servers = append(servers, t.Options(node, server.ConnOptions{}))
	}
	p, err := explore.Replay(ctx, c, cx, servers)
	return p, running(t), err
}

// running describes the servers of a replay.
func running(t *server.Target) string {
	switch t.Kind {
	case "process":
		return "redis-server " + t.ServerVersion
	case "container":
		return "redis-server " + t.ServerVersion + " in a container"
	}
	return "the embedded emulation"
}

// Trace reads an exploration written by explore --json or --out. If a lock was renamed since, it gets its current
// name, and renamed says so.
func Trace(path string) (e reports.Exploration, renamed string, err error) {
	if e, err = trace(path); err == nil {
		err = findSystem(&e, path)
	}
	renamed, e.Lock = Renamed(e.Lock), lockimpl.CurrentName(e.Lock)
	return e, renamed, err
}

// BesideTrace returns an exploration for a file at path: it also names the file of its system relative to that one.
func BesideTrace(e reports.Exploration, path string) reports.Exploration {
	if e.System == "" {
		return e
	}
	system, err1 := filepath.Abs(e.System)
	dir, err2 := filepath.Abs(filepath.Dir(path))
	if rel, err := filepath.Rel(dir, system); errors.Join(err1, err2, err) == nil {
		e.SystemFrom = filepath.ToSlash(rel)
	}
	return e
}

// findSystem finds the system of a trace that was read from path: from there, or from the working directory.
func findSystem(e *reports.Exploration, path string) error {
	if e.System == "" {
		return nil
	}
	if from := filepath.FromSlash(e.SystemFrom); from != "" {
		if beside := filepath.Join(filepath.Dir(path), from); Exists(beside) {
			e.System = beside
			return nil
		}
	}
	if !Exists(e.System) {
		return fmt.Errorf("%s: the file of its system, %s, is not there: run this in the directory of that search, or write the path of the file as \"system\"", path, e.System)
	}
	return nil
}

// ReplayCommand returns the command line that replays the schedule in a file written by explore on a real Redis.
func ReplayCommand(path string) string {
	return "oversell explore --replay " + phrase.ShellWord(path) + " --target process"
}

func trace(path string) (e reports.Exploration, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return e, err
	}
	var all reports.Explorations
	if err := json.Unmarshal(text, &all); err == nil && all.Schema == reports.ExplorationsSchema {
		for _, e := range all.Explorations {
			if e.Counterexample != nil {
				return e, nil
			}
		}
		return e, fmt.Errorf("%s: none of its searches found a counterexample", path)
	}
	err = json.Unmarshal(text, &e)
	switch {
	case err != nil:
		return e, fmt.Errorf("%s is not what oversell explore writes as JSON: %w", path, exactjson.InWords(text, err))
	case e.Schema != reports.ExplorationSchema:
		return e, fmt.Errorf("%s is not what oversell explore writes as JSON: its schema is %q, not %q", path, e.Schema, reports.ExplorationSchema)
	case e.Counterexample == nil:
		return e, fmt.Errorf("%s holds no counterexample: that search ended as %q", path, e.Verdict)
	}
	return e, nil
}
