package queuetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/mutants/queues"
	"oversell/internal/servertest"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// startBench starts a redis-server, and returns a bench on it, with the real clock.
func startBench(t *testing.T) Bench {
	t.Helper()
	addr, _ := servertest.Start(t)
	return Bench{Queue: "{ov}mail", Env: func() variant.Env {
		c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})
		t.Cleanup(func() { c.Close() })
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		return variant.Env{Redis: []redis.UniversalClient{c}, Clock: clock.Real{}, Token: rand.Text}
	}}
}

// TestWritesFail checks that the rule finds a queue that answers with success, or with a declared error, although a command
// in its script has failed, as with redis.pcall.
func TestWritesFail(t *testing.T) {
	good, _ := queueimpl.Find("reliable")
	good.Promises = variant.PropertiesOf(variant.Queue)
	failed := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "The user executing the script can't")
	}
	for name, tt := range map[string]struct {
		with hooks
		says string
	}{
		"sound": {},
		"enqueue": {hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
			in, err := q.EnqueueAfter(ctx, name, after, ids...)
			if failed(err) {
				return []queueimpl.Task{{ID: ids[0]}}, nil
			}
			return in, err
		}}, "no-lost-task is broken: an enqueue of which a command failed answered that it entered"},
		"pop": {hooks{pop: func(_ context.Context, _ full, _ string, _ int, got []queueimpl.Task, err error) ([]queueimpl.Task, error) {
			if failed(err) {
				err = queueimpl.ErrEmpty
			}
			return got, err
		}}, "a pop of which a command failed answered"},
		"ack": {hooks{ack: func(ctx context.Context, q full, name string, t queueimpl.Task) error {
			if err := q.Ack(ctx, name, t); !failed(err) {
				return err
			}
			return nil
		}}, "effect-once is broken: an ack of which a command failed answered success"},
		"dequeue": {hooks{dequeue: func(ctx context.Context, q full, name, id string, score float64) error {
			if err := q.Dequeue(ctx, name, id, score); !failed(err) {
				return err
			}
			return queueimpl.ErrChanged
		}}, "a dequeue of which a command failed answered"},
		"extend": {hooks{extend: func(t queueimpl.Task) (queueimpl.Task, error) {
			t.Until = t.Until.Add(time.Second)
			return t, nil
		}}, "an extend of which a command failed answered success"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := good
			v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
				return &saboteur{full: good.New(env, o).(full), hooks: tt.with}
			}
			b := startBench(t)
			err := find(t, writesMayFail).try(t.Context(), bench{Env: b.Env, Queue: b.Queue, Variant: v})
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("the rule says %v; want %q", err, tt.says)
			}
		})
	}
	b := newBench(t)
	if err := find(t, writesMayFail).try(t.Context(), bench{Env: b.Env, Queue: b.Queue, Pass: b.Pass, Variant: good}); !errors.As(err, new(*suitetest.Remark)) {
		t.Errorf("on a server without users the rule says %v; want a remark", err)
	}
}

// TestWorks checks that a queue whose calls all fail is told from one that answers, even if only with a declared error.
func TestWorks(t *testing.T) {
	good, _ := queueimpl.Find("reliable")
	for answer, fails := range map[error]bool{nil: false, queueimpl.ErrLocked: false, errors.New("ERR Error compiling script"): true} {
		v := good
		v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
			return &saboteur{full: good.New(env, o).(full), hooks: hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
				if answer != nil {
					return nil, answer
				}
				return q.EnqueueAfter(ctx, name, after, ids...)
			}}}
		}
		b := newBench(t)
		if err := (bench{Env: b.Env, Queue: b.Queue, Pass: b.Pass, Variant: v}).Works(t.Context()); (err != nil) != fails || fails && !errors.Is(err, answer) {
			t.Errorf("a queue whose enqueue answers %v: works says %v", answer, err)
		}
	}
}

// TestOneRule tries a single rule, as a test run with -run does: the other rules, which were started as well, end with the
// test.
func TestOneRule(t *testing.T) {
	const child = "OVERSELL_TEST_ONE_RULE"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneRule$/^an_empty_queue_says_so$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestOneRule/an_empty_queue_says_so") && !strings.Contains(string(out), "--- SKIP: TestOneRule") {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	good, _ := queueimpl.Find("reliable")
	b := startBench(t)
	Run(t, good, func(*testing.T) Bench { return Bench{Env: b.Env, Queue: "{ov-" + rand.Text() + "}mail"} })
}

