package mutants

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// joinLine takes the lock for the head of the line, and puts others into the line.
//
// KEYS[1] the lock, KEYS[2] the line by place, KEYS[3] until when each waiter is kept, KEYS[4] the last place. ARGV[1]
// the token of the whole acquire, ARGV[2] the lease and ARGV[3] the patience in ms. Replies 1 granted, 2 joined, 0
// waiting.
const joinLine = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
while head and head ~= ARGV[1] do
  local till = tonumber(redis.call('HGET', KEYS[3], head) or '0')
  if till > now then break end
  redis.call('ZREM', KEYS[2], head)
  redis.call('HDEL', KEYS[3], head)
  head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
end
if redis.call('EXISTS', KEYS[1]) == 0 and (not head or head == ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('HDEL', KEYS[3], ARGV[1])
  return 1
end
local joined = 0
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[4]), ARGV[1])
  joined = 2
end
redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f', now + ARGV[3]))
return joined
`

// leaveLine is for a client that gives up.
const leaveLine = `
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`

// line is a lock that serves its waiters first come, first served.
type line struct {
	*client
	join, leave *redis.Script
}

// inLine makes a variant from the two scripts.
func inLine(join, leave string) lockimpl.Variant {
	v := whole(func(env variant.Env) lockimpl.Locker {
		return line{newClient(steps{}, env), redis.NewScript(join), redis.NewScript(leave)}
	})
	v.Promises = append([]variant.Property{variant.FIFO}, usual...)
	v.Needs.ServerClock = true
	return v
}

func (f line) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	keys := []string{f.key(name), "Line:" + f.key(name), "Till:" + f.key(name), "Last:" + f.key(name)}
	token, joined := f.env.Token(), time.Time{}
	f.client.token = func(*client) string { return token }
	f.client.attempt = func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		n, err := f.join.Run(ctx, c.redis(), keys, token, o.TTL.Milliseconds(), max(5*o.RetryEvery, time.Second).Milliseconds()).Int64()
		if n == 2 {
			joined = c.env.Clock.Now()
		}
		return n == 1, err
	}
	l, err := f.client.Acquire(ctx, name, o)
	if err != nil {
		ctx, cancel := f.env.Clock.WithTimeout(context.WithoutCancel(ctx), o.TTL)
		defer cancel()
		if left := f.leave.Run(ctx, f.redis(), keys, token).Err(); left != nil {
			return lockimpl.Lock{}, left
		}
	}
	l.Joined = joined
	return l, err
}

// lineMutants serve in another order, or wait for the dead.
func lineMutants() []Lock {
	order, progress := entry.Breaks(variant.FIFO), entry.Breaks(variant.Progress)
	return []Lock{
		{Entry: entry.New("line-waits-for-dead", "the time for which a waiter is waited for is counted from the last waiter's, so it drifts, and a dead head blocks the line", progress, "https://github.com/redisson/redisson/issues/1104"),
			Variant: inLine(entry.Changed(joinLine, `redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f', now + ARGV[3]))`, `
				local last = now
				for _, t in ipairs(redis.call('HVALS', KEYS[3])) do last = math.max(last, tonumber(t)) end
				redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f', last + ARGV[3]))`), leaveLine)},
		{Entry: entry.New("line-drops-living", "a waiter's heartbeat is written only when it joins, so one that waits for longer than the patience goes to the end", order, "https://github.com/redisson/redisson/issues/3004"),
			Variant: inLine(entry.Changed(joinLine, `redis.call('HSET', KEYS[3], ARGV[1], string`, `redis.call('HSETNX', KEYS[3], ARGV[1], string`), leaveLine)},
		{Entry: entry.New("line-barging", "a client that finds the lock free takes it, even if others stand in line", order, ""),
			Variant: inLine(entry.Changed(joinLine, `and (not head or head == ARGV[1]) then`, `then`), leaveLine)},
		{Entry: entry.New("line-by-second", "places are whole seconds, and within one the tokens decide", order, ""),
			Variant: inLine(entry.Changed(joinLine, `redis.call('INCR', KEYS[4])`, `math.floor(now / 1000)`), leaveLine)},
		{Entry: entry.New("line-last-first", "the line is served from its end", order, ""),
			Variant: inLine(entry.Changed(joinLine, `redis.call('INCR', KEYS[4])`, `-redis.call('INCR', KEYS[4])`), leaveLine)},
		{Entry: entry.New("line-by-length", "a place is the length of the line, so it repeats when a client has left", order, ""),
			Variant: inLine(entry.Changed(joinLine, `redis.call('INCR', KEYS[4])`, `redis.call('ZCARD', KEYS[2])`), leaveLine)},
		{Entry: entry.New("line-leaver-pops-head", "a client that gives up removes the head of the line", order, ""),
			Variant: inLine(joinLine, entry.Changed(leaveLine, `redis.call('ZREM', KEYS[2], ARGV[1])`, `redis.call('ZPOPMIN', KEYS[2])`))},
		{Entry: entry.New("line-leaver-frees", "a client that gives up frees the lock, in case it was granted in between", entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease), ""),
			Variant: inLine(joinLine, entry.Changed(leaveLine, `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`, `redis.call('DEL', KEYS[1])`))},
		{Entry: entry.New("line-patience-of-looker", "a waiter counts as dead after the patience of the client that looks, so one that polls seldom loses its place to one that polls often", order, ""),
			Variant: inLine(strings.Replace(entry.Changed(joinLine, `if till > now then break end`, `if till + ARGV[3] > now then break end`), `string.format('%.0f', now + ARGV[3])`, `string.format('%.0f', now)`, 1), leaveLine)},
		{Entry: entry.New("line-of-sixteen", "the line has sixteen places, and clients that come later get none", order, ""),
			Variant: inLine(entry.Changed(joinLine, `if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then`, `if redis.call('ZCARD', KEYS[2]) >= 16 and not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then`), leaveLine)},
		{Entry: entry.New("line-reaped-blindly", "a waiter that finds the head of the line dead removes what is the head by then", order, ""),
			Variant: inList(func(ctx context.Context, rdb redis.UniversalClient, line, _ string) error {
				return rdb.LPop(ctx, line).Err()
			})},
		{Entry: entry.New("line-never-reaped", "the dead keep their place", progress, ""),
			Variant: inLine(entry.Changed(joinLine, `if till > now then break end`, `do break end`), leaveLine)},
	}
}

