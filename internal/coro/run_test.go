package coro

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// step is a request that a test expects, and the observation that answers it.
type step struct {
	want string
	o    Observation
	// at is the index of the request among the pending ones.
	at int
}

func reply(want, text string) step { return step{want: want, o: Observation{Reply: text}} }
func at(want string, now time.Duration) step {
	return step{want: want, o: Observation{Now: now}}
}

// bulk returns the reply that is a list of texts.
func bulk(texts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(texts))
	for _, s := range texts {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(s), s)
	}
	return b.String()
}

// follow drives p through the steps, and then checks that it has ended.
func follow(t *testing.T, p Program, o Options, steps ...step) *Client {
	t.Helper()
	o.Epoch = epoch
	c := Start(p, o)
	t.Cleanup(c.Close)
	for i, s := range append([]step{{want: "pause start"}}, steps...) {
		if pending := c.Pending(); s.at >= len(pending) || show(pending[s.at]) != s.want {
			t.Fatalf("step %d: it stands before %v; want %q at %d; error %v", i, showAll(pending), s.want, s.at, c.Err())
		}
		c.Resume(s.at, s.o)
	}
	if pending := c.Pending(); len(pending) > 0 {
		t.Fatalf("it has not ended: %q", showAll(pending))
	}
	return c
}

func showAll(rs []Request) (texts []string) {
	for _, r := range rs {
		texts = append(texts, show(r))
	}
	return texts
}

// sure fails the test if the client failed.
func sure(t *testing.T, c *Client) {
	t.Helper()
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
}

// one returns a program of one command. It emits the command's result as a text.
func one[T any](do func(ctx context.Context, c redis.UniversalClient) (T, error)) Program {
	return func(ctx context.Context, w *Runtime) {
		v, err := do(ctx, w.Env().Redis[0])
		w.Emit(fmt.Sprintf("%v %v", v, err))
	}
}

