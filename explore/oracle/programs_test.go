package oracle

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// program is a lock whose verdict was found by reasoning.
type program struct {
	item   int // number in the list of points at which a search may assume too much
	name   string
	bounds string // see boundsOf
	// breaks lists the promises that the lock breaks within the bounds, each by its first letter: mutual-exclusion,
	// owner-only-release, progress. If empty, the lock keeps all three.
	breaks string
	design design
	// alone says that the oracle cannot judge the lock: it draws random values, or uses what the model does not know.
	alone bool
}

func sha(s string) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// asText returns a lock whose value is a form of the token, released by compare and DEL.
func asText(form func(string) string) design {
	return design{
		acquire: func(t *try) bool { return t.yes("set", t.key, form(t.v), "nx", "px", t.ms()) },
		release: func(t *try) bool { return t.script(dropIfEqual, form(t.v)) },
		extend:  func(t *try) bool { return t.script(renewIfEqual, form(t.v), t.ms()) },
	}
}

// until returns a lock that computes the end of its lease with f, after SET.
func until(f func(t *try, before time.Time) time.Time) design {
	return design{late: true, release: dropCompared, acquire: func(t *try) bool {
		before := t.now()
		ok := setNX(t)
		if ok {
			t.until = f(t, before)
		}
		return ok
	}}
}

// stamped returns a lock whose value is the end of its lease, in a unit. takeover is what a client does when it finds
// that the lease is over; old is the value that it read.
func stamped(unit time.Duration, takeover func(t *try, old, mine string) bool, release func(t *try, mine string) bool) design {
	value := func(at time.Time) string { return strconv.FormatInt(at.UnixNano()/int64(unit), 10) }
	return design{
		acquire: func(t *try) bool {
			t.until = time.Unix(0, t.until.UnixNano()/int64(unit)*int64(unit))
			mine := value(t.until)
			if t.yes("setnx", t.key, mine) {
				return true
			}
			old := t.text("get", t.key)
			if old == "" {
				return false
			}
			end, _ := strconv.ParseInt(old, 10, 64)
			if now := t.now().UnixNano() / int64(unit); end >= now {
				return false
			}
			return takeover(t, old, mine)
		},
		release: func(t *try) bool { return release(t, value(t.until)) },
		extend:  func(*try) bool { return false },
	}
}

func getSet(t *try, old, mine string) bool { return t.text("getset", t.key, mine) == old }

const swap = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end return 0`

func swapIn(t *try, old, mine string) bool { return t.script(swap, old, mine) }

func dropStamp(t *try, mine string) bool { return t.script(dropIfEqual, mine) }

// within returns a lock whose acquire and release have a time limit.
func within(limit time.Duration, acquire, release func(*try) bool) design {
	limited := func(part func(*try) bool) func(*try) bool {
		return func(t *try) bool {
			ctx, cancel := t.env.Clock.WithTimeout(t.ctx, limit)
			defer cancel()
			t.ctx = ctx
			return part(t)
		}
	}
	return design{deadlines: true, spans: []time.Duration{limit}, acquire: limited(acquire), release: limited(release)}
}

// silent runs a part, and also reports whether it ended for want of an answer.
func silent(t *try, part func(*try) bool) (ok, none bool) {
	ok, err := t.run(part)
	return ok, err != nil
}

// freshly returns a random text.
func freshly() string {
	b := make([]byte, 16)
	_, _ = crand.Read(b)
	return hex.EncodeToString(b)
}

// own returns a lock that makes its own tokens instead of calling Env.Token.
func own(token func() string, release func(*try) bool) design {
	return design{
		acquire: func(t *try) bool { t.v = token(); return setNX(t) },
		release: release,
	}
}

// under returns a lock that uses SET NX and a given release, under another key.
func under(key string, release func(*try) bool) design {
	return design{key: func(string) string { return key }, acquire: setNX, release: release}
}

func renewBlindly(t *try) bool { return t.yes("pexpire", t.key, t.ms()) }

const (
	hashSet    = `if redis.call('hexists', KEYS[1], 'owner') == 1 then return 0 end redis.call('hset', KEYS[1], 'owner', ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1`
	hashDrop   = `if redis.call('hget', KEYS[1], 'owner') == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
	setAdd     = `if redis.call('scard', KEYS[1]) > 0 then return 0 end redis.call('sadd', KEYS[1], ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1`
	setDrop    = `if redis.call('sismember', KEYS[1], ARGV[1]) == 1 then return redis.call('del', KEYS[1]) end return 0`
	shaSet     = `if redis.call('exists', KEYS[1]) == 1 then return 0 end redis.call('set', KEYS[1], redis.sha1hex(ARGV[1]), 'PX', ARGV[2]) return 1`
	shaDrop    = `if redis.call('get', KEYS[1]) == redis.sha1hex(ARGV[1]) then return redis.call('del', KEYS[1]) end return 0`
	upperDrop  = `if string.upper(redis.call('get', KEYS[1]) or '') == string.upper(ARGV[1]) then return redis.call('del', KEYS[1]) end return 0`
	prefixDrop = `if string.sub(redis.call('get', KEYS[1]) or '', 1, 2) == string.sub(ARGV[1], 1, 2) then return redis.call('del', KEYS[1]) end return 0`
	orderTake  = `local v = redis.call('get', KEYS[1]) if not v or v < ARGV[1] then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end return 0`
	orderDrop  = `local v = redis.call('get', KEYS[1]) if v and not (v < ARGV[1]) and not (ARGV[1] < v) then return redis.call('del', KEYS[1]) end return 0`
	stampTake  = `local u = redis.call('hget', KEYS[1], 'until') if u and tonumber(u) > tonumber(ARGV[2]) then return 0 end redis.call('hset', KEYS[1], 'owner', ARGV[1], 'until', ARGV[3]) return 1`
	stampKeep  = `if redis.call('hget', KEYS[1], 'owner') ~= ARGV[1] then return 0 end redis.call('hset', KEYS[1], 'until', ARGV[2]) return 1`
	scoreTake  = `redis.call('zremrangebyscore', KEYS[1], '-inf', ARGV[2]) if redis.call('zcard', KEYS[1]) > 0 then return 0 end redis.call('zadd', KEYS[1], ARGV[3], ARGV[1]) return 1`
)

// lowest reports whether the client's token is the lowest one in the set.
func lowest(t *try) bool {
	all := t.texts("smembers", t.key)
	return len(all) > 0 && slices.Min(all) == t.v
}

func join(t *try) {
	t.do("sadd", t.key, t.v)
	t.do("pexpire", t.key, t.ms())
}

func leave(t *try) bool { return t.yes("srem", t.key, t.v) }

