package oracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/explore"
	"oversell/reports"
	"oversell/variant"
)

// form is a form in which a program uses a token.
type form struct {
	name string
	// f is nil for the token itself.
	f func(string) string
	// clear says that the form depends on the letters of the token: the forms of two tokens may be equal, or in either
	// order.
	clear bool
}

func (f form) of(token string) string {
	if f.f == nil {
		return token
	}
	return f.f(token)
}

var forms = []form{
	{"the token", nil, false}, {"the token", nil, false}, {"the token", nil, false},
	{"sha1", sha, false},
	{"sha1 of sha1", func(s string) string { return sha(sha(s)) }, false},
	{"upper case", strings.ToUpper, false},
	{"quoted", func(s string) string { return "<" + s + ">" }, false},
	{"the first two letters", func(s string) string { return s[:2] }, true},
	{"the last letter", func(s string) string { return s[len(s)-1:] }, true},
	{"the length", length, true},
	{"a bit of a hash", parity, true},
}

// option is one way to do a part of a design; for clear, see form.
type option struct {
	name  string
	do    func(*try) bool
	clear bool
}

// draft is a generated program.
type draft struct {
	text   string
	design design
	clear  bool
	limits limits
	bounds reports.Bounds
}

func (d draft) String() string { return d.text }

func compared(t *try, v string) bool { return t.text("get", t.key) == v }

// stringOptions returns the ways to take, release and extend a lock that is a string.
func stringOptions(f form) (takes, drops, extends []option) {
	value := func(t *try) string { return f.of(t.v) }
	takes = []option{
		{"SET NX PX", func(t *try) bool { return t.yes("set", t.key, value(t), "nx", "px", t.ms()) }, false},
		{"SET NX PX", func(t *try) bool { return t.yes("set", t.key, value(t), "nx", "px", t.ms()) }, false},
		{"SETNX, PEXPIRE", func(t *try) bool { return t.yes("setnx", t.key, value(t)) && renewBlindly(t) }, false},
		{"SETNX and PEXPIRE in a script", func(t *try) bool { return t.script(setWithExpiry, value(t), t.ms()) }, false},
		{"EXISTS, SET PX", func(t *try) bool { return !t.yes("exists", t.key) && t.yes("set", t.key, value(t), "px", t.ms()) }, false},
		{"WATCH, GET, MULTI, SET PX, EXEC", func(t *try) bool {
			return t.watched(func(tx *redis.Tx) [][]any {
				if on(t.ctx, tx, "get", t.key) != nil {
					return nil
				}
				return [][]any{{"set", t.key, value(t), "px", t.ms()}}
			})
		}, false},
		{"the greater takes over", func(t *try) bool { return t.script(orderTake, value(t), t.ms()) }, true},
		{"the greater takes over, in the client", func(t *try) bool {
			if v := t.text("get", t.key); v != "" && v >= value(t) {
				return false
			}
			return t.yes("set", t.key, value(t), "px", t.ms())
		}, true},
		{"SET NX PX, and GET", func(t *try) bool {
			t.do("set", t.key, value(t), "nx", "px", t.ms())
			return compared(t, value(t))
		}, false},
		{"SETNX, PEXPIRE in a goroutine", func(t *try) bool {
			if !t.yes("setnx", t.key, value(t)) {
				return false
			}
			joined := t.env.Go(func(ctx context.Context) {
				u := *t
				u.ctx = ctx
				_, _ = u.run(renewBlindly)
			})
			return joined(t.ctx) == nil
		}, false},
		{"SET NX PX, and a renewal", func(t *try) bool {
			if !t.yes("set", t.key, value(t), "nx", "px", t.ms()) {
				return false
			}
			ctx, cancel := context.WithCancel(t.ctx)
			joined := t.env.Go(func(context.Context) {
				u := *t
				u.ctx = ctx
				_, _ = u.run(func(u *try) bool {
					return u.env.Clock.Sleep(ctx, u.ttl/2) == nil && u.script(renewIfEqual, value(u), u.ms())
				})
			})
			t.stop = func() { cancel(); _ = joined(context.WithoutCancel(t.ctx)) }
			return true
		}, false},
	}
	drops = []option{
		{"compare and DEL in a script", func(t *try) bool { return t.script(dropIfEqual, value(t)) }, false},
		{"compare and DEL in a script", func(t *try) bool { return t.script(dropIfEqual, value(t)) }, false},
		{"DEL", del, false},
		{"GET, compare, DEL", func(t *try) bool { return compared(t, value(t)) && del(t) }, false},
		{"WATCH, compare, MULTI, DEL, EXEC", func(t *try) bool {
			return t.watched(func(tx *redis.Tx) [][]any {
				if textOf(on(t.ctx, tx, "get", t.key)) != value(t) {
					return nil
				}
				return [][]any{{"del", t.key}}
			})
		}, false},
		{"DEL before the end", func(t *try) bool { return t.now().Before(t.until) && del(t) }, false},
		{"compare and DEL before the end", func(t *try) bool { return t.now().Before(t.until) && t.script(dropIfEqual, value(t)) }, false},
		{"DEL if neither less nor greater", func(t *try) bool { return t.script(orderDrop, value(t)) }, false},
		{"DEL if not less", func(t *try) bool {
			v := t.text("get", t.key)
			return v >= value(t) && t.script(dropIfEqual, v)
		}, true},
		{"none", func(*try) bool { return true }, false},
	}
	extends = []option{
		{"compare and PEXPIRE in a script", func(t *try) bool { return t.script(renewIfEqual, value(t), t.ms()) }, false},
		{"PEXPIRE", renewBlindly, false},
		{"GET, compare, PEXPIRE", func(t *try) bool { return compared(t, value(t)) && renewBlindly(t) }, false},
		{"SET XX", func(t *try) bool { return t.yes("set", t.key, value(t), "xx", "px", t.ms()) }, false},
	}
	return takes, drops, extends
}