func TestCommandsOfEveryType(t *testing.T) {
	script := redis.NewScript("return 1")
	for _, test := range []struct {
		request, reply, want string
		do                   Program
	}{
		{"set k v", "+OK\r\n", "OK <nil>", one(func(ctx context.Context, c redis.UniversalClient) (string, error) {
			return c.Set(ctx, "k", "v", 0).Result()
		})},
		{"incrby k 5", ":7\r\n", "7 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (int64, error) {
			return c.IncrBy(ctx, "k", 5).Result()
		})},
		{"set k 1 px 1500 nx", "$-1\r\n", "false <nil>", one(func(ctx context.Context, c redis.UniversalClient) (bool, error) {
			return c.SetNX(ctx, "k", 1, 1500*time.Millisecond).Result()
		})},
		{"expire k 3", ":1\r\n", "true <nil>", one(func(ctx context.Context, c redis.UniversalClient) (bool, error) {
			return c.Expire(ctx, "k", 3*time.Second).Result()
		})},
		{"get k", "$-1\r\n", " redis: nil", one(func(ctx context.Context, c redis.UniversalClient) (string, error) {
			return c.Get(ctx, "k").Result()
		})},
		{"get k", "-WRONGTYPE no\r\n", " WRONGTYPE no", one(func(ctx context.Context, c redis.UniversalClient) (string, error) {
			return c.Get(ctx, "k").Result()
		})},
		{"pttl k", ":1500\r\n", "1.5s <nil>", one(func(ctx context.Context, c redis.UniversalClient) (time.Duration, error) {
			return c.PTTL(ctx, "k").Result()
		})},
		{"ttl k", ":-2\r\n", "-2ns <nil>", one(func(ctx context.Context, c redis.UniversalClient) (time.Duration, error) {
			return c.TTL(ctx, "k").Result()
		})},
		{"lrange k 0 -1", bulk("a", "b"), "[a b] <nil>", one(func(ctx context.Context, c redis.UniversalClient) ([]string, error) {
			return c.LRange(ctx, "k", 0, -1).Result()
		})},
		{"mget a b", "*2\r\n$1\r\nx\r\n$-1\r\n", "[x <nil>] <nil>", one(func(ctx context.Context, c redis.UniversalClient) ([]any, error) {
			return c.MGet(ctx, "a", "b").Result()
		})},
		{"zrange k 0 -1 withscores", bulk("a", "1.5"), "[{1.5 a}] <nil>", one(func(ctx context.Context, c redis.UniversalClient) ([]redis.Z, error) {
			return c.ZRangeWithScores(ctx, "k", 0, -1).Result()
		})},
		{"zadd k 0.1 m", ":1\r\n", "1 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (int64, error) {
			return c.ZAdd(ctx, "k", redis.Z{Score: 0.1, Member: "m"}).Result()
		})},
		{"hgetall k", bulk("a", "1"), "map[a:1] <nil>", one(func(ctx context.Context, c redis.UniversalClient) (map[string]string, error) {
			return c.HGetAll(ctx, "k").Result()
		})},
		{"incrbyfloat k 0.5", "$3\r\n1.5\r\n", "1.5 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (float64, error) {
			return c.IncrByFloat(ctx, "k", 0.5).Result()
		})},
		{"xrange s - +", "*1\r\n*2\r\n$3\r\n1-1\r\n" + bulk("id", "x"), "[{1-1 map[id:x] 0 0}] <nil>", one(func(ctx context.Context, c redis.UniversalClient) ([]redis.XMessage, error) {
			return c.XRange(ctx, "s", "-", "+").Result()
		})},
		{"lpop k", "$1\r\nv\r\n", "[k v] <nil>", one(func(ctx context.Context, c redis.UniversalClient) ([]string, error) {
			return c.BLPop(ctx, time.Second, "k").Result()
		})},
		{"time", bulk("5", "7"), "5000007 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (int64, error) {
			now, err := c.Time(ctx).Result()
			return now.UnixMicro(), err
		})},
		{"evalsha " + script.Hash() + " 1 k a", ":1\r\n", "1 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (int, error) {
			return script.Run(ctx, c, []string{"k"}, "a").Int()
		})},
		// Loading a script is not a request, because all servers know all scripts.
		{"evalsha " + script.Hash() + " 1 x", ":7\r\n", script.Hash() + " 7 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (string, error) {
			sha, err := script.Load(ctx, c).Result()
			if err != nil {
				return sha, err
			}
			n, err := script.EvalSha(ctx, c, []string{"x"}).Int()
			return fmt.Sprint(sha, " ", n), err
		})},
		// Nor is the question whether a script is there.
		{"evalsha " + script.Hash() + " 1 x", ":7\r\n", "[false] [true] 7 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (string, error) {
			before, err := script.Exists(ctx, c).Result()
			if err != nil {
				return "", err
			}
			if err := script.Load(ctx, c).Err(); err != nil {
				return "", err
			}
			after, err := script.Exists(ctx, c).Result()
			if err != nil {
				return "", err
			}
			n, err := script.EvalSha(ctx, c, []string{"x"}).Int()
			return fmt.Sprint(before, " ", after, " ", n), err
		})},
		{"Do it 1.5", "*1\r\n*1\r\n:3\r\n", "[[3]] <nil>", one(func(ctx context.Context, c redis.UniversalClient) (any, error) {
			return c.Do(ctx, "Do", "it", 1.5).Result()
		})},
		{"get big", "$3000\r\n" + strings.Repeat("x", 3000) + "\r\n", "3000 <nil>", one(func(ctx context.Context, c redis.UniversalClient) (int, error) {
			s, err := c.Get(ctx, "big").Result()
			return len(s), err
		})},
	} {
		t.Run(test.request, func(t *testing.T) {
			c := follow(t, test.do, Options{Masters: 1}, reply(test.request, test.reply))
			sure(t, c)
			if got := fmt.Sprint(c.Events()...); got != test.want {
				t.Errorf("got %s; want %s", got, test.want)
			}
		})
	}
}

