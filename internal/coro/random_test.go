package coro

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"oversell/lockimpl"
)

// keeps returns a client that ends without releasing the lock.
func keeps(v lockimpl.Variant) Program {
	return func(ctx context.Context, w *Runtime) {
		_, err := v.New(w.Env()).Acquire(ctx, "a", lockimpl.Options{TTL: 3 * time.Second})
		w.Emit(err)
		for range 10 {
			w.Pause("section")
		}
	}
}

// wander drives a client at random: any thread, slow or fast, with lost answers and with deadlines that come before the
// answer. It crashes the client after a random number of steps.
func wander(t *testing.T, c *Client, masters int, seed uint64) (log []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	servers := make([]server, masters)
	for i := range servers {
		servers[i].values = map[string]string{}
	}
	var now time.Duration
	for steps := 100 + random.IntN(100); len(c.Pending()) > 0 && steps > 0; steps-- {
		pending := c.Pending()
		at := random.IntN(len(pending))
		now += time.Duration(random.IntN(50)) * time.Millisecond
		o := chance(random, pending[at], servers, now)
		now = max(now, o.Now)
		log = append(log, fmt.Sprintf("%+v %d %+v", pending, at, o))
		c.Resume(at, o)
		if err := c.Err(); err != nil {
			t.Fatalf("after %+v with %+v: %v", pending[at], o, err)
		}
	}
	c.Close()
	return append(log, fmt.Sprint(c.Events()))
}

// chance returns a random observation that is possible for a thread.
func chance(random *rand.Rand, r Request, servers []server, now time.Duration) Observation {
	o := Observation{Now: now}
	if r.Deadline > 0 && random.IntN(4) == 0 {
		o.Now = max(now, r.Deadline)
		if r.Kind == Command {
			o.Failure = TimedOut
		}
		return o
	}
	if r.Kind != Command {
		o.Now = max(now, r.Until)
		return o
	}
	if random.IntN(4) == 0 {
		o.Failure = NoAnswer
		return o
	}
	for _, command := range r.Commands {
		answer := servers[r.Node].do(command)
		if command[0] == "evalsha" && random.IntN(4) == 0 {
			answer = ":0\r\n"
		}
		o.Reply += answer
	}
	return o
}

func TestAtRandom(t *testing.T) {
	for _, v := range lockimpl.Variants {
		t.Run(v.Name, func(t *testing.T) {
			s := &Scripts{}
			o := optionsFor(v, s)
			for seed := range uint64(60) {
				p := holds(v)
				if seed%3 == 0 {
					p = keeps(v)
				}
				first := wander(t, Start(p, o), o.Masters, seed)
				if second := wander(t, Start(p, o), o.Masters, seed); !reflect.DeepEqual(first, second) {
					i := 0
					for first[i] == second[i] {
						i++
					}
					t.Fatalf("seed %d: step %d is\n%s\nor\n%s", seed, i, first[i], second[i])
				}
			}
		})
	}
}