// hashOptions returns the ways to take, release and extend a lock that is a hash with the field owner.
func hashOptions(f form) (takes, drops, extends []option) {
	takes = []option{
		{"HSETNX, PEXPIRE", func(t *try) bool { return t.yes("hsetnx", t.key, "owner", f.of(t.v)) && renewBlindly(t) }, false},
		{"HEXISTS, HSET, PEXPIRE in a script", func(t *try) bool { return t.script(hashSet, f.of(t.v), t.ms()) }, false},
	}
	drops = []option{
		{"compare and DEL in a script", func(t *try) bool { return t.script(hashDrop, f.of(t.v)) }, false},
		{"HDEL", func(t *try) bool { return t.yes("hdel", t.key, "owner") }, false},
		{"HGET, compare, HDEL", func(t *try) bool { return t.text("hget", t.key, "owner") == f.of(t.v) && t.yes("hdel", t.key, "owner") }, false},
		{"HGETALL, compare, DEL", func(t *try) bool { return slices.Contains(t.texts("hgetall", t.key), f.of(t.v)) && del(t) }, false},
	}
	extends = []option{{"PEXPIRE", renewBlindly, false}, {"none", func(*try) bool { return false }, false}}
	return takes, drops, extends
}

// setOptions returns the ways to take, release and extend a lock that is a set of tokens.
func setOptions(f form) (takes, drops, extends []option) {
	among := func(chosen func(*try) bool) func(*try) bool {
		return func(t *try) bool {
			t.do("sadd", t.key, f.of(t.v))
			t.do("pexpire", t.key, t.ms())
			if chosen(t) {
				return true
			}
			t.do("srem", t.key, f.of(t.v))
			return false
		}
	}
	takes = []option{
		{"SADD, PEXPIRE, alone by SCARD", among(func(t *try) bool { return t.number("scard", t.key) == 1 }), false},
		{"SADD, PEXPIRE, alone by SMEMBERS", among(func(t *try) bool { return len(t.texts("smembers", t.key)) == 1 }), false},
		{"SADD, PEXPIRE, the lowest", among(func(t *try) bool {
			all := t.texts("smembers", t.key)
			return len(all) > 0 && slices.Min(all) == f.of(t.v)
		}), true},
		{"SCARD, SADD, PEXPIRE in a script", func(t *try) bool { return t.script(setAdd, f.of(t.v), t.ms()) }, false},
	}
	drops = []option{
		{"SREM", func(t *try) bool { return t.yes("srem", t.key, f.of(t.v)) }, false},
		{"SISMEMBER and DEL in a script", func(t *try) bool { return t.script(setDrop, f.of(t.v)) }, false},
		{"DEL", del, false},
	}
	return takes, drops, []option{{"none", func(*try) bool { return false }, false}}
}

// promises are the ways in which a program computes the end of the lease.
var promises = []struct {
	name string
	of   func(t *try, before time.Time) time.Time
}{
	{"from before", nil}, {"from before", nil}, {"from before", nil},
	{"from the answer", func(t *try, _ time.Time) time.Time { return t.now().Add(t.ttl) }},
	{"what is left, from a third look", func(t *try, before time.Time) time.Time {
		left := t.ttl - t.now().Sub(before)
		return t.now().Add(left)
	}},
	{"what is left, from the second look", func(t *try, before time.Time) time.Time {
		now := t.now()
		return now.Add(t.ttl - now.Sub(before))
	}},
	{"half", func(t *try, before time.Time) time.Time { return before.Add(t.ttl / 2) }},
	{"by PTTL, then a look", func(t *try, _ time.Time) time.Time {
		left := t.number("pttl", t.key)
		return t.now().Add(time.Duration(max(left, 1)) * time.Millisecond)
	}},
}