func TestPipelineAndTransaction(t *testing.T) {
	both := func(ctx context.Context, p redis.Pipeliner) func() string {
		n, s := p.Incr(ctx, "n"), p.Get(ctx, "s")
		return func() string { return fmt.Sprintf("%v %v %v %v", n.Val(), n.Err(), s.Val(), s.Err()) }
	}
	pipelined := func(tx bool) Program {
		return func(ctx context.Context, w *Runtime) {
			run := w.Env().Redis[0].Pipelined
			if tx {
				run = w.Env().Redis[0].TxPipelined
			}
			var read func() string
			_, err := run(ctx, func(p redis.Pipeliner) error { read = both(ctx, p); return nil })
			w.Emit(fmt.Sprint(read(), " ", err))
		}
	}
	for _, test := range []struct {
		tx          bool
		reply, want string
		failure     Failure
	}{
		{false, ":1\r\n$1\r\nx\r\n", "1 <nil> x <nil> <nil>", Answered},
		{false, ":1\r\n$-1\r\n", "1 <nil>  redis: nil redis: nil", Answered},
		{false, "-ERR a\r\n$1\r\nx\r\n", "0 ERR a x <nil> ERR a", Answered},
		{false, "", "0 i/o timeout: no answer  i/o timeout: no answer i/o timeout: no answer", NoAnswer},
		{true, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n$1\r\nx\r\n", "1 <nil> x <nil> <nil>", Answered},
		{true, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR a\r\n$1\r\nx\r\n", "0 ERR a x <nil> ERR a", Answered},
		{true, "+OK\r\n+QUEUED\r\n-ERR a\r\n-EXECABORT b\r\n", "0 EXECABORT b  ERR a EXECABORT b", Answered},
		{true, "", "0 context deadline exceeded  context deadline exceeded context deadline exceeded", TimedOut},
	} {
		steps := []step{{want: "tx(incr n; get s)", o: Observation{Reply: test.reply, Failure: test.failure}}}
		if !test.tx { // each command is a step, until one has no answer
			first, second, _ := strings.Cut(test.reply, "\r\n")
			steps = []step{{want: "incr n", o: Observation{Reply: first + "\r\n", Failure: test.failure}}, reply("get s", second)}
			if test.failure != Answered {
				steps = steps[:1]
			}
		}
		c := follow(t, pipelined(test.tx), Options{}, steps...)
		sure(t, c)
		if got := fmt.Sprint(c.Events()...); got != test.want {
			t.Errorf("%v %q: got %q; want %q", test.tx, test.reply, got, test.want)
		}
	}
}

// add increments a number by read–modify–write under WATCH, and tries until it succeeds.
func add(ctx context.Context, w *Runtime) {
	for {
		err := w.Env().Redis[0].Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, "n").Int()
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "n", n+1, 0).Err() })
			return err
		}, "n")
		w.Emit(fmt.Sprint(err))
		if !errors.Is(err, redis.TxFailedErr) {
			return
		}
	}
}

func TestWatch(t *testing.T) {
	for range 3 { // reuses the connections
		c := follow(t, add, Options{},
			reply("watch n", "+OK\r\n"), reply("get n", "$1\r\n4\r\n"), reply("tx(set n 5)", "+OK\r\n+QUEUED\r\n*-1\r\n"),
			reply("watch n", "+OK\r\n"), reply("get n", "$1\r\n5\r\n"), reply("tx(set n 6)", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"))
		sure(t, c)
		if got := fmt.Sprint(c.Events()...); got != "redis: transaction failed<nil>" {
			t.Error(got)
		}
	}
	c := follow(t, add, Options{}, reply("watch n", "+OK\r\n"), reply("get n", "$-1\r\n"), reply("unwatch", "+OK\r\n"))
	if got := fmt.Sprint(c.Events()...); got != "redis: nil" {
		t.Error(got)
	}
}

func TestConnectionOfItsOwn(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		own := w.Env().Redis[0].(*redis.Client).Conn()
		defer own.Close()
		w.Emit(own.Get(ctx, "a").Val() + own.Get(ctx, "b").Val())
	}, Options{}, reply("get a", "$1\r\n1\r\n"), reply("get b", "$1\r\n2\r\n"))
	sure(t, c)
	if got := fmt.Sprint(c.Events()...); got != "12" {
		t.Error(got)
	}
}

func TestMastersAreTold(t *testing.T) {
	c := Start(func(ctx context.Context, w *Runtime) {
		for _, r := range w.Env().Redis {
			r.Get(ctx, "k")
		}
	}, Options{Masters: 3})
	defer c.Close()
	c.Resume(0, Observation{})
	for node := range 3 {
		if got := c.Pending()[0].Node; got != node {
			t.Errorf("node %d; want %d", got, node)
		}
		c.Resume(0, Observation{Reply: "$-1\r\n"})
	}
}

func TestNoAnswerIsATimeout(t *testing.T) {
	follow(t, func(ctx context.Context, w *Runtime) {
		err := w.Env().Redis[0].Get(ctx, "k").Err()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v is no timeout", err)
		}
	}, Options{}, step{want: "get k", o: Observation{Failure: NoAnswer}})
}

