package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/history"
	"oversell/idimpl"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/variant"
)

// countingClock counts how often it is read.
type countingClock struct {
	clock.Clock
	read *int
}

func (c countingClock) Now() time.Time {
	*c.read++
	return c.Clock.Now()
}

// losing is a hook that loses the reply to the first command with this name.
type losing struct{ name string }

var errLostReply = errors.New("no answer")

func (*losing) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == l.name && err == nil {
			l.name = ""
			cmd.SetErr(errLostReply)
			return errLostReply
		}
		return err
	}
}

func (*losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// told records what a client tells its world.
type told struct {
	lines  []string
	ops    []history.Op // in order of completion
	open   int          // operations begun and not ended
	rounds int          // operations begun of the kinds in counts
	turns  int          // calls of Turn, at which the client tells all that it remembers
	begun  int          // calls of Turn at which a round begins
	counts []history.Kind
	read   int // readings of the clock
}

// world returns a world on t that has enough after three rounds.
func (w *told) world(t *server.Target, index int, epoch time.Time) ClientEnv {
	if w.counts == nil {
		w.counts = []history.Kind{history.Acquire}
	}
	conns := t.Clients(server.ConnOptions{})
	numbers := int64(0)
	env := variant.Env{
		Redis: conns,
		Clock: countingClock{clock.Real{}, &w.read},
		Token: func() string {
			numbers++
			return fmt.Sprintf("token-%d-%d", index, numbers)
		},
		Wait: func(context.Context, string, time.Duration) error {
			w.lines = append(w.lines, "wait")
			return nil
		},
		Go: func(f func(context.Context)) func(context.Context) error {
			done := make(chan struct{})
			go func() { defer close(done); f(context.Background()) }()
			return func(context.Context) error { <-done; return nil }
		},
	}
	return ClientEnv{
		Env: env, Index: index, Epoch: epoch,
		Enough: func() bool { return w.rounds >= 3 },
		Number: func(string) int64 {
			numbers++
			return int64(index)*1000 + numbers
		},
		Turn: func(begins bool, _ []any) {
			if w.turns++; begins {
				w.begun++
			}
		},
		Pause: func(what string) { w.lines = append(w.lines, "pause "+what) },
		Began: func(op history.Op) {
			w.open++
			if slices.Contains(w.counts, op.Kind) {
				w.rounds++
			}
		},
		Ended: func(op history.Op, err error) {
			w.open--
			if w.open < 0 || (op.Outcome == history.Unknown) != (errors.Is(err, errLostReply)) || op.Client != int32(index) || op.Call+op.Return+op.Due != 0 {
				w.lines = append(w.lines, fmt.Sprintf("AMISS: %v, %v", op, err))
			}
			w.ops = append(w.ops, op)
			line := op.Kind.String() + " " + op.Outcome.String()
			if op.Reason != history.NoReason {
				line += " " + op.Reason.String()
			}
			w.lines = append(w.lines, line)
		},
	}
}

// TestAlone drives clients one after the other, without an engine.
func TestAlone(t *testing.T) {
	const section = "acquire ok, pause section, release ok"
	const purchase = "acquire ok, buy ok, release ok"
	const number = "acquire ok, next-id ok, release ok"
	for _, c := range []struct {
		scenario, lock, sale, queue, ids string
		change                           func(*Config)
		want                             [2]string // of client 0 and client 1
		audit                            string
	}{
		{scenario: "mutex", lock: "lua-release", want: [2]string{section + ", " + section + ", " + section, section + ", " + section + ", " + section}},
		{scenario: "mutex", lock: "none", want: [2]string{section + ", " + section + ", " + section, section + ", " + section + ", " + section}},
		{scenario: "mutex", lock: "watchdog", change: func(c *Config) { c.Hold = c.TTL }, want: [2]string{
			strings.TrimSuffix(strings.Repeat("acquire ok, pause section, extend ok, pause section, release ok, ", 3), ", "),
			strings.TrimSuffix(strings.Repeat("acquire ok, pause section, extend ok, pause section, release ok, ", 3), ", ")}},
		{scenario: "seckill", lock: "lua-release", sale: "plain", want: [2]string{
			purchase + ", " + purchase + ", " + purchase,
			purchase + ", acquire ok, buy refused sold-out, release ok"},
			audit: "read-state ok left=0, read-state ok reserved=0"},
		{scenario: "seckill", lock: "fenced", sale: "fenced", change: func(c *Config) { c.Refund, c.Quantity = 1, 2 }, want: [2]string{
			purchase + ", acquire ok, refund ok, release ok, " + purchase,
			purchase + ", acquire ok, refund ok, release ok, " + purchase},
			audit: "read-state ok left=0, read-state ok reserved=0"},
		{scenario: "ids", lock: "lua-release", ids: "incr", want: [2]string{number + ", " + number + ", " + number, number + ", " + number + ", " + number},
			audit: "read-state ok last=6"},
		{scenario: "floors", lock: "lua-release", ids: "get-set", want: [2]string{number + ", " + number + ", " + number, number + ", " + number + ", " + number},
			audit: "read-state ok last=6"},
		{scenario: "queue", queue: "zset-atomic", change: func(c *Config) { c.Repeat = 1 }, want: [2]string{
			"enqueue ok, enqueue ok repeated, enqueue ok repeated",
			"pop ok, effect ok, pop refused empty, wait, pop refused empty, wait"},
			audit: "read-state ok audit=0"},
		{scenario: "queue", queue: "reliable", want: [2]string{
			"enqueue ok, enqueue ok, enqueue ok",
			"pop ok, effect ok, ack ok, pop ok, effect ok, ack ok, pop ok, effect ok, ack ok"},
			audit: "read-state ok popped=1, read-state ok audit=1"},
		{scenario: "queue", lock: "lua-release", queue: "zset-locked", want: [2]string{
			"acquire ok, release ok, enqueue ok, acquire ok, release ok, enqueue ok, acquire ok, release ok, enqueue ok",
			"acquire ok, release ok, pop ok, effect ok, acquire ok, release ok, pop ok, effect ok, acquire ok, release ok, pop ok, effect ok"},
			audit: "read-state ok audit=0"},
		{scenario: "seckill-queued", queue: "zset-atomic", sale: "lua", change: func(c *Config) { c.Stock = 2 }, want: [2]string{
			"enqueue ok, enqueue ok, enqueue ok",
			"pop ok, buy ok, effect ok, pop ok, buy ok, effect ok, pop ok, buy refused sold-out, effect refused sold-out"},
			audit: "read-state ok left=0, read-state ok reserved=0, read-state ok sold=2, read-state ok popped=1, read-state ok audit=1"},
		{scenario: "seckill-queued", lock: "lua-release", queue: "zset-atomic", sale: "plain", want: [2]string{
			"enqueue ok, enqueue ok, enqueue ok",
			"pop ok, acquire ok, buy ok, effect ok, release ok, pop ok, acquire ok, buy ok, effect ok, release ok, pop ok, acquire ok, buy ok, effect ok, release ok"},
			audit: "read-state ok left=1, read-state ok reserved=0, read-state ok popped=1, read-state ok audit=1"},
	} {
		name := strings.Join(strings.Fields(strings.Join([]string{c.scenario, c.lock, c.sale, c.queue, c.ids}, " ")), " ")
		t.Run(name, func(t *testing.T) {
			cfg := alone(t, c.scenario, c.lock, c.sale, c.queue, c.ids)
			cfg.Delay, cfg.Repeat = None, None // neither chance nor delays play a part here
			if c.change != nil {
				c.change(&cfg)
			}
			if err := cfg.Complete(1); err != nil {
				t.Fatal(err)
			}
			s := embedded(t)
			epoch := time.Now()
			administrator := new(told)
			if err := Alone(cfg, administrator.world(s, 9, epoch)).Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			requests := []int64{}
			for index, want := range c.want {
				w := new(told)
				if c.queue != "" {
					w.counts = []history.Kind{history.Enqueue, history.Pop}
				}
				client := Alone(cfg, w.world(s, index, epoch))
				client.Live(t.Context(), 3)
				if got := strings.Join(w.lines, ", "); got != want {
					t.Errorf("client %d: %s\nwant: %s", index, got, want)
				}
				// Where a number is taken, there is also a turn before each acquisition.
				if w.begun == 0 || w.turns < w.begun || w.turns == w.begun && cfg.Scenario.Uses(variant.IDs) {
					t.Errorf("client %d: told of %d turns, %d of them rounds", index, w.turns, w.begun)
				}
				if w.open != 0 {
					t.Errorf("client %d: %d operations began and did not end", index, w.open)
				}
				for _, op := range w.ops {
					if op.Kind == history.Acquire && (op.Until <= 0 || op.Until > time.Since(epoch)+cfg.TTL) {
						t.Errorf("client %d: %v", index, op)
					}
					if op.Kind == history.Pop {
						n, _ := op.Session.Num()
						requests = append(requests, n)
					}
				}
			}
			world := administrator.world(s, 9, epoch)
			world.OpenPops = requests[min(2, len(requests)):] // as if these pops had had no answer
			administrator.lines, administrator.ops = nil, nil
			if err := Alone(cfg, world).Audit(t.Context()); err != nil {
				t.Fatal(err)
			}
			var read []string
			for i, op := range administrator.ops {
				n := op.Result.String()
				if op.Arg.String() == "popped" {
					n = "1" // the task's number does not matter
				}
				read = append(read, administrator.lines[i]+" "+op.Arg.String()+"="+n)
			}
			if got := strings.Join(read, ", "); got != c.audit {
				t.Errorf("audit: %s\nwant: %s", got, c.audit)
			}
		})
	}
}

// TestAloneTriesAgain checks that a client without an answer sends the same order again, under the same identity.
func TestAloneTriesAgain(t *testing.T) {
	w := new(told)
	world := w.world(embedded(t), 1, time.Now())
	client := Alone(alone(t, "seckill", "lua-release", "lua", "", ""), world)
	if err := client.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.Step(t.Context()) // makes the server know the scripts
	w.lines, w.ops = nil, nil
	world.Env.Redis[0].AddHook(&losing{"evalsha"})
	client.Live(t.Context(), 3)
	if got, want := strings.Join(w.lines, ", "), "acquire ok, buy unknown, release ok, acquire ok, buy ok repeated, release ok"; got != want {
		t.Fatalf("%s\nwant: %s", got, want)
	}
	if first, second := w.ops[1].Arg, w.ops[4].Arg; first != second {
		t.Errorf("order %v was sent again as order %v", first, second)
	}
}

// TestAloneReadsNoClock checks that a client does not read the clock needlessly: each reading is a point at which a
// schedule may change course.
func TestAloneReadsNoClock(t *testing.T) {
	cfg := alone(t, "mutex", "none", "", "", "")
	w := new(told)
	Alone(cfg, w.world(embedded(t), 0, time.Now())).Live(t.Context(), 3)
	if w.read != 3 { // the lock reads it, for its lease
		t.Errorf("the clock was read %d times in three rounds; want once for each lease", w.read)
	}
}

// TestMemory checks that a client's memory does not change unless something happens that it must remember.
func TestMemory(t *testing.T) {
	cfg := alone(t, "ids", "lua-release", "", "", "block")
	w := new(told)
	client := Alone(cfg, w.world(embedded(t), 0, time.Now()))
	show := func() string { return fmt.Sprintf("%+v", client.memory(place{})) }
	fresh := show()
	if fresh != show() || len(client.memory(place{})) != 3 {
		t.Errorf("the memory of the lock and of the numbers is %s, and then %s", fresh, show())
	}
	client.Step(t.Context())
	if n := reflect.ValueOf(client.memory(place{})[2]).Elem().FieldByName("next").Int(); n != 2 {
		t.Errorf("after the first number of a block, the next is %d", n)
	}

	cfg = alone(t, "queue", "", "", "zset-atomic", "")
	cfg.Repeat = 1
	producer := Alone(cfg, new(told).world(embedded(t), 0, time.Now()))
	before := producer.memory(place{})
	producer.Step(t.Context())
	if after := producer.memory(place{}); len(after) != 3 || after[2] == before[2] {
		t.Errorf("a producer that will repeat its task remembers %v", after)
	}
}

// alone returns a configuration for clients that no engine drives.
func alone(t *testing.T, scenario, lock, sale, queue, ids string) Config {
	t.Helper()
	c := config(t, scenario, cmp.Or(lock, "none"), sale)
	if lock == "" {
		c.Lock.New = nil
	}
	c.Stock, c.Clients, c.MaxTries = 4, 2, 2
	ok, ok2 := true, true
	if queue != "" {
		c.Queue, ok = queueimpl.Find(queue)
	}
	if ids != "" {
		c.IDs, ok2 = idimpl.Find(ids)
	}
	if !ok || !ok2 {
		t.Fatalf("no queue %s or ids %s", queue, ids)
	}
	return c
}

func embedded(t *testing.T) *server.Target {
	t.Helper()
	s, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestDue checks that the due time in a score is that of the clock, in whole microseconds: a score of 0.4 s is 95 ns more.
func TestDue(t *testing.T) {
	epoch := time.Unix(1_704_063_600, 0)
	c := &Client{driver: &searchDriver{ClientEnv: ClientEnv{Epoch: epoch}}}
	for _, at := range []time.Duration{0, 400 * time.Millisecond, 1_169_665 * time.Microsecond, time.Minute + time.Microsecond} {
		score, err := strconv.ParseFloat(fmt.Sprintf("%.6f", float64(epoch.Add(at).UnixMicro())/1e6), 64)
		if got := c.due(score); err != nil || got != at {
			t.Errorf("the score of %v is due after %v, %v", at, got, err)
		}
	}
}
