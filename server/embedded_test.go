package server

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
)

func TestEmbeddedSaysWhatItIs(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "embedded", Topology: "masters:3"})
	if tg.Kind != Embedded || tg.Nodes() != 3 || tg.Topology != "masters:3" || tg.Caveat == "" || tg.PID(0) != 0 {
		t.Errorf("unexpected: %+v", tg)
	}
	version, ok := strings.CutPrefix(tg.ServerVersion, "miniredis ")
	if mod, err := os.ReadFile("../go.mod"); err != nil || !ok || !strings.Contains(string(mod), "miniredis/v2 "+version+" ") && !strings.Contains(string(mod), "miniredis/v2 "+version+"\n") {
		t.Errorf("version %q is not that of go.mod (%v): change the constant", tg.ServerVersion, err)
	}
	if err := tg.Close(); err != nil {
		t.Error(err)
	}
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("it still answers after Close")
	}
}

func TestEmbeddedFollowsAVirtualClock(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	clk := clock.NewVirtual(start)
	tg, err := OpenEmbedded(clk, 2)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, tg)
	ctx := t.Context()
	clients := tg.Clients(ConnOptions{})
	for _, c := range clients {
		defer c.Close()
		if ok, err := c.SetNX(ctx, "lock", "a", 15*time.Second).Result(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	clk.Advance(15*time.Second - time.Millisecond)
	for _, c := range clients {
		if ok, err := c.SetNX(ctx, "lock", "b", time.Second).Result(); ok || err != nil {
			t.Errorf("a millisecond before the end of the lease: %v, %v", ok, err)
		}
		if d := c.PTTL(ctx, "lock").Val(); d != time.Millisecond {
			t.Errorf("PTTL %v; want 1ms", d)
		}
	}
	clk.Advance(time.Millisecond)
	for _, c := range clients {
		if ok, err := c.SetNX(ctx, "lock", "b", time.Second).Result(); !ok || err != nil {
			t.Errorf("at the end of the lease: %v, %v", ok, err)
		}
		if now := c.Time(ctx).Val(); !now.Equal(clk.Now()) {
			t.Errorf("TIME answers %v; the clock stands at %v", now, clk.Now())
		}
		inScript, err := c.Eval(ctx, `return redis.call('TIME')[1]`, nil).Text()
		if err != nil || inScript != strconv.FormatInt(clk.Now().Unix(), 10) {
			t.Errorf("TIME in a script answers %v, %v", inScript, err)
		}
	}
}

// TestEmbeddedLeasesLastExactlyAsLongAsPromised checks that a lease never ends before its holder expects it to, or correct
// locks would look broken, and that it ends soon after.
func TestEmbeddedLeasesLastExactlyAsLongAsPromised(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "embedded"})
	const ttl = 20 * time.Millisecond
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			c := tg.Client(0, ConnOptions{})
			defer c.Close()
			for i := range 10 {
				key := fmt.Sprintf("lock:%d:%d", w, i)
				call := time.Now()
				if err := c.Set(t.Context(), key, "a", ttl).Err(); err != nil {
					t.Error(err)
					return
				}
				for {
					ok, err := c.SetNX(t.Context(), key, "b", time.Second).Result()
					if err != nil {
						t.Error(err)
						return
					}
					if !ok {
						continue
					}
					if held := time.Since(call); held < ttl {
						t.Errorf("the lease of %v ended after %v", ttl, held)
					} else if held > ttl+2*time.Second {
						t.Errorf("the lease of %v lasted %v", ttl, held)
					}
					break
				}
			}
		})
	}
	wg.Wait()
}

func TestEmbeddedTimeIsTheMachines(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "embedded"})
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	before := time.Now().Truncate(time.Microsecond)
	now, err := c.Time(t.Context()).Result()
	if err != nil || now.Before(before) || now.After(time.Now()) {
		t.Errorf("TIME = %v, %v; want about %v", now, err, before)
	}
}

// TestCommandsOfLockScripts checks that the commands that locks, sales and queues use have the same effect on every kind
// of target.
func TestCommandsOfLockScripts(t *testing.T) {
	for _, kind := range []string{"embedded", "process"} {
		t.Run(kind, func(t *testing.T) {
			tg := mustOpen(t, Spec{Target: kind})
			c := tg.Client(0, ConnOptions{PoolSize: 4})
			defer c.Close()
			for _, step := range lockCommands {
				got, err := c.Do(t.Context(), step.args...).Result()
				if err == redis.Nil {
					got, err = "nil", nil
				}
				if err != nil {
					got = "error: " + err.Error()
				}
				if text := fmt.Sprint(got); text != step.want {
					t.Errorf("%v = %s; want %s", step.args, text, step.want)
				}
			}
			testScripts(t, c)
			testWatch(t, c)
			testPubSub(t, c)
		})
	}
}

type command struct {
	args []any
	want string
}

func cmd(want string, args ...any) command { return command{args, want} }