// crowd returns a lock that is a set of tokens. chosen reports whether the client's token holds the lock.
func crowd(chosen func(*try) bool) design {
	return design{collection: true, release: leave, extend: renewBlindly, acquire: func(t *try) bool {
		join(t)
		if chosen(t) {
			return true
		}
		leave(t)
		return false
	}}
}

// watching returns a lock that is taken in a transaction, after WATCH.
func watching(release func(*try) bool) design {
	return design{acquire: func(t *try) bool {
		return t.watched(func(tx *redis.Tx) [][]any {
			if on(t.ctx, tx, "get", t.key) != nil {
				return nil
			}
			return [][]any{{"set", t.key, t.v, "px", t.ms()}}
		})
	}, release: release}
}

func dropWatched(t *try) bool {
	return t.watched(func(tx *redis.Tx) [][]any {
		if textOf(on(t.ctx, tx, "get", t.key)) != t.v {
			return nil
		}
		return [][]any{{"del", t.key}}
	})
}

const (
	day   = 24 * time.Hour
	years = 55 * 365 * day
)

// remembering returns a lock that notes each attempt under a key with a long expiry.
func remembering(lasts time.Duration, acquire, release func(*try) bool) design {
	return design{release: release, acquire: func(t *try) bool {
		if !t.yes("set", "Seen:"+t.v, "1", "nx", "ex", int64(lasts/time.Second)) {
			return false
		}
		return acquire(t)
	}}
}

var programs = slices.Concat(clocks, stamps, names, chances, orders, limitsAndDeaths, keys, days, connections, large, redlocks, mixed, owners)