// TestHeldUpLate checks that a consumer is held up before the late commands of a long pop, and that every id can be enqueued again
// afterwards.
func TestHeldUpLate(t *testing.T) {
	r := find(t, "a consumer held up between two commands")
	for name, says := range map[string]string{
		"mark-removed-first": "after two pops at once, and all tasks done, and enqueued again",
		"pop-after-settings": "at command 7",
		"list-with-set":      "",
	} {
		all := queues.All()
		v := all[slices.IndexFunc(all, func(q queues.Queue) bool { return q.Name == name })].Variant
		o := newBench(t)
		b := bench{Env: o.Env, Queue: o.Queue, Pass: o.Pass, Variant: v}.Measured(t.Context())
		err := r.try(t.Context(), b)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: the rule says %v; want %q", name, err, says)
		}
	}
}

// TestNamedPromise checks that an error names a promise that the queue makes.
func TestNamedPromise(t *testing.T) {
	of := func(ps ...variant.Property) queueimpl.Variant { return queueimpl.Variant{Promises: ps} }
	for _, tt := range []struct {
		v          queueimpl.Variant
		twice, not variant.Property // for a task that was handed out twice, and for something that did not happen
	}{
		{of(variant.NoDuplicateDelivery, variant.EffectOnce, variant.Progress), variant.NoDuplicateDelivery, variant.Progress},
		{of(variant.EffectOnce, variant.NoLostTask), variant.EffectOnce, variant.NoLostTask},
		{of(variant.InOrder), theInterface, variant.EffectOnce},
	} {
		w := new(suitetest.Breach)
		if errors.As(renamed(tt.v, fmt.Errorf("at command 2: %w", broken(variant.NoDuplicateDelivery, "twice"))), &w); w.Promise != tt.twice {
			t.Errorf("%v: a task that was handed out twice breaks %s; want %s", tt.v.Promises, w.Promise, tt.twice)
		}
		if got := (rule{promise: variant.EffectOnce}).ofWaiting(tt.v); got != tt.not {
			t.Errorf("%v: what did not happen breaks %s; want %s", tt.v.Promises, got, tt.not)
		}
	}
}

// TestUnseenCommands checks that a rule which interrupts commands does not judge a queue whose commands the suite does not see.
func TestUnseenCommands(t *testing.T) {
	hidden, _ := queueimpl.Find("reliable")
	reliable := hidden.New
	hidden.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		env.Redis = []redis.UniversalClient{redis.NewClient(&redis.Options{Addr: env.Redis[0].(*redis.Client).Options().Addr})}
		return reliable(env, o)
	}
	o := newBench(t)
	b := bench{Env: o.Env, Queue: o.Queue, Pass: o.Pass, Variant: hidden}.Measured(t.Context())
	for _, name := range []string{"a consumer that dies between two commands", "answers of calls of which a command fails", "the server forgets its scripts", "a pop held up until its id is due later"} {
		if err := find(t, name).try(t.Context(), b); !errors.As(err, new(*suitetest.NotJudged)) {
			t.Errorf("%s: the rule says %v; want that it does not judge", name, err)
		}
	}
	if err := find(t, "pops up to count").try(t.Context(), b); err != nil {
		t.Errorf("a rule that interrupts nothing: %v", err)
	}
}

// TestHung checks that a rule that does not end accuses the queue only if its last call began long ago.
func TestHung(t *testing.T) {
	good, _ := queueimpl.Find("reliable")
	o := newBench(t)
	b := bench{Env: o.Env, Queue: o.Queue, Pass: o.Pass, Variant: good}
	for ago, breach := range map[time.Duration]bool{answer / 2: false, answer + time.Second: true} {
		err := hung(b, queueclient.Call{What: "pop of 1", Since: time.Now().Add(-ago)})
		if errors.As(err, new(*suitetest.Breach)) != breach || !breach && !errors.As(err, new(*suitetest.TooSlow)) {
			t.Errorf("%v after the last call: %v", ago, err)
		}
	}
}
