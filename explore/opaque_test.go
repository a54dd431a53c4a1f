package explore

import (
	"context"
	crand "crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/reports"
	"oversell/variant"
)

// spelled returns a lock that stores a form of the token with SET NX, and compares that form in its release.
func spelled(value func(string) string) scripted {
	return scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			return plainly(ctx, s, r, value(v))
		},
		release: func(ctx context.Context, r redis.UniversalClient, v string) error {
			return freely(ctx, r, value(v))
		},
	}
}

func digest(v string) string {
	sum := sha1.Sum([]byte(v))
	return hex.EncodeToString(sum[:])
}

func half(v string) string {
	h := fnv.New32a()
	h.Write([]byte(v))
	return strconv.Itoa(int(h.Sum32() % 2))
}

// scriptedLock returns a lock whose parts are Lua scripts. The lock is granted if acquire returns 1.
func scriptedLock(acquire, release string) scripted {
	a, d := redis.NewScript(acquire), redis.NewScript(release)
	return scripted{
		acquire: func(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
			n, err := a.Run(ctx, r, []string{lockKey}, v, 1000).Int64()
			return n == 1, err
		},
		release: func(ctx context.Context, r redis.UniversalClient, v string) error {
			return d.Run(ctx, r, []string{lockKey}, v).Err()
		},
	}
}

const (
	luaTake = `if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0`
	luaDrop = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
)