// clocks are locks in which time may pass between any two readings of a clock.
var clocks = []program{
	{1, "what is left of the lease, from a third look", "a2 s2", "m", until(func(t *try, before time.Time) time.Time {
		left := t.ttl - t.now().Sub(before)
		return t.now().Add(left)
	}), false},
	{1, "what is left of the lease, from the second look", "a2 s2", "", until(func(t *try, before time.Time) time.Time {
		now := t.now()
		return now.Add(t.ttl - now.Sub(before))
	}), false},
	{1, "the lease counted from the answer", "a2 s2", "m", until(func(t *try, _ time.Time) time.Time { return t.now().Add(t.ttl) }), false},
	{1, "the lease counted from before the command", "a2 s2", "", until(func(t *try, before time.Time) time.Time { return before.Add(t.ttl) }), false},
	{1, "the lease counted from the second of two looks before", "a2 s2", "", design{late: true, release: dropCompared, acquire: func(t *try) bool {
		t.now()
		t.until = t.now().Add(t.ttl)
		return setNX(t)
	}}, false},
	{1, "PTTL, then a look", "a2 s2", "m", until(func(t *try, _ time.Time) time.Time {
		left := t.number("pttl", t.key)
		return t.now().Add(time.Duration(left) * time.Millisecond)
	}), false},
	{1, "a look, then PTTL of whatever stands there", "a2 s2", "m", until(func(t *try, _ time.Time) time.Time {
		now := t.now()
		left := t.number("pttl", t.key)
		return now.Add(time.Duration(max(left, 0)) * time.Millisecond)
	}), false},
	{1, "a look, then PTTL of the own lock", "a2 s2", "", design{late: true, release: dropCompared, acquire: func(t *try) bool {
		if !setNX(t) {
			return false
		}
		t.until = t.now()
		left, err := redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) end return 0`).Run(t.ctx, t.r, []string{t.key}, t.v).Int64()
		if err != nil {
			panic(failure{err})
		}
		t.until = t.until.Add(time.Duration(left) * time.Millisecond)
		return left > 0
	}}, false},
	{1, "released by DEL while the lease is not over", "a2 s2", "o", design{acquire: setNX, release: func(t *try) bool { return t.now().Before(t.until) && del(t) }}, false},
	{1, "released by compare and DEL while the lease is not over", "a2 s2", "", design{acquire: setNX, release: func(t *try) bool { return t.now().Before(t.until) && dropCompared(t) }}, false},
	{1, "released if it took long, else half a lease from a later look", "a2 s2", "m", halfLease(true), false},
	{1, "released if it took long, else half a lease from that look", "a2 s2", "", halfLease(false), false},
	{1, "extended, with the lease counted from the answer", "a2 s2 hold", "m", design{acquire: setNX, release: dropCompared, extend: func(t *try) bool {
		ok := extendCompared(t)
		t.until = t.now().Add(t.ttl)
		return ok
	}}, false},
}

func halfLease(later bool) design {
	return design{spans: []time.Duration{lease / 2}, release: dropCompared, acquire: func(t *try) bool {
		if !setNX(t) {
			return false
		}
		now := t.now()
		if now.Sub(t.start) > t.ttl/2 {
			dropCompared(t)
			return false
		}
		if later {
			now = t.now()
		}
		t.until = now.Add(t.ttl / 2)
		return true
	}}
}

// hashed returns a lock that is a hash with the owner and the end of the lease.
func hashed(promise func(t *try, start time.Time) time.Time, extend func(*try) bool) design {
	return design{
		acquire: func(t *try) bool {
			if !t.script(stampTake, t.v, t.start.UnixMilli(), t.until.UnixMilli()) {
				return false
			}
			t.until = promise(t, t.start)
			return true
		},
		release: func(t *try) bool { return t.script(hashDrop, t.v) },
		extend:  extend,
	}
}

func fromStart(t *try, start time.Time) time.Time { return start.Add(t.ttl) }

func keepStamp(t *try) bool { return t.script(stampKeep, t.v, t.until.UnixMilli()) }

// stamps are locks that keep the end of the lease as data. A search must treat it as a moment, too.
var stamps = []program{
	{2, "timestamps, GETSET", "a2 s2", "", stamped(time.Millisecond, getSet, dropStamp), false},
	{2, "timestamps, compare and set", "a2 s2", "", stamped(time.Millisecond, swapIn, dropStamp), false},
	{2, "timestamps, SET", "t2 a2 s2", "m", stamped(time.Millisecond, func(t *try, _, mine string) bool { t.do("set", t.key, mine); return true }, dropStamp), false},
	{2, "timestamps, DEL and SETNX", "t2 a2 s2", "m", stamped(time.Millisecond, func(t *try, _, mine string) bool { del(t); return t.yes("setnx", t.key, mine) }, dropStamp), false},
	{2, "timestamps, released by DEL", "a2 s2", "o", stamped(time.Millisecond, swapIn, func(t *try, _ string) bool { return del(t) }), false},
	{2, "timestamps, released by DEL before the end", "a2 s2", "o", stamped(time.Millisecond, swapIn, func(t *try, _ string) bool { return t.now().Before(t.until) && del(t) }), false},
	{2, "timestamps in microseconds, compare and set", "a2 s2", "", stamped(time.Microsecond, swapIn, dropStamp), false},
	{2, "timestamps in microseconds, released by DEL", "a2 s2", "o", stamped(time.Microsecond, swapIn, func(t *try, _ string) bool { return del(t) }), false},
	{2, "timestamps in nanoseconds, released by DEL", "a2 s2", "o", stamped(time.Nanosecond, swapIn, func(t *try, _ string) bool { return del(t) }), false},
	{2, "timestamps in seconds, compare and set", "a2 s2", "", stamped(time.Second, swapIn, dropStamp), false},
	{2, "a lease in a hash, by the clients' clocks", "a2 s2", "", hashed(fromStart, keepStamp), false},
	{2, "a lease in a hash, promised from the answer", "a2 s2", "m", hashed(func(t *try, _ time.Time) time.Time { return t.now().Add(t.ttl) }, keepStamp), false},
	{2, "a lease in a hash, extended blindly", "a2 s2 hold", "m", hashed(fromStart, func(t *try) bool { t.do("hset", t.key, "until", t.until.UnixMilli()); return true }), false},
	{2, "a lease in a hash, extended", "a2 s2 hold", "", hashed(fromStart, keepStamp), false},
	{2, "a lease as a score", "a2 s2", "", design{
		collection: true,
		acquire:    func(t *try) bool { return t.script(scoreTake, t.v, t.start.UnixMilli(), t.until.UnixMilli()) },
		release:    func(t *try) bool { return t.yes("zrem", t.key, t.v) },
	}, false},
	{2, "a lease as a score, in three commands", "a2 s2", "m", design{
		collection: true,
		acquire: func(t *try) bool {
			t.do("zremrangebyscore", t.key, "-inf", t.start.UnixMilli())
			if t.number("zcard", t.key) > 0 {
				return false
			}
			return t.yes("zadd", t.key, t.until.UnixMilli(), t.v)
		},
		release: func(t *try) bool { return t.yes("zrem", t.key, t.v) },
	}, false},
	{2, "no lease but a promised one, and a death", "c1 a2 s2", "p", design{acquire: func(t *try) bool { return t.yes("setnx", t.key, t.v) }, release: dropCompared}, false},
	{2, "a lease twice as long in Redis as promised", "a2 s2", "", design{acquire: func(t *try) bool { return t.yes("set", t.key, t.v, "nx", "px", 2*t.ms()) }, release: dropCompared}, false},
	{2, "a lease half as long in Redis as promised", "a2 s2", "m", design{acquire: func(t *try) bool { return t.yes("set", t.key, t.v, "nx", "px", t.ms()/2) }, release: dropCompared}, false},
	{2, "whoever reads that the lease is over overwrites a value of two parts", "t2 a2 s2", "m", composite(false), false},
	{2, "whoever reads that the lease is over swaps a value of two parts", "a2 s2", "", composite(true), false},
}

// composite returns a lock with the value "token:until".
func composite(compared bool) design {
	value := func(t *try) string { return t.v + ":" + strconv.FormatInt(t.until.UnixMilli(), 10) }
	return design{
		acquire: func(t *try) bool {
			if t.yes("setnx", t.key, value(t)) {
				return true
			}
			old := t.text("get", t.key)
			_, end, found := strings.Cut(old, ":")
			if ms, _ := strconv.ParseInt(end, 10, 64); !found || t.now().UnixMilli() < ms {
				return false
			}
			if compared {
				return t.script(swap, old, value(t))
			}
			t.do("set", t.key, value(t))
			return true
		},
		release: func(t *try) bool { return t.script(dropIfEqual, value(t)) },
		extend:  func(*try) bool { return false },
	}
}

func length(s string) string { return strconv.Itoa(len(s)) }

func parity(s string) string { return strconv.Itoa(int(sha1.Sum([]byte(s))[0]) % 2) }

// names are programs that do more with names than store and compare them.
var names = []program{
	{3, "sha1 of the token", "t2 a1", "", asText(sha), false},
	{3, "sha1 of the token, lost messages", "t1 a1 l1", "", asText(sha), false},
	{3, "sha1 of the token, released by DEL", "a1 s1", "o", func() design { d := asText(sha); d.release = del; return d }(), false},
	{3, "sha1 of the token, by the server", "t2 a1", "", design{
		acquire: func(t *try) bool { return t.script(shaSet, t.v, t.ms()) },
		release: func(t *try) bool { return t.script(shaDrop, t.v) },
	}, false},
	{3, "sha1 by the server, compared with that by the client", "t2 a1", "", design{
		acquire: func(t *try) bool { return t.script(shaSet, t.v, t.ms()) },
		release: func(t *try) bool { return t.script(dropIfEqual, sha(t.v)) },
	}, false},
	{3, "the token in upper case", "t2 a1", "", asText(strings.ToUpper), false},
	{3, "the token in upper case, compared in the server", "t2 a1", "", design{acquire: setNX, release: func(t *try) bool { return t.script(upperDrop, t.v) }}, false},
	{3, "the token backwards and with a prefix", "t2 a1", "", asText(func(s string) string {
		b := []byte(s)
		slices.Reverse(b)
		return "holder/" + string(b)
	}), false},
	{3, "the token's length", "a1 s1", "o", asText(length), false},
	{3, "the token's first two letters compared in the server", "a1 s1", "o", design{acquire: setNX, release: func(t *try) bool { return t.script(prefixDrop, t.v) }}, false},
	{3, "one bit of a hash of the token", "a1 s1", "o", asText(parity), false},
	{3, "one bit of a hash of the token chooses the key", "t1", "m", design{key: func(token string) string { return "Lock:" + parity(token) }, acquire: setNX, release: dropCompared}, false},
	{3, "one bit of a hash of the token chooses between two right releases", "t1 a1", "", design{acquire: setNX, release: func(t *try) bool {
		if parity(t.v) == "0" {
			return dropWatched(t)
		}
		return dropCompared(t)
	}}, false},
	{3, "one bit of a hash of the token chooses between a right and a wrong release", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool {
		if parity(t.v) == "0" {
			return del(t)
		}
		return dropCompared(t)
	}}, false},
	{3, "the greater token takes the lock over, in the server", "t1", "m", design{acquire: func(t *try) bool { return t.script(orderTake, t.v, t.ms()) }, release: dropCompared}, false},
	{3, "the greater token takes the lock over, in the client", "t1", "m", design{acquire: func(t *try) bool {
		if v := t.text("get", t.key); v == "" || v < t.v {
			t.do("set", t.key, t.v, "px", t.ms())
			return t.text("get", t.key) == t.v
		}
		return false
	}, release: dropCompared}, false},
	{3, "neither less nor greater is equal, in the server", "t2 a1", "", design{acquire: setNX, release: func(t *try) bool { return t.script(orderDrop, t.v) }}, false},
	{3, "neither less nor greater is equal, in the client", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool { return cmp.Compare(t.text("get", t.key), t.v) == 0 && del(t) }}, false},
	{3, "not less deletes", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool {
		return t.script(`local v = redis.call('get', KEYS[1]) if v and v >= ARGV[1] then return redis.call('del', KEYS[1]) end return 0`, t.v)
	}}, false},
	{3, "the lowest token of a set holds the lock", "t1", "m", crowd(lowest), false},
	{3, "the only token of a set holds the lock", "t1", "", crowd(func(t *try) bool { return t.number("scard", t.key) == 1 }), false},
	{3, "the first of a sorted set by its name", "t1", "m", design{
		collection: true,
		acquire: func(t *try) bool {
			t.do("zadd", t.key, 0, t.v)
			t.do("pexpire", t.key, t.ms())
			if first := t.texts("zrange", t.key, 0, 0); len(first) == 1 && first[0] == t.v {
				return true
			}
			t.do("zrem", t.key, t.v)
			return false
		},
		release: func(t *try) bool { return t.yes("zrem", t.key, t.v) },
	}, false},
	{3, "the token in a hash", "t2 a1", "", design{acquire: func(t *try) bool { return t.script(hashSet, t.v, t.ms()) }, release: func(t *try) bool { return t.script(hashDrop, t.v) }, extend: func(*try) bool { return false }}, false},
	{3, "the token in a set", "t2 a1", "", design{acquire: func(t *try) bool { return t.script(setAdd, t.v, t.ms()) }, release: func(t *try) bool { return t.script(setDrop, t.v) }, extend: func(*try) bool { return false }}, false},
	{3, "the token as a field", "t2 a1", "", design{
		acquire: func(t *try) bool {
			return t.script(`if redis.call('exists', KEYS[1]) == 1 then return 0 end redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return 1`, t.v, t.ms())
		},
		release: func(t *try) bool { return t.yes("hdel", t.key, t.v) },
	}, false},
	{3, "every other token is a number", "t1 a1", "o", asText(func(s string) string {
		n := 0
		for _, b := range []byte(s) {
			n += int(b)
		}
		return strconv.Itoa(n % 3)
	}), false},
	{3, "the token's hash is cut to 16 letters", "t2 a1", "", asText(func(s string) string { return sha(s)[:16] }), false},
	{3, "a hash of the token and of the key", "t2 a1", "", asText(func(s string) string { return sha("Lock:order/" + s + sha(s)) }), false},
}

var chances = []program{
	{4, "own random tokens", "t2 a1", "", own(freshly, dropCompared), true},
	{4, "own random tokens, a lost message", "t1 a1 l1", "", own(freshly, dropCompared), true},
	{4, "own random tokens, a late message", "t1 a1 d1", "", own(freshly, dropCompared), true},
	{4, "own random tokens, released by DEL", "a1 s1", "o", own(freshly, del), true},
	{4, "own random tokens, released by GET and DEL", "a1 s1", "o", own(freshly, getDel), true},
	{4, "own random numbers", "t1 a1", "", own(func() string { return strconv.FormatUint(rand.Uint64(), 10) }, dropCompared), true},
	{4, "sha1 of own random tokens", "t1 a1", "", own(func() string { return sha(freshly()) }, dropCompared), true},
	{4, "own random token, and its prefix", "t1 a1", "", own(func() string { return "holder-" + freshly() }, dropCompared), true},
	{4, "own random token, once for each client, and SET without NX", "t1", "m", design{
		acquire: func(t *try) bool {
			t.Kept = cmp.Or(t.Kept, freshly())
			t.v = t.Kept
			if t.yes("exists", t.key) {
				return false
			}
			return t.yes("set", t.key, t.v, "px", t.ms())
		},
		release: dropCompared,
	}, true},
	{4, "own random token, once for each client", "t2 a1", "", design{
		acquire: func(t *try) bool {
			t.Kept = cmp.Or(t.Kept, freshly())
			t.v = t.Kept
			return setNX(t)
		},
		release: dropCompared,
	}, true},
	{4, "own random token and that of the environment", "t1 a1", "", design{
		acquire: func(t *try) bool { t.v += "/" + freshly(); return setNX(t) }, release: dropCompared,
	}, true},
	{4, "own random token, read back", "t1 a1", "", design{
		acquire: func(t *try) bool { t.v = freshly(); setNX(t); return t.text("get", t.key) == t.v }, release: dropCompared,
	}, true},
	{4, "own random token in a hash", "t1 a1", "", design{
		acquire: func(t *try) bool { t.v = freshly(); return t.script(hashSet, t.v, t.ms()) },
		release: func(t *try) bool { return t.script(hashDrop, t.v) },
		extend:  func(*try) bool { return false },
	}, true},
	{4, "a coin chooses a wrong release", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool {
		if rand.IntN(2) == 0 {
			return del(t)
		}
		return dropCompared(t)
	}}, true},
}

// orders are programs with replies whose order the server does not define.
var orders = []program{
	{5, "the first of SMEMBERS holds the lock", "t1", "m", crowd(func(t *try) bool { return t.texts("smembers", t.key)[0] == t.v }), false},
	{5, "the last of SMEMBERS holds the lock", "t1", "m", crowd(func(t *try) bool { all := t.texts("smembers", t.key); return all[len(all)-1] == t.v }), false},
	{5, "the only one of SMEMBERS holds the lock", "t1", "", crowd(func(t *try) bool { return len(t.texts("smembers", t.key)) == 1 }), false},
	{5, "SRANDMEMBER chooses who holds the lock", "t1", "m", crowd(func(t *try) bool { return t.text("srandmember", t.key) == t.v }), true},
	{5, "SMEMBERS in a script, the first", "t1", "m", crowd(func(t *try) bool {
		return t.script(`return redis.call('smembers', KEYS[1])[1] == ARGV[1] and 1 or 0`, t.v)
	}), true},
	{5, "SMEMBERS in a script, the number", "t1", "", crowd(func(t *try) bool {
		return t.script(`return #redis.call('smembers', KEYS[1]) == 1 and 1 or 0`)
	}), true},
	{5, "HGETALL, read by name", "t1 a1", "", design{
		acquire: func(t *try) bool { return t.script(hashSet, t.v, t.ms()) },
		release: func(t *try) bool {
			all := t.texts("hgetall", t.key)
			at := slices.Index(all, "owner")
			return at >= 0 && all[at+1] == t.v && t.script(hashDrop, t.v)
		},
		extend: func(*try) bool { return false },
	}, false},
	{5, "KEYS, the number", "t1", "", design{
		keys:    []string{},
		acquire: func(t *try) bool { return t.script(setWithExpiry, t.v, t.ms()) },
		release: func(t *try) bool { return len(t.texts("hkeys", "Nothing:here")) == 0 && dropCompared(t) },
	}, false},
}