// units are the units in which a program stores moments.
var units = []struct {
	name string
	d    time.Duration
}{{"ms", time.Millisecond}, {"µs", time.Microsecond}, {"ns", time.Nanosecond}, {"s", time.Second}}

// drawn returns the generated program of a seed.
func drawn(seed uint64) draft {
	r := rand.New(rand.NewPCG(seed, 0x6f7261636c65))
	var d draft
	pick := func(what string, from []option) func(*try) bool {
		o := from[r.IntN(len(from))]
		d.text += "; " + what + " " + o.name
		d.clear = d.clear || o.clear
		return o.do
	}
	if kind := r.IntN(10); kind == 0 {
		d.stamped(r)
	} else {
		f := forms[r.IntN(len(forms))]
		d.clear = f.clear
		var takes, drops, extends []option
		switch {
		case kind <= 6:
			d.text = "text: " + f.name
			takes, drops, extends = stringOptions(f)
		case kind <= 8:
			d.text = "hash: " + f.name
			takes, drops, extends = hashOptions(f)
		default:
			d.text, d.design.collection = "set: "+f.name, true
			takes, drops, extends = setOptions(f)
		}
		take, drop := pick("acquire", takes), pick("release", drops)
		p := promises[r.IntN(len(promises))]
		d.text += "; promised " + p.name
		d.design.acquire = func(t *try) bool {
			if !take(t) {
				return false
			}
			if p.of != nil {
				t.until = p.of(t, t.start)
			}
			return true
		}
		d.design.release = func(t *try) bool {
			if t.stop != nil {
				t.stop()
			}
			return drop(t)
		}
		d.design.extend = pick("extend", extends)
		d.design.spans = []time.Duration{lease / 2}
	}
	d.within(r)
	return d
}

// stamped turns the draft into a lock whose value is the end of its lease.
func (d *draft) stamped(r *rand.Rand) {
	unit := units[r.IntN(len(units))]
	takeovers := []option{
		{"GETSET", nil, false}, {"compare and SET", nil, false}, {"SET", nil, false}, {"DEL, SETNX", nil, false},
	}
	ways := []func(t *try, old, mine string) bool{
		getSet, swapIn,
		func(t *try, _, mine string) bool { t.do("set", t.key, mine); return true },
		func(t *try, _, mine string) bool { del(t); return t.yes("setnx", t.key, mine) },
	}
	drops := []option{{"compare and DEL", nil, false}, {"DEL", nil, false}, {"DEL before the end", nil, false}}
	releases := []func(t *try, mine string) bool{
		dropStamp,
		func(t *try, _ string) bool { return del(t) },
		func(t *try, _ string) bool { return t.now().Before(t.until) && del(t) },
	}
	i, j := r.IntN(len(ways)), r.IntN(len(releases))
	d.text = fmt.Sprintf("the end in %s; taken over by %s; release %s", unit.name, takeovers[i].name, drops[j].name)
	d.design = stamped(unit.d, ways[i], releases[j])
}

// within draws the bounds of both searches. The oracle lets time pass a number of times, each time to any moment. The
// search moves from one moment to the next and counts stalls after a reading of the clock separately, so its bounds
// are higher, enough for the same schedules.
func (d *draft) within(r *rand.Rand) {
	d.limits = limits{clients: 2, rounds: 1, states: 6_000, whole: r.IntN(8) > 0}
	switch r.IntN(8) {
	case 0:
		d.limits.rounds = 2
	case 1, 2:
		d.limits.jumps = 1
		d.limits.extends = true
	case 3:
		d.limits.lost = 1
	case 4:
		d.limits.late = 1
	case 5:
		d.limits.jumps = 1
		d.limits.crashes = 1
	case 6:
		d.limits.jumps = 2
	default:
		d.limits.jumps = 1
	}
	if d.limits.jumps == 0 && r.IntN(2) == 0 {
		d.limits.jumps = 1
	}
	l := d.limits
	d.bounds = reports.Bounds{
		Clients: l.clients, Tries: l.rounds, Crashes: l.crashes, Lost: l.lost, Late: l.late,
		Advances: 4 * l.jumps, Stalls: 2 * l.jumps, TimeMS: 20_000, MemoryMB: 3000,
	}
	d.text += fmt.Sprintf("; rounds %d crashes %d lost %d late %d jumps %d extends %t", l.rounds, l.crashes, l.lost, l.late, l.jumps, l.extends)
}