// spellings are locks that use names in unusual ways, with verdicts found by reasoning.
var spellings = map[string]struct {
	lock    scripted
	look    variant.Property // mutual exclusion unless said otherwise
	want    string
	steps   int // of the counterexample
	names   bool
	crashes bool
}{
	"the token":                 {lock: spelled(func(v string) string { return v }), want: reports.Pass},
	"sha1 of the token":         {lock: spelled(digest), want: reports.Pass, names: true},
	"sha1, no wrong release":    {lock: spelled(digest), look: ownerP, want: reports.Pass, names: true},
	"the token in upper case":   {lock: spelled(strings.ToUpper), want: reports.Pass, names: true},
	"the token behind a word":   {lock: spelled(func(v string) string { return "owner:" + v + ":1" }), want: reports.Pass},
	"the beginning of a token":  {lock: spelled(func(v string) string { return v[:4] }), want: reports.Violated, steps: 6, names: true},
	"the end of a token":        {lock: spelled(func(v string) string { return v[len(v)-4:] }), want: reports.Violated, steps: 6, names: true},
	"the length of the token":   {lock: spelled(func(v string) string { return strconv.Itoa(len(v)) }), want: reports.Violated, steps: 6},
	"the length and the token":  {lock: spelled(func(v string) string { return strconv.Itoa(len(v)) + v }), want: reports.Pass},
	"one half of all tokens":    {lock: spelled(half), want: reports.Violated, steps: 6, names: true},
	"a key for half the tokens": {lock: halves, want: reports.Violated, steps: 2, names: true},
	// A client whose token begins with a to d, a quarter of all tokens, takes the lock from its holder.
	"the first letter": {lock: scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			if v[0] >= 'a' && v[0] <= 'd' {
				return true, r.Set(ctx, lockKey, v, time.Second).Err()
			}
			return plainly(ctx, s, r, v)
		},
		release: freely,
	}, want: reports.Violated, steps: 2, names: true},
	"the first letter, in a script": {
		lock: scriptedLock(`local f = string.sub(ARGV[1], 1, 1) if f >= '5' and f <= '8' or redis.call('exists', KEYS[1]) == 0 then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0`, luaDrop),
		want: reports.Violated, steps: 2, names: true,
	},
	"a key for each remainder": {lock: scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			return r.SetNX(ctx, lockKey+strconv.Itoa(int(v[0])%5), v, 0).Result()
		},
		release: func(ctx context.Context, r redis.UniversalClient, v string) error {
			return scriptDrop.Run(ctx, r, []string{lockKey + strconv.Itoa(int(v[0])%5)}, v).Err()
		},
	}, want: reports.Violated, steps: 2, names: true},
	"sha1 in a script": {
		lock: scriptedLock(`if redis.call('set', KEYS[1], redis.sha1hex(ARGV[1]), 'NX', 'PX', ARGV[2]) then return 1 end return 0`,
			`if redis.call('get', KEYS[1]) == redis.sha1hex(ARGV[1]) then return redis.call('del', KEYS[1]) end return 0`),
		want: reports.Pass, names: true,
	},
	"upper case in a script": {
		lock: scriptedLock(luaTake, `if string.upper(redis.call('get', KEYS[1]) or '') == string.upper(ARGV[1]) then return redis.call('del', KEYS[1]) end return 0`),
		want: reports.Pass,
	},
	"the beginning, in a script": {
		lock: scriptedLock(luaTake, `if string.sub(redis.call('get', KEYS[1]) or '', 1, 3) == string.sub(ARGV[1], 1, 3) then return redis.call('del', KEYS[1]) end return 0`),
		want: reports.Violated, steps: 6, names: true,
	},
	// A client with a larger token takes the lock from its holder.
	"order in a script": {
		lock: scriptedLock(`local v = redis.call('get', KEYS[1]) if not v or v < ARGV[1] then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0`, luaDrop),
		want: reports.Violated, steps: 2, names: true,
	},
	"the other order in a script": {
		lock: scriptedLock(`local v = redis.call('get', KEYS[1]) if not v or v > ARGV[1] then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0`, luaDrop),
		want: reports.Violated, steps: 2, names: true,
	},
	"order in a script, and no harm": {
		lock: scriptedLock(`local v = redis.call('get', KEYS[1]) if v and v < ARGV[1] then redis.call('set', 'seen', 'less') return 0 end if v then return 0 end redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`, luaDrop),
		want: reports.Pass, names: true,
	},
	"a table of tokens in a script": {
		lock: scriptedLock(`local t = {} t[ARGV[1]] = 1 t[redis.call('get', KEYS[1]) or ''] = 2
			if t[''] then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0`, luaDrop),
		want: reports.Pass,
	},
	"order":                       {lock: byOrder(func(mine, other string) bool { return mine > other }, false), want: reports.Violated, steps: 3, names: true},
	"the other order":             {lock: byOrder(func(mine, other string) bool { return mine < other }, false), want: reports.Violated, steps: 3, names: true},
	"order, and no harm":          {lock: byOrder(func(mine, other string) bool { return mine > other }, true), want: reports.Pass, names: true},
	"order of a common beginning": {lock: byOrder(func(mine, other string) bool { return mine[:2] > other[:2] }, false), want: reports.Violated, steps: 3, names: true},
	"a token in a set": {lock: scriptedLock(`if redis.call('scard', KEYS[1]) == 0 then redis.call('sadd', KEYS[1], ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0`,
		`return redis.call('srem', KEYS[1], ARGV[1])`), want: reports.Pass},
	"a token in a hash": {lock: scriptedLock(`if redis.call('exists', KEYS[1]) == 0 then redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0`,
		`return redis.call('hdel', KEYS[1], ARGV[1])`), want: reports.Pass},
	"the first of a set":               {lock: firstOf, want: reports.Violated, steps: 4},
	"own random tokens":                {lock: drawing(crand.Text, false), want: reports.Pass},
	"own random tokens, wrong release": {lock: drawing(crand.Text, true), look: ownerP, want: reports.Violated, steps: 5},
	"sha1 of own random tokens":        {lock: drawing(func() string { return digest(crand.Text()) }, false), want: reports.Pass},
	"own random numbers":               {lock: drawing(func() string { return strconv.FormatUint(1<<63+rand.Uint64()/2, 10) }, false), want: reports.Pass},
}

// halves is a lock with two keys; the token decides which one is used.
var halves = scripted{
	acquire: func(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
		return r.SetNX(ctx, lockKey+half(v), v, 0).Result()
	},
	release: func(ctx context.Context, r redis.UniversalClient, v string) error {
		return scriptDrop.Run(ctx, r, []string{lockKey + half(v)}, v).Err()
	},
}