// limitsAndDeaths are programs with time limits, and programs whose clients die.
var limitsAndDeaths = []program{
	{6, "SET NX PX within a limit", "a2", "", within(100*time.Millisecond, setNX, dropCompared), false},
	{6, "no answer in time is taken for the lock", "a2", "m", within(100*time.Millisecond, func(t *try) bool { ok, none := silent(t, setNX); return ok || none }, dropCompared), false},
	{6, "SETNX without an expiry, and a limit", "a2", "p", within(100*time.Millisecond, func(t *try) bool { return t.yes("setnx", t.key, t.v) }, dropCompared), false},
	{6, "EXPIRE that is not sent in time", "a2", "p", within(100*time.Millisecond, func(t *try) bool { return t.yes("setnx", t.key, t.v) && renewBlindly(t) }, dropCompared), false},
	{6, "no answer in time: DEL", "a2 c0", "o", within(100*time.Millisecond, setNX, func(t *try) bool {
		ok, none := silent(t, dropCompared)
		if none {
			t.ctx = context.WithoutCancel(t.ctx)
			return del(t)
		}
		return ok
	}), false},
	{6, "no answer in time: compare and DEL", "a2", "", within(100*time.Millisecond, setNX, func(t *try) bool {
		ok, none := silent(t, dropCompared)
		if none {
			t.ctx = context.WithoutCancel(t.ctx)
			return dropCompared(t)
		}
		return ok
	}), false},
	{6, "the dead are waited for as long as their lease", "c1 t1", "", sleeper(lease+time.Millisecond, setNX), false},
	{6, "a death before the expiry is set", "c1 t1", "p", sleeper(lease+time.Millisecond, func(t *try) bool { return t.yes("setnx", t.key, t.v) && renewBlindly(t) }), false},
	{6, "whoever waited long enough takes over", "t1 a1", "m", sleeper(lease/2, func(t *try) bool {
		if t.Count++; t.Count > 1 {
			return t.yes("set", t.key, t.v, "px", t.ms())
		}
		return setNX(t)
	}), false},
	{6, "the dead in a line block it", "c1", "p", line(false), false},
	{6, "the dead in a line are forgotten once nobody comes any more", "c1", "p", line(true), false},
}