// tallies counts the results of the comparisons.
type tallies struct {
	sync.Mutex
	agreed                 map[string]int
	undecided              int
	searching, enumerating time.Duration
	reasons                map[string]int
}

// compare runs both searches on the program of a seed and compares their verdicts.
func (c *tallies) compare(t *testing.T, seed uint64) {
	d := drawn(seed)
	v := d.design.variant("generated")
	verdicts := map[bool]reports.Exploration{}
	for _, plain := range []bool{false, true} {
		k := config(v, d.bounds, d.limits.extends, v.Promises...)
		k.Plain, k.Exhaustive, k.Bounds.TimeMS = plain, true, 600
		start := time.Now()
		r, err := explore.Run(t.Context(), k)
		c.count(func() { c.searching += time.Since(start) })
		if err != nil {
			r.Verdict, r.Why = reports.Inconclusive, err.Error()
		}
		verdicts[plain] = r
	}
	expected, cut := map[variant.Property]int{}, false
	enumerated := func(l limits) {
		start := time.Now()
		defer func() { c.count(func() { c.enumerating += time.Since(start) }) }()
		for _, n := range d.namings() {
			r := enumerate(v, &d.design, l, n)
			if r.unknown != "" {
				t.Errorf("seed %d: %s: %v", seed, r.unknown, d)
			}
			for p, at := range r.broken {
				expected[p] = at
			}
			cut = cut || r.cut
		}
	}
	enumerated(d.limits)
	for plain, r := range verdicts {
		switch r.Verdict {
		case reports.Inconclusive:
			c.count(func() { c.reasons[short(r.Why)]++ })
			continue
		case reports.Pass:
			if len(expected) > 0 {
				t.Errorf("seed %d (plain %t): it passes, but by the oracle %v is broken: %v", seed, plain, expected, d)
				continue
			}
		case reports.Violated:
			p := r.Counterexample.Property
			for more := d.limits.jumps + 1; more <= d.limits.jumps+1 && expected[p] == 0 && d.limits.jumps > 0; more++ {
				l := d.limits
				l.jumps, l.states = more, 2*l.states
				enumerated(l)
			}
			// If the program compares more of the tokens than whether they are equal, whether a client obtains the lock in the
			// end depends on the tokens that are drawn then.
			if expected[p] == 0 && (cut || d.clear && p == variant.Progress) {
				c.count(func() { c.undecided++ })
				continue
			}
			if expected[p] == 0 {
				t.Errorf("seed %d (plain %t): %s is broken (%s), but by the oracle only %v: %v", seed, plain, p, r.Why, expected, d)
				continue
			}
		}
		c.count(func() { c.agreed[r.Verdict]++ })
	}
}

func (c *tallies) count(f func()) {
	c.Lock()
	defer c.Unlock()
	f()
}

func short(why string) string {
	why, _, _ = strings.Cut(why, ":")
	why, _, _ = strings.Cut(why, "(")
	why, _, _ = strings.Cut(why, " after ") // cuts off the time, which differs from run to run
	return why
}

// namings returns the namings that may change the program's behavior.
func (d draft) namings() []naming {
	if d.clear {
		return namings
	}
	return namings[:1]
}

// TestTheOracleAgrees checks that both searches give the same verdicts on random programs. It ignores a search that
// takes more than 0.6 s: one program in thirty takes as long as all others together. The long tests compare as many
// programs as time allows.
func TestTheOracleAgrees(t *testing.T) {
	t.Parallel()
	programs := uint64(2)
	if long {
		programs = 20_000
		defer debug.SetGCPercent(debug.SetGCPercent(800)) // much garbage, and little else: twice as many programs in a minute
	}
	c := &tallies{agreed: map[string]int{}, reasons: map[string]int{}}
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed := range seeds {
				c.compare(t, seed)
			}
		})
	}
	last, limited := t.Deadline()
	done := uint64(0)
	for ; done < programs && (!limited || time.Until(last) > time.Minute); done++ {
		seeds <- done
	}
	close(seeds)
	all.Wait()
	t.Logf("%d programs", done)
	t.Logf("searched for %v, enumerated for %v", c.searching.Round(time.Millisecond), c.enumerating.Round(time.Millisecond))
	t.Logf("agreed: %v; undecided: %d; inconclusive: %v", c.agreed, c.undecided, c.reasons)
	if long && min(c.agreed[reports.Pass], c.agreed[reports.Violated]) < int(done)/5 {
		t.Error("too few programs hold, or too few are violated")
	}
}
