package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// move is one thing that a generated lock does.
type move int

const (
	setNXPX    move = iota // SET NX PX; held if it set nothing
	setNX                  // SETNX; held if it set nothing
	expire                 // PEXPIRE
	incr                   // INCR; held if not 1
	lookFirst              // GET; held if the key has another client's value
	setPX                  // SET PX, without a condition
	script                 // SET NX and PEXPIRE in one script; held if it set nothing
	takeOver               // PTTL, and DEL if the key has no expiry
	clockAt                // the lease begins now
	everyOther             // every other time, skip the next move
	remember               // remember the client's own value
	recall                 // GET, and remember the reply
	dropLast               // compare with the remembered value and DEL, in a script
	note                   // SET of a second key
	dropNoted              // compare with the second key and DEL, in a script
	del                    // DEL
	getDel                 // GET, compare in the client, DEL
	scriptDel              // compare and DEL in a script
	decr                   // DECR
	moves
)

var moveNames = [...]string{
	"setNXPX", "setNX", "expire", "incr", "lookFirst", "setPX", "script", "takeOver", "clockAt", "everyOther",
	"remember", "recall", "dropLast", "note", "dropNoted", "del", "getDel", "scriptDel", "decr",
}

func (m move) String() string { return moveNames[m] }

// own says to which value a generated lock sets its key.
type own int

const (
	newToken own = iota
	firstToken
	one
)

// plan is a generated lock.
type plan struct {
	value                  own
	acquire, held, release []move
	extend                 []move
}

func (p plan) String() string {
	return fmt.Sprintf("value %d acquire %v held %v release %v extend %v", p.value, p.acquire, p.held, p.release, p.extend)
}

// generated is a client's view of a generated lock. Count, Last and First are its memory between rounds.
type generated struct {
	env         variant.Env
	plan        *plan
	count       int
	last, first string
}

var (
	scriptSet  = redis.NewScript(`if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0`)
	scriptDrop = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)
	scriptNote = redis.NewScript(`if redis.call('get', KEYS[1]) == redis.call('get', KEYS[2]) then return redis.call('del', KEYS[1]) end return 0`)
)

const noteKey = "note"