// sleeper returns a lock that tries to acquire twice, and sleeps in between.
func sleeper(d time.Duration, acquire func(*try) bool) design {
	return design{spans: []time.Duration{d}, release: dropCompared, acquire: func(t *try) bool {
		if acquire(t) {
			return true
		}
		if err := t.env.Clock.Sleep(t.ctx, d); err != nil {
			return false
		}
		t.start = t.now()
		t.until = t.start.Add(t.ttl)
		return acquire(t)
	}}
}

// line returns a lock that is held by the head of a list.
func line(expires bool) design {
	return design{
		collection: true,
		acquire: func(t *try) bool {
			if expires {
				t.script(`redis.call('rpush', KEYS[1], ARGV[1]) return redis.call('pexpire', KEYS[1], ARGV[2])`, t.v, t.ms())
			} else {
				t.do("rpush", t.key, t.v)
			}
			if t.text("lindex", t.key, 0) == t.v && t.number("llen", t.key) == 1 {
				return true
			}
			t.do("lrem", t.key, 0, t.v)
			return false
		},
		release: func(t *try) bool { return t.yes("lrem", t.key, 0, t.v) },
		extend:  func(*try) bool { return false },
	}
}

// keys are locks under other keys.
var keys = []program{
	{7, "another key, compare and DEL", "t2 a1", "", under("mutex/order", dropCompared), false},
	{7, "another key, DEL", "t1 a1", "o", under("mutex/order", del), false},
	{7, "the bare name, DEL", "t1 a1", "o", under("order", del), false},
	{7, "a key in braces, GET and DEL", "t1 a1", "o", under("{order}:lock", getDel), false},
	{7, "a hash of the name, DEL", "t1 a1", "o", under(sha("order"), del), false},
	{7, "a field of a hash of all locks, cleared blindly", "t1", "", fielded(), false},
	{7, "another key, extended blindly", "t1 a2 s2 hold", "o", func() design { d := under("lk", dropCompared); d.extend = renewBlindly; return d }(), false},
	{7, "another key, a list of one", "t1 a1", "o", design{
		key: func(string) string { return "queue:of:holders" },
		acquire: func(t *try) bool {
			return t.script(`if redis.call('exists', KEYS[1]) == 1 then return 0 end redis.call('rpush', KEYS[1], ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1`, t.v, t.ms())
		},
		release: func(t *try) bool { return t.yes("lpop", t.key) },
		extend:  func(*try) bool { return false },
	}, false},
	{7, "two keys, both dropped blindly", "t1 a1", "o", design{
		key:     func(string) string { return "l1" },
		keys:    []string{"l2"},
		acquire: func(t *try) bool { return setNX(t) && t.yes("set", "l2", t.v, "px", t.ms()) },
		release: func(t *try) bool { return t.yes("del", "l1", "l2") },
	}, false},
}

// fielded returns a lock that is a field of a hash without an expiry.
func fielded() design {
	return design{
		key:     func(string) string { return "locks" },
		acquire: func(t *try) bool { return t.yes("hsetnx", t.key, "order", t.v) },
		release: func(t *try) bool { return t.yes("hdel", t.key, "order") },
		extend:  func(*try) bool { return true },
	}
}

// days are programs with keys that last for a day or for decades.
var days = []program{
	{8, "each attempt is noted for a day", "t1 a1", "", remembering(day, setNX, dropCompared), false},
	{8, "each attempt is noted for a day, and a death", "t1 c1 a1", "", remembering(day, setNX, dropCompared), false},
	{8, "each attempt is noted for a day, DEL", "t1 a1", "o", remembering(day, setNX, del), false},
	{8, "each attempt is noted for a week, GET and DEL", "t1 a1", "o", remembering(7*day, setNX, getDel), false},
	{8, "each attempt is noted for 55 years", "t1 a1", "", remembering(years, setNX, dropCompared), false},
	{8, "a lease of a day, and a death", "t1 c1", "p", design{acquire: func(t *try) bool { return t.yes("set", t.key, t.v, "nx", "ex", 86400) }, release: dropCompared}, false},
	{8, "a count that lasts for a day", "t2 a1", "", design{release: dropCompared, acquire: func(t *try) bool {
		t.do("incr", "Count:order")
		t.do("expire", "Count:order", 86400)
		return setNX(t)
	}}, false},
}

