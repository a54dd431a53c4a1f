package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
)

// throughDriver returns two go-redis clients of a new server: one through a proxy, and one directly.
func throughDriver(t *testing.T, s *injector, protocol int) (c, direct *redis.Client) {
	t.Helper()
	addr, _ := servertest.Start(t)
	p := s.through(t, addr)
	c = redis.NewClient(&redis.Options{Addr: p.Addr(), Protocol: protocol, MaxRetries: -1, PoolSize: 20})
	direct = redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { c.Close(); direct.Close() })
	return c, direct
}

var bothProtocols = []int{2, 3}

// TestDriver checks that go-redis works through the proxy as without it, with all kinds of commands.
func TestDriver(t *testing.T) {
	for _, protocol := range bothProtocols {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			s := &injector{}
			c, _ := throughDriver(t, s, protocol)
			for name, test := range map[string]func(*testing.T, *redis.Client){
				"pipeline": drivePipeline, "transaction": driveTransaction, "pub/sub": drivePubSub,
				"blocking": driveBlocking, "script": driveScript, "stream": driveStream, "many": driveMany,
			} {
				t.Run(name, func(t *testing.T) { test(t, c) })
			}
			if s.firings() != "" {
				t.Errorf("fired: %s", s.firings())
			}
		})
	}
}

func drivePipeline(t *testing.T, c *redis.Client) {
	cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 500 {
			p.HSet(t.Context(), fmt.Sprint("pipe:", i), "f", strings.Repeat("v", i), "n", i)
			p.HGetAll(t.Context(), fmt.Sprint("pipe:", i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		got := cmds[2*i+1].(*redis.MapStringStringCmd).Val()
		if got["n"] != fmt.Sprint(i) || len(got["f"]) != i {
			t.Fatalf("reply %d is %v", i, got)
		}
	}
}

func driveTransaction(t *testing.T, c *redis.Client) {
	ctx := t.Context()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			for done := 0; done < 10; {
				err := c.Watch(ctx, func(tx *redis.Tx) error {
					n, err := tx.Get(ctx, "tx").Int()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "tx", n+1, 0); return nil })
					return err
				}, "tx")
				switch {
				case err == nil:
					done++
				case !errors.Is(err, redis.TxFailedErr):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n, _ := c.Get(ctx, "tx").Int(); n != 50 {
		t.Errorf("counted to %d, want 50", n)
	}
}

func drivePubSub(t *testing.T, c *redis.Client) {
	ctx := t.Context()
	sub := c.Subscribe(ctx, "news")
	defer sub.Close()
	if err := sub.PSubscribe(ctx, "n*"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 {
		if n := c.Publish(ctx, "news", i).Val(); n != 2 {
			t.Fatalf("%d receivers, want 2", n)
		}
	}
	var heard []string
	for range 100 {
		m, err := sub.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if m.Pattern == "" {
			heard = append(heard, m.Payload)
		}
	}
	if len(heard) != 50 || heard[49] != "49" {
		t.Errorf("heard %q", heard)
	}
	if err := sub.Ping(ctx); err != nil {
		t.Error(err)
	}
	if err := sub.Unsubscribe(ctx); err != nil {
		t.Error(err)
	}
}

func driveBlocking(t *testing.T, c *redis.Client) {
	ctx := t.Context()
	var wg sync.WaitGroup
	var got []string
	wg.Go(func() { got, _ = c.BLPop(ctx, 10*time.Second, "queue").Result() })
	servertest.Await(t, "somebody to block", func() bool { return strings.Contains(c.Info(ctx, "clients").Val(), "blocked_clients:1") })
	c.RPush(ctx, "queue", "task")
	wg.Wait()
	if !slices.Equal(got, []string{"queue", "task"}) {
		t.Errorf("popped %q", got)
	}
}

func driveScript(t *testing.T, c *redis.Client) {
	script := redis.NewScript(`redis.call("INCR", KEYS[1]); return {ARGV[1], {1, 2}, false}`)
	for range 2 { // first NOSCRIPT, then the server knows the script
		got, err := script.Run(t.Context(), c, []string{"scripted"}, "a\r\nb").Slice()
		if err != nil || fmt.Sprint(got) != "[a\r\nb [1 2] <nil>]" {
			t.Errorf("the script answers %v, %v", got, err)
		}
	}
}

func driveStream(t *testing.T, c *redis.Client) {
	ctx := t.Context()
	if err := c.XGroupCreateMkStream(ctx, "s", "g", "$").Err(); err != nil {
		t.Fatal(err)
	}
	id := c.XAdd(ctx, &redis.XAddArgs{Stream: "s", Values: []string{"f", "v"}}).Val()
	got, err := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"s", ">"}}).Result()
	if err != nil || len(got) != 1 || got[0].Messages[0].ID != id {
		t.Errorf("read %v, %v", got, err)
	}
}

