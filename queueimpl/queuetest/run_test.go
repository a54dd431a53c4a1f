package queuetest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/servertest"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
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