var lockCommands = []command{
	cmd("OK", "SET", "s", "a", "NX", "PX", 60300),
	cmd("nil", "SET", "s", "b", "NX", "EX", 60),
	cmd("a", "SET", "s", "c", "XX", "GET", "KEEPTTL"),
	cmd("60", "TTL", "s"),
	cmd("0", "SETNX", "s", "x"),
	cmd("1", "SETNX", "n", "x"),
	cmd("-1", "PTTL", "n"),
	cmd("-2", "TTL", "absent"),
	cmd("1", "EXPIRE", "n", 10),
	cmd("1", "PEXPIRE", "n", 20300),
	cmd("20", "TTL", "n"),
	cmd("1", "PERSIST", "n"),
	cmd("x", "GETDEL", "n"),
	cmd("1", "INCR", "i"),
	cmd("-2", "DECRBY", "i", 3),
	cmd("2", "HSET", "h", "f", 1, "g", 2),
	cmd("3", "HINCRBY", "h", "f", 2),
	cmd("[3 <nil>]", "HMGET", "h", "f", "z"),
	cmd("1", "HDEL", "h", "g"),
	cmd("2", "ZADD", "z", 1, "a", 2, "b"),
	cmd("0", "ZADD", "z", "NX", 9, "a"),
	cmd("[a 1 b 2]", "ZRANGE", "z", 0, -1, "WITHSCORES"),
	cmd("[a]", "ZRANGE", "z", "-inf", "1.5", "BYSCORE", "LIMIT", 0, 1),
	cmd("[a]", "ZRANGEBYSCORE", "z", 0, 1),
	cmd("1", "ZRANK", "z", "b"),
	cmd("1", "ZREM", "z", "a"),
	cmd("[b 2]", "ZPOPMIN", "z"),
	cmd("2", "RPUSH", "l", "a", "b"),
	cmd("a", "LMOVE", "l", "m", "LEFT", "RIGHT"),
	cmd("1", "LREM", "l", 0, "b"),
	cmd("1", "SADD", "set", "a"),
	cmd("1", "SISMEMBER", "set", "a"),
	cmd("1", "EXISTS", "s"),
	cmd("1", "UNLINK", "s"),
	cmd("1", "DEL", "i"),
	cmd("[0 [set]]", "SCAN", 0, "MATCH", "s*", "COUNT", 1000),
}

func testScripts(t *testing.T, c redis.UniversalClient) {
	ctx := t.Context()
	script := redis.NewScript(`
		-- grant, with a fencing token and the server's time
		local now = redis.call('TIME')
		if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
			redis.call('ZADD', KEYS[2], now[1] * 1000 + math.floor(now[2] / 1000), ARGV[1])
			local first = redis.call('ZRANGE', KEYS[2], 0, 0)
			redis.call('ZREM', KEYS[2], first[1])
			redis.call('HSET', KEYS[3], 'owner', ARGV[1])
			redis.call('PUBLISH', 'granted', ARGV[1])
			return {1, redis.call('HINCRBY', KEYS[3], 'fence', 1), first[1]}
		end
		return {0, redis.call('PTTL', KEYS[1])}`)
	sha, err := script.Load(ctx, c).Result()
	if err != nil || sha != script.Hash() {
		t.Fatalf("SCRIPT LOAD = %v, %v", sha, err)
	}
	keys := []string{"lock", "line", "state"}
	if got, err := script.EvalSha(ctx, c, keys, "me", 60000).Result(); err != nil || fmt.Sprint(got) != "[1 1 me]" {
		t.Errorf("first grant = %v, %v", got, err)
	}
	if got, err := script.Eval(ctx, c, keys, "you", 60000).Slice(); err != nil || len(got) != 2 || got[0] != int64(0) {
		t.Errorf("second grant = %v, %v", got, err)
	}
	if err := c.EvalSha(ctx, strings.Repeat("0", 40), nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("unknown script: %v", err)
	}
	got, err := c.Eval(ctx, `local r = redis.pcall('HGET', KEYS[1], 'f'); return r.err and redis.error_reply('CLASH wrong type') or 1`, []string{"lock"}).Result()
	if err == nil || !strings.Contains(err.Error(), "CLASH") {
		t.Errorf("error_reply = %v, %v", got, err)
	}
}

func testWatch(t *testing.T, c redis.UniversalClient) {
	ctx := t.Context()
	decrement := func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Decr(ctx, "stock").Err() })
		return err
	}
	if err := c.Watch(ctx, decrement, "stock"); err != nil {
		t.Errorf("undisturbed transaction: %v", err)
	}
	err := c.Watch(ctx, func(tx *redis.Tx) error {
		if err := c.Set(ctx, "stock", 7, 0).Err(); err != nil {
			return err
		}
		return decrement(tx)
	}, "stock")
	if err != redis.TxFailedErr {
		t.Errorf("disturbed transaction: %v; want %v", err, redis.TxFailedErr)
	}
}

func testPubSub(t *testing.T, c redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	sub := c.Subscribe(ctx, "released")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	if n, err := c.Publish(ctx, "released", "lock").Result(); n != 1 || err != nil {
		t.Errorf("publish = %v, %v", n, err)
	}
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "lock" {
		t.Errorf("message = %v, %v", m, err)
	}
}