// connections are programs that use the state of a connection.
var connections = []program{
	{11, "WATCH, compare and DEL", "t1 a1", "", watching(dropCompared), false},
	{11, "WATCH, a late message", "t1 d1", "", watching(dropCompared), false},
	{11, "WATCH twice, a late message", "t1 a1 d1", "", watching(dropWatched), false},
	{11, "WATCH twice, a lost message", "t1 a1 l1", "", watching(dropWatched), false},
	{11, "WATCH, DEL", "t1 a1", "o", watching(del), false},
	{11, "WATCH, then UNWATCH before the transaction", "t1", "m", unwatched(true), false},
	{11, "WATCH, then UNWATCH and WATCH again", "t1", "", unwatched(false), false},
	{11, "MULTI without WATCH", "t1", "m", design{release: dropCompared, acquire: func(t *try) bool {
		if t.text("get", t.key) != "" {
			return false
		}
		_, err := t.r.TxPipelined(t.ctx, func(p redis.Pipeliner) error { p.Do(t.ctx, "set", t.key, t.v, "px", t.ms()); return nil })
		return err == nil
	}}, false},
	{11, "WATCH of another key", "t1", "m", design{release: dropCompared, acquire: func(t *try) bool {
		key := t.key
		t.key = "another"
		defer func() { t.key = key }()
		return t.watched(func(tx *redis.Tx) [][]any {
			if on(t.ctx, tx, "get", key) != nil {
				return nil
			}
			return [][]any{{"set", key, t.v, "px", t.ms()}}
		})
	}}, false},
}

// unwatched returns a lock that sends UNWATCH before its transaction. Unless wrong is set, it then watches and checks
// the key again.
func unwatched(wrong bool) design {
	return design{release: dropCompared, acquire: func(t *try) bool {
		return t.watched(func(tx *redis.Tx) [][]any {
			if on(t.ctx, tx, "get", t.key) != nil {
				return nil
			}
			on(t.ctx, tx, "unwatch")
			if !wrong {
				on(t.ctx, tx, "watch", t.key)
				if on(t.ctx, tx, "get", t.key) != nil {
					return nil
				}
			}
			return [][]any{{"set", t.key, t.v, "px", t.ms()}}
		})
	}}
}

// large are programs whose searches cannot finish in their time. A search may or may not find that a lock is wrong, but
// must not accuse a correct lock, nor pass any.
var large = []program{
	{9, "SET NX PX, too much", "three t3 a3 s3 l1 d1 c1 quick", "", design{acquire: setNX, release: dropCompared}, true},
	{9, "DEL, too much", "three t3 a3 s3 l1 d1 c1 quick", "o", design{acquire: setNX, release: del}, true},
	{9, "GET and DEL, too much", "three t3 a3 s3 l1 d1 c1 quick", "o", design{acquire: setNX, release: getDel}, true},
	{9, "the lease from the answer, too much", "three t3 a3 s3 l1 d1 quick", "m", until(func(t *try, _ time.Time) time.Time { return t.now().Add(t.ttl) }), true},
	{9, "sha1 of the token, too much", "three t3 a3 s3 l1 d1 quick", "", asText(sha), true},
	{9, "timestamps, too much", "three t3 a3 s3 l1 quick", "", stamped(time.Millisecond, swapIn, dropStamp), true},
	{9, "WATCH, too much", "three t3 a3 s3 l1 d1 quick", "", watching(dropWatched), true},
}

// masters calls f on each master in turn, and returns how many said yes.
func (t *try) masters(f func(*try) bool) (yes int) {
	for _, r := range t.env.Redis {
		u := *t
		u.r = r
		if ok, err := u.run(f); ok && err == nil {
			yes++
		}
	}
	return yes
}

// majority returns a lock on several masters, of which n must grant it.
func majority(n int, undo func(*try) bool) design {
	return design{
		acquire: func(t *try) bool {
			if t.masters(setNX) >= n {
				return true
			}
			t.masters(undo)
			return false
		},
		release: func(t *try) bool { return t.masters(undo) > 0 },
	}
}

// redlocks are locks on three masters.
var redlocks = []program{
	{10, "a majority", "masters t1", "", majority(2, dropCompared), true},
	{10, "a majority, a lost message", "masters t1 l1", "", majority(2, dropCompared), true},
	{10, "a majority, a late message", "masters t1 d1", "", majority(2, dropCompared), true},
	{10, "a majority, a death", "masters t1 c1", "", majority(2, dropCompared), true},
	{10, "a majority, and time", "masters t1 a1 s1", "", majority(2, dropCompared), true},
	{10, "one of three", "masters t1", "m", majority(1, dropCompared), true},
	{10, "a majority, undone by DEL", "masters t2", "m", majority(2, del), true},
	{10, "all of three", "masters t1", "", majority(3, dropCompared), true},
}