func driveMany(t *testing.T, c *redis.Client) {
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				if err := c.Incr(t.Context(), "many").Err(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n, _ := c.Get(t.Context(), "many").Int(); n != 1000 {
		t.Errorf("counted to %d, want 1000", n)
	}
}

// TestDriverStruck checks what each action does to a go-redis client: the command fails, and was executed or not.
func TestDriverStruck(t *testing.T) {
	for _, protocol := range bothProtocols {
		for _, c := range []struct {
			verb     Verb
			executed bool
		}{
			{DropRequest, false}, {Reset, false}, {HalfOpen, false},
			{DropReply, true}, {ResetAfter, true}, {Late, true},
		} {
			t.Run(fmt.Sprintf("RESP%d/%s", protocol, c.verb), func(t *testing.T) {
				s := &injector{name: "DECR", action: Action{Verb: c.verb}, times: 1}
				client, direct := throughDriver(t, s, protocol)
				direct.Set(t.Context(), "stock", 5, 0)
				hasty := client.WithTimeout(time.Minute)
				if c.verb == HalfOpen { // nothing else would end the command
					hasty = client.WithTimeout(50 * time.Millisecond)
				}
				if err := hasty.Decr(t.Context(), "stock").Err(); err == nil {
					t.Fatal("the command succeeds")
				}
				servertest.Await(t, "the action", func() bool { return s.firings() == string(c.verb)+" DECR stock" })
				want := "5"
				if c.executed {
					want = "4"
				}
				if got := direct.Get(t.Context(), "stock").Val(); got != want {
					t.Errorf("the stock is %s, want %s", got, want)
				}
				if n, err := client.Decr(t.Context(), "stock").Result(); err != nil || fmt.Sprint(n+1) != want {
					t.Errorf("the next command: %d, %v", n, err)
				}
			})
		}
	}
}

// TestDriverRepeats checks that a driver that sends a command again applies it twice.
func TestDriverRepeats(t *testing.T) {
	s := &injector{name: "DECR", action: Action{Verb: DropReply}, times: 1}
	addr, _ := servertest.Start(t)
	p := s.through(t, addr)
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: 3})
	defer c.Close()
	c.Set(t.Context(), "stock", 5, 0)
	if n, err := c.Decr(t.Context(), "stock").Result(); err != nil || n != 3 {
		t.Errorf("decremented to %d, %v; want 3", n, err)
	}
}

// TestDriverPipelineStruck checks the state of the server after a command in a pipeline was hit, although go-redis throws
// away the answers that came before.
func TestDriverPipelineStruck(t *testing.T) {
	s := &injector{name: "DECR", action: Action{Verb: DropReply}, times: 1}
	c, direct := throughDriver(t, s, 3)
	cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Set(t.Context(), "a", 1, 0)
		p.Decr(t.Context(), "b")
		p.Set(t.Context(), "c", 1, 0)
		return nil
	})
	if err == nil || cmds[1].Err() == nil || cmds[2].Err() == nil {
		t.Errorf("the pipeline ends with %v: %v", err, cmds)
	}
	if got := direct.MGet(t.Context(), "a", "b", "c").Val(); fmt.Sprint(got) != "[1 -1 <nil>]" {
		t.Errorf("the server has %v", got)
	}
}