// byOrder returns a lock that a client takes from its holder if the client's token beats the holder's.
func byOrder(beats func(mine, other string) bool, only bool) scripted {
	return scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			set, err := plainly(ctx, s, r, v)
			if err != nil || set {
				return set, err
			}
			now, err := get(ctx, r, lockKey)
			if err != nil || now == "" || !beats(v, now) {
				return false, err
			}
			if only { // it only notes that its token beats the holder's
				return false, r.Set(ctx, noteKey, "beaten", 0).Err()
			}
			return true, nil
		},
		release: freely,
	}
}

// firstOf is a lock that is held by the first member that SMEMBERS returns.
var firstOf = scripted{
	acquire: func(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
		if err := r.SAdd(ctx, "line", v).Err(); err != nil {
			return false, err
		}
		line, err := r.SMembers(ctx, "line").Result()
		return err == nil && line[0] == v, err
	},
}

// drawing returns a lock that draws its own tokens. If anybody is set, its release does not compare them.
func drawing(draw func() string, anybody bool) scripted {
	return scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			s.own = draw()
			return plainly(ctx, s, r, s.own)
		},
		releases: func(ctx context.Context, s *actor, r redis.UniversalClient) error {
			if anybody {
				return r.Del(ctx, lockKey).Err()
			}
			return freely(ctx, r, s.own)
		},
	}
}

// TestSpellings checks that searches with and without the reductions have the same verdict, in the same number of steps.
// Locks that hold, and those that break after many steps, are searched without the reductions only in the long tests, and
// locks that hold with two tries.
func TestSpellings(t *testing.T) {
	for name, s := range spellings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := mutexP
			if s.look != "" {
				look = s.look
			}
			c := locked(reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, s.lock, look)
			if s.want == reports.Pass && !long() {
				c.Bounds.Tries = 1
			}
			for _, c.Plain = range []bool{false, true} {
				if c.Plain && (raced || (s.want == reports.Pass || s.steps > 3) && !long()) {
					continue
				}
				r, err := Run(t.Context(), c)
				if err != nil {
					t.Fatalf("plain %t: %v", c.Plain, err)
				}
				steps := 0
				if r.Counterexample != nil {
					steps = len(r.Counterexample.Steps)
				}
				if r.Verdict != s.want || steps != s.steps {
					t.Errorf("plain %t: %s in %d steps (%s); want %s in %d", c.Plain, r.Verdict, steps, r.Why, s.want, s.steps)
				}
				spelling := strings.Contains(strings.Join(r.NotChecked, "\n"), "spellings of names")
				if spelling != s.names {
					t.Errorf("plain %t: searched with concrete names: %t (%v)", c.Plain, spelling, r.NotChecked)
				}
				t.Logf("plain %t: %s, %d steps, %d states, %d executions, %.0f ms", c.Plain, r.Verdict, steps, r.Stats.States, r.Stats.Executions, r.Stats.ElapsedMS)
			}
		})
	}
}

// TestCoins checks that a client's random decision is reported, with both commands.
func TestCoins(t *testing.T) {
	keys := map[string]bool{"a": true, "b": true, "c": true, "d": true}
	for name, c := range map[string]struct {
		chance func(ctx context.Context, r redis.UniversalClient) error
		says   string
	}{
		"a coin": {func(ctx context.Context, r redis.UniversalClient) error {
			if rand.IntN(2) == 0 {
				return r.Set(ctx, noteKey, "heads", 0).Err()
			}
			return r.Del(ctx, noteKey).Err()
		}, "heads"},
		"a coin for a value": {func(ctx context.Context, r redis.UniversalClient) error {
			return r.Set(ctx, noteKey, rand.IntN(2), 0).Err()
		}, "once it said"},
		"the order of a map": {func(ctx context.Context, r redis.UniversalClient) error {
			for key := range keys {
				if err := r.Set(ctx, key, "1", 0).Err(); err != nil {
					return err
				}
			}
			return nil
		}, "once it said"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, plain := range []bool{false, true} {
				config := locked(reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, scripted{
					acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
						if err := c.chance(ctx, r); err != nil {
							return false, err
						}
						return plainly(ctx, s, r, v)
					},
					release: freely,
				})
				config.Plain = plain
				if r, err := Run(t.Context(), config); !errors.Is(err, ErrNondeterministic) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("plain %t: %v, %s: %s; want %q", plain, err, r.Verdict, r.Why, c.says)
				}
			}
		})
	}
}