// mixed are typical locks, correct and wrong.
var mixed = []program{
	{0, "SET NX PX, compare and DEL", "t2 a1 s1", "", design{acquire: setNX, release: dropCompared}, false},
	{0, "SET NX PX, a late message", "t2 a1 d1", "", design{acquire: setNX, release: dropCompared}, false},
	{0, "SET NX PX, a lost message and a death", "t1 a1 l1 c1", "", design{acquire: setNX, release: dropCompared}, false},
	{0, "SETNX, PEXPIRE", "t1 a1 s1", "", design{acquire: func(t *try) bool { return t.yes("setnx", t.key, t.v) && renewBlindly(t) }, release: dropCompared}, false},
	{0, "SETNX, PEXPIRE, and a lost message", "t1 l1", "p", design{acquire: func(t *try) bool { return t.yes("setnx", t.key, t.v) && renewBlindly(t) }, release: dropCompared}, false},
	{0, "SETNX and PEXPIRE in a script", "t1 a1 l1 c1", "", design{acquire: func(t *try) bool { return t.script(setWithExpiry, t.v, t.ms()) }, release: dropCompared}, false},
	{0, "GET, SET", "t1", "m", design{acquire: func(t *try) bool { return t.text("get", t.key) == "" && t.yes("set", t.key, t.v, "px", t.ms()) }, release: dropCompared}, false},
	{0, "GET, SET, GET", "t1", "m", design{acquire: func(t *try) bool {
		return t.text("get", t.key) == "" && t.yes("set", t.key, t.v, "px", t.ms()) && t.text("get", t.key) == t.v
	}, release: dropCompared}, false},
	{0, "INCR, PEXPIRE, DEL", "t1 a1", "o", design{acquire: func(t *try) bool { return t.number("incr", t.key) == 1 && renewBlindly(t) }, release: del}, false},
	{0, "INCR, DECR", "t1 c1", "p", design{collection: true, acquire: func(t *try) bool {
		if t.number("incr", t.key) == 1 {
			return true
		}
		t.do("decr", t.key)
		return false
	}, release: func(t *try) bool { t.do("decr", t.key); return true }}, false},
	{0, "a renewal that compares", "t1 a2 s2", "", renewing(true), false},
	{0, "a renewal that does not", "t1 a2 s2", "o", renewing(false), false},
	{0, "an expiry set beside", "t1", "", beside(true), false},
	{0, "an expiry set beside, and a death", "t1 c1", "p", beside(true), false},
	{0, "extended by GET and PEXPIRE", "t1 a2 s2 hold", "o", design{acquire: setNX, release: dropCompared, extend: func(t *try) bool {
		return t.text("get", t.key) == t.v && renewBlindly(t)
	}}, false},
	{0, "extended by compare and PEXPIRE", "t1 a2 s2 hold", "", design{acquire: setNX, release: dropCompared}, false},
	{0, "extended by SET XX", "t1 a2 s2 hold", "o", design{acquire: setNX, release: dropCompared, extend: func(t *try) bool { return t.yes("set", t.key, t.v, "xx", "px", t.ms()) }}, false},
	{0, "one token for all rounds", "t2 a1 d1", "m", design{acquire: func(t *try) bool { t.Kept = cmp.Or(t.Kept, t.v); t.v = t.Kept; return setNX(t) }, release: dropCompared}, false},
	{0, "one token for all rounds, and nothing late", "t2 a1", "", design{acquire: func(t *try) bool { t.Kept = cmp.Or(t.Kept, t.v); t.v = t.Kept; return setNX(t) }, release: dropCompared}, false},
	{0, "every second release forgets to compare", "t2 a1", "o", design{acquire: setNX, release: func(t *try) bool {
		if t.Count++; t.Count == 2 {
			return del(t)
		}
		return dropCompared(t)
	}}, false},
	{0, "no answer is taken for the lock", "t1 l1", "m", design{acquire: func(t *try) bool { ok, none := silent(t, setNX); return ok || none }, release: dropCompared}, false},
	{0, "no answer: try again with the same token", "t1 l1", "", design{acquire: again(false), release: dropCompared}, false},
	{0, "no answer: try again, and take what stands there for one's own", "t1 l1", "m", design{acquire: again(true), release: dropCompared}, false},
	{0, "DEL in a pipeline with GET", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool {
		p := t.r.Pipeline()
		v := p.Do(t.ctx, "get", t.key)
		p.Do(t.ctx, "del", t.key)
		_, err := p.Exec(t.ctx)
		if err != nil && !errors.Is(err, redis.Nil) {
			panic(failure{err})
		}
		return fmt.Sprint(v.Val()) == t.v
	}}, false},
}

func again(trusting bool) func(*try) bool {
	return func(t *try) bool {
		ok, none := silent(t, setNX)
		if !none {
			return ok
		}
		if trusting {
			return t.text("get", t.key) != ""
		}
		return t.text("get", t.key) == t.v
	}
}

// renewing returns a lock that a goroutine renews once during the section.
func renewing(compares bool) design {
	return design{
		spans: []time.Duration{lease / 2},
		acquire: func(t *try) bool {
			if !setNX(t) {
				return false
			}
			ctx, cancel := context.WithCancel(t.ctx)
			joined := t.env.Go(func(context.Context) {
				u := *t
				u.ctx = ctx
				_, _ = u.run(func(u *try) bool {
					if u.env.Clock.Sleep(ctx, u.ttl/2) != nil {
						return false
					}
					if compares {
						return extendCompared(u)
					}
					return renewBlindly(u)
				})
			})
			t.stop = func() { cancel(); _ = joined(context.WithoutCancel(t.ctx)) }
			return true
		},
		release: func(t *try) bool { t.stop(); return dropCompared(t) },
	}
}

// beside returns a lock that sets the expiry in a goroutine.
func beside(joins bool) design {
	return design{
		acquire: func(t *try) bool {
			if !t.yes("setnx", t.key, t.v) {
				return false
			}
			joined := t.env.Go(func(ctx context.Context) {
				u := *t
				u.ctx = ctx
				_, _ = u.run(renewBlindly)
			})
			if joins {
				_ = joined(t.ctx)
			}
			return true
		},
		release: dropCompared,
	}
}

// besides returns a lock that does something more in Acquire and in Release.
func besides(acquired, released func(*try)) design {
	return design{
		acquire: func(t *try) bool {
			if !setNX(t) {
				return false
			}
			acquired(t)
			return true
		},
		release: func(t *try) bool {
			ok := dropCompared(t)
			released(t)
			return ok
		},
	}
}

// counting returns a lock that also sends the command args in Acquire and in Release.
func counting(args ...any) design {
	count := func(t *try) { t.do(args...) }
	return besides(count, count)
}