// TestScriptsAreLearned checks that a client makes the same requests whether its script was known or not.
func TestScriptsAreLearned(t *testing.T) {
	script := redis.NewScript("return redis.call('get', KEYS[1])")
	p := func(ctx context.Context, w *Runtime) { script.Run(ctx, w.Env().Redis[0], []string{"k"}) }
	shared := &Scripts{}
	if _, known := shared.Text(script.Hash()); known {
		t.Fatal("the script is known before it was sent")
	}
	for range 2 {
		sure(t, follow(t, p, Options{Scripts: shared}, reply("evalsha "+script.Hash()+" 1 k", "$1\r\nx\r\n")))
		if text, _ := shared.Text(strings.ToUpper(script.Hash())); text != "return redis.call('get', KEYS[1])" {
			t.Errorf("learned %q", text)
		}
	}
	direct := func(ctx context.Context, w *Runtime) { w.Env().Redis[0].Eval(ctx, "return 1", nil, 2) }
	follow(t, direct, Options{Scripts: shared}, reply("evalsha "+shared.learn("return 1")+" 0 2", ":1\r\n"))
	piped := func(ctx context.Context, w *Runtime) {
		_, _ = w.Env().Redis[0].Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Eval(ctx, "return 3", nil)
			p.EvalSha(ctx, "ABC", nil)
			return nil
		})
	}
	follow(t, piped, Options{Scripts: shared}, reply("evalsha "+shared.learn("return 3")+" 0", ":3\r\n"), reply("evalsha abc 0", "-NOSCRIPT x\r\n"))
}

func TestClock(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		k := w.Env().Clock
		w.Emit(k.Now().Sub(epoch))
		w.Emit(k.Sleep(ctx, 2*time.Second))
		w.Emit(k.Sleep(ctx, 0))
		dead, cancel := context.WithCancel(ctx)
		cancel()
		w.Emit(k.Sleep(dead, time.Second))
	}, Options{}, at("clock", time.Second), at("clock", 3*time.Second), at("sleep 5s", 6*time.Second))
	sure(t, c)
	if got := fmt.Sprint(c.Events()); got != "[1s <nil> <nil> context canceled]" {
		t.Error(got)
	}
}

func TestTimeouts(t *testing.T) {
	var deadlines []time.Duration
	c := Start(func(ctx context.Context, w *Runtime) {
		env := w.Env()
		outer, cancel := env.Clock.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		inner, cancel := env.Clock.WithTimeout(outer, time.Second)
		defer cancel()
		longer, cancel := env.Clock.WithTimeout(inner, time.Hour)
		defer cancel()
		free, cancel := context.WithCancel(context.WithoutCancel(inner))
		defer cancel()
		w.Emit(env.Redis[0].Get(free, "a").Err())
		w.Emit(env.Redis[0].Get(longer, "a").Err())
		w.Emit(context.Cause(longer))
		w.Emit(env.Redis[0].Get(longer, "never sent").Err())
		w.Emit(outer.Err())
		w.Emit(env.Clock.Sleep(outer, time.Hour))
		w.Emit(env.Wait(outer, "k", time.Second))
		late, cancel := env.Clock.WithTimeout(ctx, -1)
		defer cancel()
		w.Emit(context.Cause(late))
	}, Options{Epoch: epoch})
	defer c.Close()
	for _, s := range []step{
		at("pause start", 0), at("clock", 0), at("clock", 0), at("clock", 0), reply("get a", "$-1\r\n"),
		{want: "get a", o: Observation{Failure: TimedOut}},
		at("clock", time.Second), at("sleep 1h0m1s", 2*time.Second),
	} {
		r := c.Pending()[0]
		if show(r) != s.want {
			t.Fatalf("got %q; want %q", show(r), s.want)
		}
		deadlines = append(deadlines, r.Deadline)
		c.Resume(0, s.o)
	}
	sure(t, c)
	if len(c.Pending()) != 0 {
		t.Errorf("it has not ended: %q", showAll(c.Pending()))
	}
	const d = "context deadline exceeded"
	if got := fmt.Sprint(c.Events()); got != fmt.Sprintf("[redis: nil %s %s %s <nil> %s %s %s]", d, d, d, d, d, d) {
		t.Error(got)
	}
	if want := []time.Duration{0, 0, 2e9, 1e9, 0, 1e9, 2e9, 2e9}; !slices.Equal(deadlines, want) {
		t.Errorf("deadlines %v; want %v", deadlines, want)
	}
}