// listed returns a lock that a client also gets if enters accepts the order of a list in a reply. A server that always
// sorts the list never gives it that order.
func listed(list func(ctx context.Context, r redis.UniversalClient) ([]string, error), enters func([]string) bool) scripted {
	return scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			all, err := list(ctx, r)
			if err != nil || enters(all) {
				return err == nil, err
			}
			return plainly(ctx, s, r, v)
		},
		release: freely,
	}
}

// TestOrdersOfReplies checks that, if a server may answer in any order, a search tries all orders or reports that it
// did not.
func TestOrdersOfReplies(t *testing.T) {
	members := func(all ...any) func(ctx context.Context, r redis.UniversalClient) ([]string, error) {
		return func(ctx context.Context, r redis.UniversalClient) ([]string, error) {
			if err := r.SAdd(ctx, "set", all...).Err(); err != nil {
				return nil, err
			}
			return r.SMembers(ctx, "set").Result()
		}
	}
	fields := func(name string) func(ctx context.Context, r redis.UniversalClient) ([]string, error) {
		return func(ctx context.Context, r redis.UniversalClient) ([]string, error) {
			if err := r.HSet(ctx, "hash", "a", 1, "b", 2, "c", 3).Err(); err != nil {
				return nil, err
			}
			return r.Do(ctx, name, "hash").StringSlice()
		}
	}
	script := func(ctx context.Context, r redis.UniversalClient) ([]string, error) {
		if err := r.SAdd(ctx, "set", "a", "b").Err(); err != nil {
			return nil, err
		}
		return redis.NewScript(`return redis.call('smembers', KEYS[1])`).Run(ctx, r, []string{"set"}).StringSlice()
	}
	inBlock := func(ctx context.Context, r redis.UniversalClient) ([]string, error) {
		var keys *redis.StringSliceCmd
		_, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, "hash", "a", 1, "b", 2)
			keys = p.HKeys(ctx, "hash")
			return nil
		})
		return keys.Val(), err
	}
	for name, c := range map[string]struct {
		lock      scripted
		want, why string
		steps     int
	}{
		"members":            {listed(members("a", "b", "c"), func(l []string) bool { return l[0] == "c" }), reports.Violated, "", 4},
		"members, and none":  {listed(members("a", "b", "c"), func(l []string) bool { return l[0] == "d" }), reports.Pass, "", 0},
		"members, counted":   {listed(members("a", "b", "c"), func(l []string) bool { return len(l) != 3 }), reports.Pass, "", 0},
		"too many members":   {listed(members("a", "b", "c", "d", "e"), func(l []string) bool { return false }), reports.Inconclusive, "the order of so many", 0},
		"members, in script": {listed(script, func(l []string) bool { return false }), reports.Inconclusive, "the order of a hash or a set in a script", 0},
		"fields":             {listed(fields("hkeys"), func(l []string) bool { return l[0] == "b" && l[1] == "a" }), reports.Violated, "", 4},
		"values":             {listed(fields("hvals"), func(l []string) bool { return l[0] == "3" }), reports.Violated, "", 4},
		"both":               {listed(fields("hgetall"), func(l []string) bool { return l[0] == "b" && l[1] == "2" }), reports.Violated, "", 4},
		"both, torn apart":   {listed(fields("hgetall"), func(l []string) bool { return l[0] == "b" && l[1] != "2" }), reports.Pass, "", 0},
		"fields, in a block": {listed(inBlock, func(l []string) bool { return len(l) == 2 && l[0] == "b" }), reports.Violated, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := locked(reports.Bounds{Clients: 2, Tries: 1}, c.lock)
			for _, config.Plain = range []bool{false, true} {
				r, err := Run(t.Context(), config)
				steps := 0
				if r.Counterexample != nil {
					steps = len(r.Counterexample.Steps)
				}
				if err != nil || r.Verdict != c.want || steps != c.steps || !strings.Contains(r.Why, c.why) {
					t.Errorf("plain %t: %s in %d steps: %s, %v; want %s in %d", config.Plain, r.Verdict, steps, r.Why, err, c.want, c.steps)
				}
			}
		})
	}
}