// The scripts of a lock that its holder may take again, and must release as often.
// KEYS[1] is a hash, ARGV[1] the token. In an attempt, ARGV[1] is a new token, used if no
// client holds the lock, and ARGV[3] is the token of the client's last grant, used if that
// grant is still there. An attempt replies 1 if the first counts, and 2 if the second
// does.
const (
	reenter = `
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[3] then return 0 end
if not owner then redis.call('HSET', KEYS[1], 'owner', ARGV[1]) end
redis.call('HINCRBY', KEYS[1], 'count', 1)
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return owner and 2 or 1
`
	reextend = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[1], 'count') == '1' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
`
	leave = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) end
return 1
`
)

// reentrant makes a variant from the three. The server decides that no client holds the lock, and then the token is
// new: by the client's clock, a late release would fit the client's next grant.
func reentrant(enter, extend, leave string) lockimpl.Variant {
	script := redis.NewScript(enter)
	return of(steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			held := c.tokens[l.Key]
			n, err := script.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds(), held).Int64()
			if err != nil || n == 0 {
				return false, err
			}
			if n == 2 {
				l.Token = held
			}
			c.tokens[l.Key] = l.Token
			return true, nil
		},
		extend:  extendBy(extend),
		release: releaseBy(leave),
	})
}

// counted returns a lock whose client counts its own holds.
func counted() steps {
	held := func(c *client, name string) (token string, times int) {
		token, text, _ := strings.Cut(c.tokens[name], " ")
		times, _ = strconv.Atoi(text)
		return token, times
	}
	return steps{
		attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
			token, times := held(c, l.Key)
			if times > 0 {
				l.Token = token
			}
			ok, err := setNX(ctx, c, l, o)
			if err != nil {
				return false, err
			}
			if ok {
				times = 0
			} else {
				value, err := get(ctx, c, l.Key)
				if err != nil || value != l.Token {
					return false, err
				}
				if _, err := set(ctx, c, l, "", o.TTL); err != nil {
					return false, err
				}
			}
			c.tokens[l.Key] = l.Token + " " + strconv.Itoa(times+1)
			return true, nil
		},
		release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
			token, times := held(c, l.Key)
			if token == l.Token && times > 1 {
				c.tokens[l.Key] = token + " " + strconv.Itoa(times-1)
				value, err := get(ctx, c, l.Key)
				return value == token, err
			}
			if token == l.Token {
				delete(c.tokens, l.Key)
			}
			return releaseBy(compareDelete)(ctx, c, l)
		},
	}
}