// TestThreads checks that three threads that ask three servers, as in redlock, can be answered in any order.
func TestThreads(t *testing.T) {
	all := func(ctx context.Context, w *Runtime) {
		var joins []func(context.Context) error
		sum := 0
		for i, r := range w.Env().Redis {
			joins = append(joins, w.Env().Go(func(context.Context) {
				n, _ := r.Get(ctx, strconv.Itoa(i)).Int()
				sum += n
			}))
		}
		for _, join := range joins {
			if err := join(ctx); err != nil {
				t.Error(err)
			}
		}
		w.Pause(strconv.Itoa(sum))
	}
	c := Start(all, Options{Masters: 3})
	defer c.Close()
	c.Resume(0, Observation{})
	for _, at := range []int{1, 1, 0} {
		r := c.Pending()[at]
		if want := strconv.Itoa(r.Thread - 1); r.Commands[0][1] != want || r.Node != r.Thread-1 {
			t.Errorf("thread %d asks node %d for %v", r.Thread, r.Node, r.Commands)
		}
		c.Resume(at, Observation{Reply: fmt.Sprintf(":%d\r\n", r.Thread)})
	}
	if got := showAll(c.Pending()); len(got) != 1 || got[0] != "pause 6" {
		t.Error(got)
	}
	c.Resume(0, Observation{})
	sure(t, c)
}

func TestJoin(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		env := w.Env()
		short, cancel := env.Clock.WithTimeout(ctx, time.Second)
		defer cancel()
		join := env.Go(func(ctx context.Context) { w.Emit(env.Clock.Sleep(ctx, time.Minute)) })
		w.Emit(join(short)) // the time limit comes first
		gone, cancel := context.WithCancel(ctx)
		cancel()
		w.Emit(join(gone))
		// The main thread ends, and the sleep ends with it.
	}, Options{}, at("clock", 0), step{want: "clock", at: 1, o: Observation{Now: 0}}, at("sleep 1s", time.Second))
	sure(t, c)
	if got := fmt.Sprint(c.Events()); got != "[context deadline exceeded context canceled context canceled]" {
		t.Error(got)
	}
}

// TestCancelledSleepGoesOnByItself checks that a thread whose context another thread cancels goes on without the driver.
func TestCancelledSleepGoesOnByItself(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		env := w.Env()
		working, stop := context.WithCancel(ctx)
		join := env.Go(func(context.Context) {
			w.Emit(env.Clock.Sleep(working, time.Second))
			w.Emit(env.Redis[0].Get(working, "never sent").Err())
		})
		w.Pause("a")
		stop()
		w.Pause("b")
		w.Emit(join(ctx))
	}, Options{}, step{want: "clock", at: 1}, at("pause a", 0), at("pause b", 0))
	sure(t, c)
	if got := fmt.Sprint(c.Events()); got != "[context canceled context canceled <nil>]" {
		t.Error(got)
	}
}

// TestParkedCommandOutlivesItsContext checks that a command that is under way is answered even if its context is cancelled.
func TestParkedCommandOutlivesItsContext(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		working, stop := context.WithCancel(ctx)
		w.Env().Go(func(context.Context) { w.Emit(w.Env().Redis[0].Get(working, "k").Val()) })
		w.Pause("a")
		stop()
	}, Options{}, at("pause a", 0), reply("get k", "$1\r\nx\r\n"))
	sure(t, c)
	if got := fmt.Sprint(c.Events()); got != "[x]" {
		t.Error(got)
	}
}

func TestBoundaryAndTokens(t *testing.T) {
	c := follow(t, func(_ context.Context, w *Runtime) {
		w.Emit(w.Env().Token() + w.Env().Token())
		w.Boundary(strconv.Itoa(w.Tokens()))
	}, Options{Token: func(n int) string { return "t" + strconv.Itoa(n) }}, at("boundary 2", 0))
	if got := fmt.Sprint(c.Events()); got != "[t0t1]" {
		t.Error(got)
	}
	if c.Events() != nil {
		t.Error("an event was returned twice")
	}
}

func TestWait(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		env := w.Env()
		w.Emit(env.Wait(ctx, "k", time.Second))
		limited, cancel := env.Clock.WithTimeout(ctx, time.Second)
		defer cancel()
		w.Emit(env.Wait(limited, "k", time.Hour)) // the time limit comes during the wait
		w.Emit(env.Wait(limited, "k", time.Hour)) // the time limit has passed
		working, stop := context.WithCancel(ctx)
		join := env.Go(func(context.Context) { w.Emit(env.Wait(working, "k", time.Second)) })
		w.Pause("a")
		stop()
		w.Emit(join(ctx))
	}, Options{}, at("pause wait", 0), at("clock", 0), at("pause wait", time.Second), at("pause a", 0))
	sure(t, c)
	if got := fmt.Sprint(c.Events()); got != "[<nil> context deadline exceeded context deadline exceeded context canceled <nil>]" {
		t.Error(got)
	}
}