// TestOwnValuesAndOrder checks that a lock that compares the order of values that its clients draw at random is never
// proved: a search cannot choose the order of such values.
func TestOwnValuesAndOrder(t *testing.T) {
	lock := drawing(crand.Text, false)
	lock.acquire = func(ctx context.Context, s *actor, r redis.UniversalClient, _ string) (bool, error) {
		s.own = crand.Text()
		set, err := plainly(ctx, s, r, s.own)
		if err != nil || set {
			return set, err
		}
		now, err := get(ctx, r, lockKey)
		return err == nil && now < s.own, err
	}
	r, err := Run(t.Context(), locked(reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, lock))
	// The lock is wrong. The search may find that or not, but must not prove the lock.
	if err == nil && r.Verdict == reports.Pass || err != nil && !errors.Is(err, ErrNondeterministic) {
		t.Errorf("%s: %s, %v; want it not to hold", r.Verdict, r.Why, err)
	}
}

// TestSpelledSchedulesReplay checks that a schedule with concrete or random names takes the same course on a real server.
func TestSpelledSchedulesReplay(t *testing.T) {
	for _, name := range []string{"order", "the beginning of a token", "own random tokens, wrong release", "a key for half the tokens"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spellings[name]
			look := mutexP
			if s.look != "" {
				look = s.look
			}
			c := locked(reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, s.lock, look)
			r, err := Run(t.Context(), c)
			if err != nil || r.Counterexample == nil {
				t.Fatalf("%s: %s, %v", r.Verdict, r.Why, err)
			}
			if err := replays(t.Context(), c, r.Counterexample); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFirstRun checks that a search reports code that remembers, in a variable of the process, that it has run before.
// Only the first run differs: all later runs that the search compares are alike.
func TestFirstRun(t *testing.T) {
	first := true
	config := locked(reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, scripted{
		acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			if first {
				first = false
				return true, r.Set(ctx, lockKey, v, time.Second).Err()
			}
			return r.SetNX(ctx, lockKey, v, time.Second).Result()
		},
		release: freely,
	})
	if r, err := Run(t.Context(), config); !errors.Is(err, ErrNondeterministic) || !strings.Contains(err.Error(), "when it was run for the first time") {
		t.Errorf("%v, %s: %s", err, r.Verdict, r.Why)
	}
}

// TestScriptLearntLate checks that a client counts as deterministic although EVALSHA answers NOSCRIPT in some schedules
// and not in others.
func TestScriptLearntLate(t *testing.T) {
	config := locked(reports.Bounds{Clients: 2, Tries: 2, Advances: 1}, scripted{
		acquire: plainly,
		release: func(ctx context.Context, r redis.UniversalClient, v string) error {
			err := scriptDrop.EvalSha(ctx, r, []string{lockKey}, v).Err()
			if redis.HasErrorPrefix(err, "NOSCRIPT") {
				if held, err := r.Get(ctx, lockKey).Result(); err != nil || held != v {
					return nil
				}
				if err := r.Del(ctx, lockKey).Err(); err != nil {
					return err
				}
				return scriptDrop.Load(ctx, r).Err()
			}
			return err
		},
	})
	if r, err := Run(t.Context(), config); err != nil || r.Verdict != reports.Pass {
		t.Errorf("%v, %s: %s", err, r.Verdict, r.Why)
	}
}
