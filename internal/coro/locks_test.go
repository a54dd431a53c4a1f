package coro

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"testing"
	"time"

	"oversell/lockimpl"
)

// server answers the commands of locks like a server with no other client.
type server struct{ values map[string]string }

func (s *server) do(command []string) string {
	key := ""
	if len(command) > 1 {
		key = command[1]
	}
	switch command[0] {
	case "set":
		s.values[key] = command[2]
		return "+OK\r\n"
	case "setnx":
		s.values[key] = command[2]
		return ":1\r\n"
	case "get":
		if v, has := s.values[key]; has {
			return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
		}
		return "$-1\r\n"
	case "incr", "del", "expire", "pexpire":
		return ":1\r\n"
	case "evalsha":
		return ":1\r\n" // yes
	}
	return "-ERR unknown command '" + command[0] + "'\r\n"
}

// holds returns a client that acquires the lock, pauses, extends the lease and releases the lock.
func holds(v lockimpl.Variant) Program {
	return func(ctx context.Context, w *Runtime) {
		lock := v.New(w.Env())
		l, err := lock.Acquire(ctx, "a", lockimpl.Options{TTL: 3 * time.Second, Wait: time.Second, RetryEvery: 10 * time.Millisecond})
		if err != nil {
			w.Emit(err)
			return
		}
		defer func() { w.Emit(lock.Release(context.WithoutCancel(ctx), l)) }()
		w.Emit("enter")
		w.Pause("section")
		if l, err = lock.Extend(ctx, l, 6*time.Second); err != nil {
			w.Emit(err)
		}
		w.Pause("section")
	}
}

// play drives a client for at most steps steps. Each step answers the last pending request that is not a sleep. play
// returns the pending requests before each step.
func play(t *testing.T, c *Client, masters, steps int) (log [][]Request) {
	t.Helper()
	servers := make([]server, masters)
	for i := range servers {
		servers[i].values = map[string]string{}
	}
	for now := time.Duration(0); len(c.Pending()) > 0 && len(log) < steps; now += time.Millisecond {
		pending := c.Pending()
		log = append(log, pending)
		at := len(pending) - 1
		for at > 0 && pending[at].Kind == Sleep {
			at--
		}
		o := Observation{Now: max(now, pending[at].Until)}
		for _, command := range pending[at].Commands {
			o.Reply += servers[pending[at].Node].do(command)
		}
		c.Resume(at, o)
		if err := c.Err(); err != nil {
			t.Fatalf("after %+v: %v", pending[at], err)
		}
	}
	return log
}

func optionsFor(v lockimpl.Variant, s *Scripts) Options {
	return Options{
		Masters: max(v.Needs.Masters, 1), Epoch: epoch, Scripts: s,
		Token: func(n int) string { return "t" + strconv.Itoa(n) },
	}
}

// TestEveryLock checks that every lock can be driven from start to end, does the same again with the same observations,
// and can be abandoned at each step.
func TestEveryLock(t *testing.T) {
	const enough = 200
	before := runtime.NumGoroutine()
	for _, v := range lockimpl.Variants {
		t.Run(v.Name, func(t *testing.T) {
			s := &Scripts{}
			run := func(steps int) ([][]Request, []any) {
				o := optionsFor(v, s)
				c := Start(holds(v), o)
				defer c.Close()
				return play(t, c, o.Masters, steps), c.Events()
			}
			log, events := run(enough)
			if len(log) == enough {
				t.Fatalf("it does not end: %+v", log[enough-1])
			}
			if got := fmt.Sprint(events); got != "[enter <nil>]" {
				t.Errorf("it went %s", got)
			}
			for range 3 {
				if again, _ := run(enough); !reflect.DeepEqual(again, log) {
					t.Fatalf("the same observations led to\n%+v\nand\n%+v", log, again)
				}
			}
			for steps := range len(log) {
				if prefix, _ := run(steps); !reflect.DeepEqual(prefix, log[:steps]) && steps > 0 {
					t.Fatalf("%d steps led to\n%+v\nof\n%+v", steps, prefix, log)
				}
			}
		})
	}
	settled(t, before)
}

// TestRenewalsEndWithTheirClient checks that a lock that is renewed in the background is no longer renewed when its client
// has ended.
func TestRenewalsEndWithTheirClient(t *testing.T) {
	for _, name := range []string{"watchdog", "watchdog-naive"} {
		v, _ := lockimpl.Find(name)
		c := Start(func(ctx context.Context, w *Runtime) {
			_, err := v.New(w.Env()).Acquire(ctx, "a", lockimpl.Options{TTL: 3 * time.Second})
			w.Emit(err)
		}, optionsFor(v, nil))
		log := play(t, c, 1, 100)
		sure(t, c)
		if len(log) == 100 {
			t.Errorf("%s does not end", name)
		}
		c.Close()
	}
}

func BenchmarkLock(b *testing.B) {
	for _, name := range []string{"lua-release", "watchdog", "redlock"} {
		v, _ := lockimpl.Find(name)
		b.Run(name, func(b *testing.B) {
			s := &Scripts{}
			o := optionsFor(v, s)
			steps := 0
			for b.Loop() {
				c := Start(holds(v), o)
				for now := time.Duration(0); len(c.Pending()) > 0; now++ {
					at := len(c.Pending()) - 1
					for at > 0 && c.Pending()[at].Kind == Sleep {
						at--
					}
					ob := Observation{Now: now}
					if r := c.Pending()[at]; r.Kind == Command {
						ob.Reply = ":1\r\n"
						if r.Commands[0][0] == "set" {
							ob.Reply = "+OK\r\n"
						}
					}
					c.Resume(at, ob)
					steps++
				}
				c.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
		})
	}
}