const (
	// The state of the lock is a field; the owner's name stays in the hash when the lock is free.
	stateTake = `if redis.call('hget', KEYS[1], 'locked') == '1' then return 0 end redis.call('hset', KEYS[1], 'locked', '1', 'owner', ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1`
	stateDrop = `if redis.call('hget', KEYS[1], 'owner') == ARGV[1] and redis.call('hget', KEYS[1], 'locked') == '1' then return redis.call('hset', KEYS[1], 'locked', '0') + 1 end return 0`
	// The release writes a mark, which the next client that asks finds.
	doneTake = `if redis.call('exists', KEYS[1]) == 1 and redis.call('hget', KEYS[1], 'done') ~= 'yes' then return 0 end redis.call('del', KEYS[1]) redis.call('hset', KEYS[1], 'owner', ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2]) return 1`
	flagTake = `if redis.call('del', 'freed') == 0 and redis.call('exists', KEYS[1]) == 1 then return 0 end redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1`
	flagDrop = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', 'freed') return redis.call('del', KEYS[1]) end return 0`
	// A field names the very first owner.
	foundTake = `local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000) local u = redis.call('hget', KEYS[1], 'until') if u and tonumber(u) > now then return 0 end redis.call('hsetnx', KEYS[1], 'creator', ARGV[1]) redis.call('hset', KEYS[1], 'until', now + ARGV[2]) return redis.call('hincrby', KEYS[1], 'generation', 1)`
	foundDrop = `if redis.call('hget', KEYS[1], 'generation') ~= ARGV[1] then return 0 end redis.call('hset', KEYS[1], 'until', 0) return 1`
	// There are two keys; the second one is used once a client has had to wait.
	aliasTake = `if redis.call('exists', KEYS[1], 'slow') > 0 then redis.call('set', 'waited', 1, 'PX', 9000) return 0 end local key = KEYS[1] if redis.call('exists', 'waited') == 1 then key = 'slow' end redis.call('set', key, ARGV[1], 'PX', ARGV[2]) return 1`
	aliasDrop = `local n = 0 for _, key in ipairs({KEYS[1], 'slow'}) do if redis.call('get', key) == ARGV[1] then n = n + redis.call('del', key) end end return n`
	// Entries are numbers; an entry that has run out stays until its owner removes it.
	ticketTake = `local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000) if redis.call('zcount', KEYS[1], '(' .. string.format('%.0f', now), '+inf') > 0 then return 0 end local n = redis.call('incr', 'tickets') redis.call('zadd', KEYS[1], now + ARGV[2], n) return n`
	// The lock and the statistics are fields of the same hash.
	fieldTake = `local t = redis.call('time') local now = t[1] * 1000 + math.floor(t[2] / 1000) local u = redis.call('hget', KEYS[1], 'until') if u and tonumber(u) > now then return 0 end redis.call('hset', KEYS[1], 'owner', ARGV[1], 'until', now + ARGV[2]) return 1`
	fieldDrop = `redis.call('hincrby', KEYS[1], 'releases', 1) if redis.call('hget', KEYS[1], 'owner') ~= ARGV[1] then return 0 end return redis.call('hdel', KEYS[1], 'owner', 'until')`
	strange   = `local v = redis.call('get', KEYS[1]) if not v then return 0 end if v == ARGV[1] then return redis.call('del', KEYS[1]) end redis.call('set', KEYS[1], 'x:' .. v, 'KEEPTTL') return 0`
	markAny   = `local v = redis.call('get', KEYS[1]) if not v then return 0 end redis.call('set', KEYS[1], 'released:' .. v, 'PX', 1) return 1`
	markOwn   = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], 'released:' .. ARGV[1], 'PX', 1) return 1`
)

// numbered returns a lock that is taken by a script that replies with a number; the number is its token.
func numbered(take string, release func(*try) bool) design {
	return design{
		keys: []string{"tickets"}, collection: true, release: release,
		acquire: func(t *try) bool {
			n := t.number("eval", take, 1, t.key, t.v, t.ms())
			t.v = strconv.FormatInt(n, 10)
			return n > 0
		},
		extend: func(*try) bool { return false },
	}
}

// byScripts returns a lock that is taken by one script and released by another.
func byScripts(take, drop string) design {
	return design{
		acquire: func(t *try) bool { return t.script(take, t.v, t.ms()) },
		release: func(t *try) bool { return t.script(drop, t.v) },
		extend:  func(*try) bool { return false },
	}
}

// blindly returns a lock that is released by one command without a condition.
func blindly(take string, args ...any) design {
	d := byScripts(take, "")
	d.release = func(t *try) bool {
		all := slices.Clone(args)
		if all[1] == nil {
			all[1] = t.key
		}
		t.do(all...)
		return true
	}
	return d
}

// owners are programs in which a release changes data. A search must know which data is the owner's.
var owners = []program{
	{13, "a count of operations", "t1 a1 l1", "", counting("incr", "ops"), false},
	{13, "a count of operations in a hash", "t2 a1", "", counting("hincrby", "metrics", "ops", 1), false},
	{13, "a log of operations", "t1 a1", "", counting("lpush", "log", "ops"), false},
	{13, "the last operation", "t1 a1", "", besides(func(t *try) { t.do("set", "last", t.v) }, func(t *try) { t.do("set", "last", "none") }), false},
	{13, "a count of users", "t1 a1", "", besides(func(t *try) { t.do("incr", "users") }, func(t *try) { t.do("decr", "users") }), false},
	{13, "a count of operations, extended", "t1 a2 s2 hold", "", func() design {
		d := counting("incr", "ops")
		d.extend = func(t *try) bool { t.do("incr", "ops"); return extendCompared(t) }
		return d
	}(), false},
	{13, "a count of operations, and DEL", "t1 a1", "o", besides(func(t *try) { t.do("incr", "ops") }, func(t *try) { t.do("incr", "ops"); del(t) }), false},
	{13, "tickets, one's own taken away", "t1 a2", "", numbered(ticketTake, func(t *try) bool { return t.yes("zrem", t.key, t.v) }), true},
	{13, "tickets, all taken away", "t1 a1", "o", numbered(ticketTake, func(t *try) bool { return t.yes("del", t.key) }), true},
	{13, "tickets, the latest taken away", "t1 a1", "o", numbered(ticketTake, func(t *try) bool { return t.yes("zremrangebyrank", t.key, -1, -1) }), true},
	{13, "statistics beside a hash of the token", "t1 a2", "", func() design {
		d := byScripts(fieldTake, fieldDrop)
		d.acquire = func(t *try) bool { return t.script(fieldTake, sha(t.v), t.ms()) }
		d.release = func(t *try) bool { return t.script(fieldDrop, sha(t.v)) }
		return d
	}(), true},
	{13, "statistics beside the token", "t1 a1", "", byScripts(fieldTake, fieldDrop), true},
	{13, "the value of a stranger is marked", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool { return t.script(strange, t.v) }}, false},
	{13, "any value is marked, and ends soon", "t1 a1", "o", design{acquire: setNX, release: func(t *try) bool { return t.script(markAny, t.v) }}, false},
	{13, "one's own value is marked, and ends soon", "t1 a1", "", design{acquire: setNX, release: func(t *try) bool { return t.script(markOwn, t.v) }}, false},
	{13, "a field says whether it is free", "t1 a1", "", byScripts(stateTake, stateDrop), false},
	{13, "a field says whether it is free, set blindly", "t1 a1", "o", blindly(stateTake, "hset", nil, "locked", "0"), false},
	{13, "a field says that it is done, set blindly", "t1 a1", "o", blindly(doneTake, "hset", nil, "done", "yes"), false},
	{13, "a field names the first owner", "t1 a1", "", numbered(foundTake, func(t *try) bool { return t.script(foundDrop, t.v) }), true},
	{13, "a field names the first owner, freed blindly", "t1 a1", "o", numbered(foundTake, func(t *try) bool { t.do("hset", t.key, "until", 0); return true }), true},
	{13, "a flag elsewhere, set blindly", "t1 a1", "o", blindly(flagTake, "set", "freed", 1), true},
	{13, "a flag elsewhere, compare and DEL", "t1 a1", "", byScripts(flagTake, flagDrop), true},
	{13, "another key once somebody waits", "t1 a1", "", byScripts(aliasTake, aliasDrop), true},
	{13, "another key once somebody waits, DEL of both", "t2 a1", "o", blindly(aliasTake, "del", nil, "slow"), true},
}