// reentryMutants fail when their holder takes them again.
func reentryMutants() []Lock {
	both := entry.Breaks(variant.MutualExclusion, variant.OwnerOnlyRelease)
	return []Lock{
		{Entry: entry.New("reentry-first-release-frees", "the first of two releases frees the lock", both, ""),
			Variant: reentrant(reenter, reextend, entry.Changed(leave, `if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) end`, `redis.call('DEL', KEYS[1])`))},
		{Entry: entry.New("reentry-shortens-lease", "taking the lock again with a shorter lease cuts the longer one", entry.Breaks(variant.MutualExclusion), ""),
			Variant: reentrant(entry.Changed(reenter, `if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`, `redis.call('PEXPIRE', KEYS[1], ARGV[2])`), reextend, leave)},
		{Entry: entry.New("reentry-extend-shortens", "an extend of one of two grants cuts the longer lease of the other", entry.Breaks(variant.MutualExclusion), ""),
			Variant: reentrant(reenter, entry.Changed(reextend, `if redis.call('HGET', KEYS[1], 'count') == '1' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`, `redis.call('PEXPIRE', KEYS[1], ARGV[2])`), leave)},
		{Entry: entry.New("reentry-extend-of-two-lost", "an extend is told that the lock is lost while its holder has it twice", entry.Breaks(variant.MutualExclusion), ""),
			Variant: reentrant(reenter, entry.Changed(reextend, `redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then`, `redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'count') ~= '1' then`), leave)},
		{Entry: entry.New("reentry-release-renews", "the release of one of two grants begins a lease of thirty seconds for the other", entry.Breaks(variant.Progress), ""),
			Variant: reentrant(reenter, reextend, entry.Changed(leave, `if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) end`, `if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], 30000) end`))},
		{Entry: entry.New("reentry-release-of-others", "a release counts down before it looks whose lock it is", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: reentrant(reenter, reextend, `
				local left = redis.call('HINCRBY', KEYS[1], 'count', -1)
				if left <= 0 then redis.call('DEL', KEYS[1]) return 1 end
				if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
				return 1`)},
		{Entry: entry.New("reentry-overwrites", "a client that is refused and finds its own token writes it again by a second command, before which the lease can end and another can take the lock", both, "https://github.com/redisson/redisson/issues/84"),
			Variant: of(counted())},
		{Entry: entry.New("reentry-counts-to-two", "more than two grants count as two", both, ""),
			Variant: reentrant(reenter, reextend, entry.Changed(leave, `if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then`, `if math.min(redis.call('HINCRBY', KEYS[1], 'count', -1), 2 - redis.call('HINCRBY', KEYS[1], 'released', 1)) <= 0 then`))},
		{Entry: entry.New("reentry-count-of-refused", "a refused attempt is counted, so the holder's release does not free the lock", entry.Breaks(variant.Progress), ""),
			Variant: reentrant(entry.Changed(reenter, `if owner and owner ~= ARGV[3] then return 0 end`, `if owner and owner ~= ARGV[3] then redis.call('HINCRBY', KEYS[1], 'count', 1) return 0 end`), reextend, leave)},
	}
}

// listed is a lock with its line in a list, which its clients keep by single commands. Each waiter keeps a key that expires, and one whose
// key has expired counts as dead.
type listed struct {
	*client
	// reap removes the head of the line, which is dead.
	reap func(ctx context.Context, rdb redis.UniversalClient, line, head string) error
	// places are what the client is called in the line of each name, until it is granted the lock; nil if it leaves the line when it gives up.
	places map[string]string
}

func inList(reap func(ctx context.Context, rdb redis.UniversalClient, line, head string) error) lockimpl.Variant {
	v := whole(func(env variant.Env) lockimpl.Locker { return listed{newClient(steps{}, env), reap, nil} })
	v.Promises = append([]variant.Property{variant.FIFO}, usual...)
	return v
}

func (f listed) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	token, line := f.env.Token(), "List:"+f.key(name)
	if kept := f.places[name]; kept != "" {
		token = kept
	} else if f.places != nil {
		f.places[name] = token
	}
	joined := time.Time{}
	f.client.token = func(*client) string { return token }
	f.client.attempt = func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		in, err := f.inLine(ctx, line, token, o)
		if err != nil {
			return false, err
		}
		if joined.IsZero() || !in {
			joined = c.env.Clock.Now()
		}
		head, err := c.redis().LIndex(ctx, line, 0).Result()
		if err != nil {
			return false, err
		}
		if head == token {
			return setNX(ctx, c, l, o)
		}
		if alive, err := c.redis().Exists(ctx, beat(line, head)).Result(); alive > 0 || err != nil {
			return false, err
		}
		return false, f.reap(ctx, c.redis(), line, head)
	}
	l, err := f.client.Acquire(ctx, name, o)
	l.Joined = joined
	if err != nil && f.places != nil {
		return l, err
	}
	delete(f.places, name)
	late, cancel := f.env.Clock.WithTimeout(context.WithoutCancel(ctx), o.TTL)
	defer cancel()
	_ = f.redis().LRem(late, line, 0, token).Err() // else it counts as dead soon
	_ = f.redis().Del(late, beat(line, token)).Err()
	return l, err
}

// inLine keeps a client in the line, at its end if it is not there, and reports whether it was there.
func (f listed) inLine(ctx context.Context, line, token string, o lockimpl.Options) (was bool, _ error) {
	if err := f.redis().Set(ctx, beat(line, token), 1, max(5*o.RetryEvery, time.Second)).Err(); err != nil {
		return false, err
	}
	_, err := f.redis().LPos(ctx, line, token, redis.LPosArgs{}).Result()
	if errors.Is(err, redis.Nil) {
		return false, f.redis().RPush(ctx, line, token).Err()
	}
	return true, err
}

func beat(line, token string) string { return "Beat:" + line + ":" + token }