// do makes the moves. held reports whether another client holds the lock.
func (g *generated) do(ctx context.Context, ms []move, key, v string, ttl time.Duration, start *time.Time) (held bool, err error) {
	r := g.env.Redis[0]
	for i := 0; i < len(ms); i++ {
		switch ms[i] {
		case setNXPX:
			err = r.SetArgs(ctx, key, v, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
			if err == redis.Nil {
				return true, nil
			}
		case setNX:
			cmd := redis.NewIntCmd(ctx, "setnx", key, v)
			_ = r.Process(ctx, cmd)
			if cmd.Err() == nil && cmd.Val() == 0 {
				return true, nil
			}
			err = cmd.Err()
		case expire:
			err = r.PExpire(ctx, key, ttl).Err()
		case incr:
			var n int64
			if n, err = r.Incr(ctx, key).Result(); err == nil && n > 1 {
				return true, nil
			}
		case lookFirst, recall, getDel:
			var now string
			now, err = r.Get(ctx, key).Result()
			if err == redis.Nil {
				err = nil
			}
			switch {
			case err != nil:
			case ms[i] == recall:
				g.last = now
			case ms[i] == lookFirst && now != "" && now != v:
				return true, nil
			case ms[i] == getDel && now == v:
				err = r.Del(ctx, key).Err()
			}
		case setPX:
			err = r.Set(ctx, key, v, ttl).Err()
		case script:
			var n int64
			if n, err = scriptSet.Run(ctx, r, []string{key}, v, ttl.Milliseconds()).Int64(); err == nil && n == 0 {
				return true, nil
			}
		case takeOver:
			var left time.Duration
			if left, err = r.PTTL(ctx, key).Result(); err == nil && left == -1 {
				err = r.Del(ctx, key).Err()
			}
		case clockAt:
			*start = g.env.Clock.Now()
		case everyOther:
			if g.count = (g.count + 1) % 3; g.count%2 == 1 {
				i++
			}
		case remember:
			g.last = v
		case dropLast:
			if g.last != "" {
				err = scriptDrop.Run(ctx, r, []string{key}, g.last).Err()
			}
		case note:
			err = r.Set(ctx, noteKey, v, 0).Err()
		case dropNoted:
			err = scriptNote.Run(ctx, r, []string{key, noteKey}).Err()
		case del:
			err = r.Del(ctx, key).Err()
		case scriptDel:
			err = scriptDrop.Run(ctx, r, []string{key}, v).Err()
		case decr:
			err = r.Decr(ctx, key).Err()
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (g *generated) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	key := lockimpl.Key(name)
	start := g.env.Clock.Now()
	began := start
	for {
		v := "1"
		switch {
		case g.plan.value == newToken:
			v = g.env.Token()
		case g.plan.value == firstToken && g.first == "":
			g.first = g.env.Token()
			fallthrough
		case g.plan.value == firstToken:
			v = g.first
		}
		held, err := g.do(ctx, g.plan.acquire, key, v, o.TTL, &start)
		if err != nil {
			return lockimpl.Lock{}, err
		}
		if !held {
			return lockimpl.Lock{Key: name, Token: v, Until: start.Add(o.TTL)}, nil
		}
		if _, err := g.do(ctx, g.plan.held, key, v, o.TTL, &start); err != nil {
			return lockimpl.Lock{}, err
		}
		if o.MaxTries == 1 {
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
		if start = g.env.Clock.Now(); start.Sub(began) >= o.Wait {
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
		if err := g.env.Wait(ctx, name, o.RetryEvery); err != nil {
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
	}
}

func (g *generated) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	start := g.env.Clock.Now()
	held, err := g.do(ctx, g.plan.extend, lockimpl.Key(l.Key), l.Token, ttl, &start)
	switch {
	case err != nil:
		return l, err
	case held:
		return l, lockimpl.ErrLost
	}
	l.Until = start.Add(ttl)
	return l, nil
}

func (g *generated) Release(ctx context.Context, l lockimpl.Lock) error {
	var start time.Time
	_, err := g.do(ctx, g.plan.release, lockimpl.Key(l.Key), l.Token, time.Second, &start)
	return err
}

// templates are typical locks from which plans start.
var templates = []plan{
	{newToken, []move{setNXPX}, nil, []move{scriptDel}, []move{lookFirst, expire}},
	{newToken, []move{setNXPX}, nil, []move{getDel}, []move{expire}},
	{newToken, []move{setNXPX}, nil, []move{del}, []move{expire}},
	{newToken, []move{script}, nil, []move{scriptDel}, []move{lookFirst, expire}},
	{firstToken, []move{setNXPX}, nil, []move{scriptDel}, []move{lookFirst, expire}},
	{one, []move{setNX, expire}, nil, []move{del}, []move{expire}},
	{one, []move{setNX, expire}, []move{takeOver}, []move{del}, []move{expire}},
	{one, []move{incr, expire}, nil, []move{del}, []move{expire}},
	{newToken, []move{lookFirst, setPX}, nil, []move{getDel}, []move{expire}},
	{newToken, []move{setNXPX, remember}, []move{recall, dropLast}, []move{dropLast}, []move{expire}},
	{newToken, []move{setNXPX, note}, nil, []move{dropNoted}, []move{expire}},
	{newToken, []move{setNXPX, clockAt}, nil, []move{scriptDel}, []move{lookFirst, expire, clockAt}},
	{newToken, []move{everyOther, dropLast, script, remember}, []move{recall}, []move{everyOther, scriptDel}, []move{expire}},
	{newToken, []move{note, setNXPX}, []move{recall, dropLast}, nil, nil},
}

// draw returns the generated lock of a seed, and the configuration of its search.
func draw(seed uint64) (plan, Config) {
	r := rand.New(rand.NewPCG(seed, 0x6578706c6f7265))
	p := templates[r.IntN(len(templates))]
	for _, part := range []*[]move{&p.acquire, &p.held, &p.release} {
		*part = append([]move(nil), *part...)
		for r.IntN(100) < 30 {
			at := r.IntN(len(*part) + 1)
			switch m := move(r.IntN(int(moves))); {
			case r.IntN(2) == 0 || at == len(*part):
				*part = append((*part)[:at], append([]move{m}, (*part)[at:]...)...)
			case r.IntN(2) == 0:
				(*part)[at] = m
			default:
				*part = append((*part)[:at], (*part)[at+1:]...)
			}
		}
	}
	if r.IntN(6) == 0 {
		p.value = own(r.IntN(3))
	}
	b := reports.Bounds{Clients: 2, Tries: 1 + r.IntN(2), TimeMS: 120_000, MemoryMB: 8}
	if b.Tries == 1 && r.IntN(2) == 0 {
		b.Clients = 3
	}
	for faults := r.IntN(4); faults > 0; faults-- {
		switch r.IntN(8) {
		case 0, 1, 2:
			b.Advances = 1
		case 3:
			b.Lost = 1
		case 4:
			b.Late = 1
		case 5:
			b.Crashes++
		case 6, 7:
			b.Stalls = 1
		}
	}
	props := []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress}
	r.Shuffle(len(props), func(i, j int) { props[i], props[j] = props[j], props[i] })
	n := 1
	if r.IntN(4) == 0 {
		n = 2 + r.IntN(2)
	}
	var look []history.Promise
	for _, p := range props[:n] {
		look = append(look, history.Promise{Of: variant.Lock, Property: p})
	}
	hold := time.Millisecond
	if b.Clients == 2 && r.IntN(4) == 0 {
		hold = time.Second // so the lease is extended
	}
	return p, p.config(b, hold, look...)
}

func (p plan) config(b reports.Bounds, hold time.Duration, look ...history.Promise) Config {
	mutex, _ := scenarios.Find("mutex")
	lock := lockimpl.Variant{Name: "generated", New: func(env variant.Env) lockimpl.Locker { return &generated{env: env, plan: &p} }}
	return Config{Run: scenarios.Config{Scenario: mutex, Lock: lock, Hold: hold}, Bounds: b, Look: look, Exhaustive: true}
}

// outcome is the result of a search.
type outcome struct {
	verdict  string
	property variant.Property
	actions  int // steps other than deaths and the end
	end      bool
}

func outcomeOf(r reports.Exploration) outcome {
	o := outcome{verdict: r.Verdict}
	if c := r.Counterexample; c != nil {
		o.property = c.Property
		for _, s := range c.Steps {
			switch s.Kind {
			case reports.StepCrash:
			case reports.StepEnd:
				o.end = true
			default:
				o.actions++
			}
		}
	}
	return o
}

// generatedPrograms is how many programs TestReductionsChangeNothing searches; the long tests search 50 times as many.
const generatedPrograms = 60

// long reports whether the long tests run.
func long() bool { return os.Getenv("OVERSELL_LONG") != "" }

// TestReductionsChangeNothing checks on generated locks that a search with the reductions, one without, and a naive one
// have the same result.
func TestReductionsChangeNothing(t *testing.T) {
	t.Parallel()
	var violated, held, inconclusive, naively, tooBig atomic.Int64
	seeds := make(chan uint64)
	var all sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for seed := range seeds {
				p, c := draw(seed)
				reduced, plain, ok := both(t, seed, p, c)
				if !ok {
					continue
				}
				switch reduced.verdict {
				case reports.Violated:
					violated.Add(1)
				case reports.Pass:
					held.Add(1)
				default:
					inconclusive.Add(1)
				}
				if plain.property != reduced.property && len(c.Look) > 1 && plain.property != "" {
					reduced.property = plain.property // if two are broken in equally many steps, the clients' names decide which one is reported
				}
				if reduced != plain {
					t.Errorf("seed %d: with reductions %+v, without %+v: %v %+v %v", seed, reduced, plain, p, c.Bounds, c.Look)
				}
				if seed%4 != 0 && !long() {
					continue
				}
				switch n, finished := naive(t, c, naiveLimit); {
				case !finished:
					tooBig.Add(1)
				case !n.fits(plain):
					t.Errorf("seed %d: naively %+v, without reductions %+v: %v %+v %v", seed, n, plain, p, c.Bounds, c.Look)
				default:
					naively.Add(1)
				}
			}
		})
	}
	many := uint64(generatedPrograms)
	switch {
	case long():
		many *= 50
	case raced:
		many /= 2
	}
	for seed := range many {
		seeds <- seed
	}
	close(seeds)
	all.Wait()
	t.Logf("%d violated, %d hold, %d inconclusive; %d checked naively, %d too big for that",
		violated.Load(), held.Load(), inconclusive.Load(), naively.Load(), tooBig.Load())
	if n := violated.Load() + held.Load(); !raced && (n < int64(many)*5/6 || naively.Load() < int64(many)/10) || 4*violated.Load() < n || 4*held.Load() < n {
		t.Error("too few programs hold, are violated, or were checked naively")
	}
}

func both(t *testing.T, seed uint64, p plan, c Config) (reduced, plain outcome, ok bool) {
	for _, c.Plain = range []bool{false, true} {
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Errorf("seed %d (plain %t): %v: %v %+v", seed, c.Plain, err, p, c.Bounds)
			return reduced, plain, false
		}
		if strings.Contains(r.Why, "--memory") {
			return reduced, plain, false // too large for a test
		}
		if r.Why == unkeyed && c.Plain {
			return reduced, plain, false // the naive search may watch a key that is not the lock's
		}
		if strings.Contains(r.Why, "no promised lease ran out") {
			return reduced, plain, false // the naive search does not check that
		}
		if strings.Contains(r.Why, "progress is unknown") {
			return reduced, plain, false // nor this
		}
		if r.Verdict == reports.Inconclusive && r.Why != unkeyed && !strings.Contains(r.Why, "no client ever entered its section") {
			t.Errorf("seed %d (plain %t): %s: %v %+v", seed, c.Plain, r.Why, p, c.Bounds)
			return reduced, plain, false
		}
		if c.Plain {
			plain = outcomeOf(r)
		} else {
			reduced = outcomeOf(r)
		}
	}
	return reduced, plain, true
}
