package queueimpl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/queueimpl"
	"oversell/variant"
)

// Each test in this file is a schedule on a real Redis that shows one flaw, and the same schedule with queues that do not
// have the flaw.

// TestPrintedLockLosesATaskAndPopsOneTwice shows that the printed lock grants B the lock that A holds, between A's SETNX
// and EXPIRE, so that both pop.
func TestPrintedLockLosesATaskAndPopsOneTwice(t *testing.T) {
	on(t, func(s *stage) {
		first := s.client().enqueue("x")
		a := s.popping()
		a.step("setnx") // A owns the lock, and it has no expiry yet
		b := s.popping()
		b.step("setnx", "ttl") // TTL -1: B believes that the owner is dead
		a.step("expire", "zrangebyscore")
		b.step("set", "zrangebyscore")
		b.step("zrem", "get", "del")
		b.ends(nil, "x")
		second := s.client().enqueue("x") // a new entry
		a.step("zrem")                    // removes the new entry: it goes by the id alone
		a.step("get")                     // and ignores that the lock is gone
		a.ends(nil, "x")

		if a.tasks[0] != b.tasks[0] || a.tasks[0].Score != first[0].Score {
			t.Errorf("A has %+v and B %+v; both should have the first entry, %+v", a.tasks[0], b.tasks[0], first[0])
		}
		if second[0].Score == first[0].Score {
			t.Fatal("the two entries have one score; the schedule shows nothing")
		}
		s.lost() // the second entry is lost
	}, "zset-locked", "zset-locked/php-lock")

	on(t, func(s *stage) {
		s.client().enqueue("x")
		a := s.popping()
		a.step("set")
		b := s.popping()
		b.step("set")
		b.ends(queueimpl.ErrLocked)
		if errors.Is(b.at.Err(), queueimpl.ErrEmpty) {
			t.Error("a locked queue was called empty")
		}
		a.step("zrangebyscore", "zrem", "evalsha")
		a.ends(nil, "x")
		s.client().enqueue("x")
		s.waits("x")
	}, "zset-locked/lua-release")

	on(t, func(s *stage) {
		s.client().enqueue("x")
		a, b := s.popping(), s.popping()
		b.step("evalsha")
		s.client().enqueue("y")
		a.step("evalsha")
		b.ends(nil, "x")
		a.ends(nil, "y")
	}, "zset-atomic", "reliable")
}

func TestLockedPopOutlivesItsLease(t *testing.T) {
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a := s.popping()
		a.step("set", "zrangebyscore")
		s.endLease()
		s.client().pops("x")
		a.step("zrem")
		a.step("evalsha") // its release is refused, and the code ignores that
		a.ends(nil, "x")  // the second delivery
		s.waits()
	}, "zset-locked/lua-release")
}

func TestTwoProducersAreBothToldThatTheyEntered(t *testing.T) {
	on(t, func(s *stage) {
		a, b := s.enqueueing("x"), s.enqueueing("x")
		a.step("zscore")
		b.step("zscore")
		a.step("zadd")
		b.step("zadd")
		a.ends(nil, "x")
		b.ends(nil, "x")
		s.waits("x") // but there is only one entry, with b's score
	}, "zset-locked/none")
	on(t, func(s *stage) {
		a, b := s.enqueueing("x"), s.enqueueing("x")
		a.step("set")
		b.step("set")
		b.ends(queueimpl.ErrLocked)
		if !errors.Is(b.at.Err(), variant.ErrStopped) {
			t.Errorf("the refusal %q hides why the waiting ended", b.at.Err())
		}
		a.step("zscore", "zadd", "evalsha")
		a.ends(nil, "x")
	}, "zset-locked/lua-release")
	on(t, func(s *stage) {
		a, b := s.enqueueing("x"), s.enqueueing("x")
		a.step("evalsha")
		b.step("evalsha")
		a.ends(nil, "x")
		b.ends(nil) // b is told that it entered nothing
		if got := s.waits("x"); !near(got[0].Score, a.tasks[0].Score) {
			t.Errorf("the entry has the score %f; a entered it with %f", got[0].Score, a.tasks[0].Score)
		}
	}, "zset-atomic", "reliable")
	on(t, func(s *stage) {
		a, b := s.enqueueing("x"), s.enqueueing("x")
		a.step("xadd")
		b.step("xadd")
		a.ends(nil, "x")
		b.ends(nil, "x")
		s.waits("x", "x") // a stream does not compare ids
	}, "streams")
}

func TestStaleScoreCannotDequeue(t *testing.T) {
	again := func(s *stage) (old, present float64) {
		c := s.client()
		old = c.enqueue("x")[0].Score
		tasks := c.pops("x")
		if a, ok := c.queue.(queueimpl.Acker); ok {
			if err := a.Ack(s.Context(), s.name, tasks[0]); err != nil {
				s.Fatal(err)
			}
		}
		return old, c.enqueue("x")[0].Score
	}
	on(t, func(s *stage) {
		old, present := again(s)
		d := s.client().queue.(queueimpl.Dequeuer)
		if err := d.Dequeue(t.Context(), s.name, "x", old); !errors.Is(err, queueimpl.ErrChanged) {
			t.Errorf("dequeue with the score of an earlier entry answered %v; want %v", err, queueimpl.ErrChanged)
		}
		s.waits("x")
		if err := d.Dequeue(t.Context(), s.name, "x", present); err != nil {
			t.Errorf("dequeue with the present score answered %v", err)
		}
		s.waits()
	}, "zset-locked", "zset-locked/lua-release", "zset-atomic", "reliable", "range-run-remove")
	// If the lock does not exclude, an outdated score can dequeue.
	on(t, func(s *stage) {
		in := s.client().enqueue("x")
		d := s.dequeueing("x", in[0].Score)
		d.step("zscore") // still the same score
		s.client().pops("x")
		s.client().enqueue("x")
		d.step("zrem") // removes the new entry
		d.ends(nil)
		s.lost()
	}, "zset-locked/none")
	on(t, func(s *stage) {
		in := s.client().enqueue("x")
		d := s.dequeueing("x", in[0].Score)
		s.client().pops("x")
		s.client().enqueue("x")
		d.step("evalsha")
		d.ends(queueimpl.ErrChanged)
		s.waits("x")
	}, "zset-atomic")
}

// TestConsumerDiesAfterPop shows what happens to a task whose consumer dies after the pop.
func TestConsumerDiesAfterPop(t *testing.T) {
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a := s.popping()
		a.step("set", "zrangebyscore", "zrem")
		a.at.Crash() // before it releases the lock
		s.endLease()
		s.lost()
	}, "zset-locked/lua-release")
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a := s.popping()
		a.step("evalsha")
		a.at.Crash()
		s.lost()
	}, "zset-atomic")

	returns := func(t *testing.T, commands ...string) func(*stage) {
		return func(s *stage) {
			s.o.Visibility = 20 * time.Millisecond
			in := s.client().enqueue("x")
			a := s.popping()
			a.step(commands...)
			a.ends(nil, "x")
			a.at.Crash()
			got := s.comes("x")
			if got.Attempt != 2 || got.Score != in[0].Score {
				t.Errorf("x came back as %+v; want attempt 2 and score %f", got, in[0].Score)
			}
			c := s.client().queue.(queueimpl.Acker)
			if err := c.Ack(t.Context(), s.name, a.tasks[0]); !errors.Is(err, queueimpl.ErrLost) {
				t.Errorf("the dead consumer's ack answered %v; want %v", err, queueimpl.ErrLost)
			}
			if err := c.Ack(t.Context(), s.name, got); err != nil {
				t.Errorf("the ack answered %v", err)
			}
			s.waits()
		}
	}
	on(t, returns(t, "evalsha"), "reliable")
	on(t, returns(t, "xautoclaim", "xgroup", "xautoclaim", "xreadgroup"), "streams")
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a := s.popping()
		a.step("evalsha")
		a.at.Crash()
		s.client().pops("x")
	}, "range-run-remove")
}

// TestJournalSettlesAnUnansweredPop checks that the journal tells a client without a reply what its pop took.
func TestJournalSettlesAnUnansweredPop(t *testing.T) {
	on(t, func(s *stage) {
		s.client().enqueue("x", "y")
		a := s.client().begin(func(ctx context.Context, c *client) error {
			_, err := c.queue.(queueimpl.Journaler).PopAs(ctx, c.name, "request-7", 1)
			return err
		})
		j := s.client().queue.(queueimpl.Journaler)
		if took, err := j.Popped(t.Context(), s.name, "request-7"); err != nil || len(took) > 0 {
			t.Errorf("before the pop the journal says %v, %v", took, err)
		}
		a.step("evalsha") // and the reply is lost
		took, err := j.Popped(t.Context(), s.name, "request-7")
		if err != nil || len(took) != 1 || took[0].ID != "x" {
			t.Errorf("the journal says %v, %v; want x", took, err)
		}
		again, err := j.PopAs(t.Context(), s.name, "request-7", 1)
		if err != nil || len(again) != 1 || again[0].ID != "x" || again[0].Receipt != took[0].Receipt {
			t.Errorf("the request sent again took %v, %v; want %v", again, err, took)
		}
		s.waits("y")
	}, "zset-atomic", "reliable")
}

func TestDeadClientLeavesThePrintedLockForDecades(t *testing.T) {
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a := s.popping()
		a.step("setnx", "expire")
		a.at.Crash()
		left, err := s.admin().TTL(t.Context(), "Lock:Queue:"+s.name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if years := left.Hours() / 24 / 365; years < 50 {
			t.Errorf("the lock's lease is %v", left)
		}
		if _, err := s.client().queue.Pop(t.Context(), s.name, 1); !errors.Is(err, queueimpl.ErrLocked) {
			t.Errorf("pop answered %v; want %v", err, queueimpl.ErrLocked)
		}
	}, "zset-locked")
}

// TestRangeRunRemoveDeliversTwice shows that two clients that poll range-run-remove get the same task.
func TestRangeRunRemoveDeliversTwice(t *testing.T) {
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a, b := s.popping(), s.popping()
		a.step("evalsha")
		b.step("evalsha")
		a.ends(nil, "x")
		b.ends(nil, "x")
		ack := func(c *client) error {
			return s.client().queue.(queueimpl.Acker).Ack(t.Context(), s.name, c.tasks[0])
		}
		if err := ack(a); err != nil {
			t.Errorf("A's removal answered %v", err)
		}
		s.client().enqueue("x")
		if err := ack(b); err != nil { // removes the new entry
			t.Errorf("B's removal answered %v", err)
		}
		s.lost()
	}, "range-run-remove")
	on(t, func(s *stage) {
		s.client().enqueue("x")
		a, b := s.popping(), s.popping()
		a.step("evalsha")
		b.step("evalsha")
		a.ends(nil, "x")
		b.ends(queueimpl.ErrEmpty)
	}, "zset-atomic", "reliable")
	on(t, func(s *stage) {
		s.client().enqueue("x")
		s.client().pops("x") // creates the consumer group
		s.client().enqueue("y")
		a, b := s.popping(), s.popping()
		a.step("xautoclaim")
		b.step("xautoclaim", "xreadgroup")
		a.step("xreadgroup", "xautoclaim")
		b.ends(nil, "y")
		a.ends(queueimpl.ErrEmpty)
	}, "streams")
}

// TestResentEnqueueAfterThePop shows what happens to an id that is enqueued again, because the answer was lost, after its
// task was popped.
func TestResentEnqueueAfterThePop(t *testing.T) {
	on(t, func(s *stage) {
		s.client().enqueue("x")
		s.client().pops("x")
		s.client().enqueue("x")
		s.client().pops("x") // delivered a second time
	}, "zset-locked", "zset-atomic", "streams")
	on(t, func(s *stage) {
		s.client().enqueue("x")
		s.client().pops("x")
		in, err := s.client().queue.Enqueue(t.Context(), s.name, "x")
		if err != nil || len(in) > 0 {
			t.Errorf("enqueue of a claimed id answered %v, %v; it is in the queue still", in, err)
		}
		s.client().pops()
	}, "reliable")
}

// TestWorkersClock shows what a worker pops whose clock is an hour off.
func TestWorkersClock(t *testing.T) {
	delayed := func(s *stage, off, after time.Duration) error {
		s.Helper()
		if _, err := s.client().queue.(queueimpl.Delayer).EnqueueAfter(s.Context(), s.name, after, "x"); err != nil {
			s.Fatal(err)
		}
		worker := s.clientAt(clock.NewVirtual(time.Now().Add(off)))
		_, err := worker.queue.Pop(s.Context(), s.name, 1)
		return err
	}
	on(t, func(s *stage) {
		if err := delayed(s, time.Hour, time.Minute); err != nil {
			t.Errorf("a worker whose clock is ahead was answered %v; by its clock the task is due", err)
		}
		if err := delayed(s, -time.Hour, 0); !errors.Is(err, queueimpl.ErrEmpty) {
			t.Errorf("a worker whose clock is behind was answered %v; by its clock nothing is due", err)
		}
	}, "zset-locked", "zset-locked/lua-release")
	on(t, func(s *stage) {
		if err := delayed(s, time.Hour, time.Minute); !errors.Is(err, queueimpl.ErrEmpty) {
			t.Errorf("a worker whose clock is ahead was answered %v; want %v", err, queueimpl.ErrEmpty)
		}
	}, "zset-atomic", "reliable", "range-run-remove")
	on(t, func(s *stage) {
		if err := delayed(s, -time.Hour, 0); err != nil {
			t.Errorf("a worker whose clock is behind was answered %v", err)
		}
	}, "zset-atomic", "reliable", "range-run-remove")
}

// TestPrintedQueueTakesAnything checks that zset-locked accepts the arguments that the code in the documents accepts.
func TestPrintedQueueTakesAnything(t *testing.T) {
	on(t, func(s *stage) {
		c := s.client()
		q := c.queue.(interface {
			queueimpl.Timed
			queueimpl.Delayer
		})
		now, err := q.EnqueueAfter(t.Context(), s.name, 0, "due")
		if err != nil {
			t.Fatal(err)
		}
		past, err := q.EnqueueAfter(t.Context(), s.name, -time.Hour, "past")
		if err != nil || past[0].Score > now[0].Score-3599 {
			t.Fatalf("a delay of -1h entered %v, %v; want a score an hour before %v", past, err, now)
		}
		if in, err := q.EnqueueWithin(t.Context(), s.name, time.Second, 0, "a", "", "0"); err != nil || len(in) != 3 {
			t.Fatalf("empty ids within a list: entered %v, %v; want all three", in, err)
		}
		for _, empty := range []string{"", "0"} {
			if _, err := q.EnqueueWithin(t.Context(), s.name, time.Second, 0, empty); !errors.Is(err, queueimpl.ErrBadCall) {
				t.Errorf("a single id %q: %v; want a bad call", empty, err)
			}
		}
		c.pops("past", "due", "", "0", "a")
	}, "zset-locked", "zset-locked/lua-release")
}

// TestTimeoutsPerCall checks that, as in the documents, the timeout is that of the call: a call that finds the lock held
// waits for that long. A pop does not wait.
func TestTimeoutsPerCall(t *testing.T) {
	on(t, func(s *stage) {
		var waited []time.Duration
		env := variant.Env{
			Redis: []redis.UniversalClient{connect(t, s.target)},
			Clock: clock.Real{},
			Token: func() string { return "b" },
			Wait: func(_ context.Context, _ string, atMost time.Duration) error {
				waited = append(waited, atMost)
				return variant.ErrStopped
			},
		}
		o := s.o
		o.LockOptions.RetryEvery = time.Hour
		q := s.v.New(env, o).(queueimpl.Timed)
		holder := s.enqueueing("x")
		holder.step("set") // it holds the lock
		calls := map[string]func(timeout time.Duration) error{
			"enqueue": func(d time.Duration) error {
				_, err := q.EnqueueWithin(t.Context(), s.name, d, 0, "y")
				return err
			},
			"dequeue": func(d time.Duration) error { return q.DequeueWithin(t.Context(), s.name, "x", 1, d) },
			"pop": func(d time.Duration) error {
				_, err := q.PopWithin(t.Context(), s.name, 1, d)
				return err
			},
		}
		for name, call := range calls {
			waited = nil
			if err := call(7 * time.Minute); !errors.Is(err, queueimpl.ErrLocked) {
				t.Errorf("%s of a locked queue: %v; want %v", name, err, queueimpl.ErrLocked)
			}
			if name == "pop" {
				if len(waited) != 0 {
					t.Errorf("pop waited %v; its timeout is not passed on", waited)
				}
				continue
			}
			if len(waited) != 1 || waited[0] > 7*time.Minute || waited[0] < 6*time.Minute {
				t.Errorf("%s waited %v; want its own timeout of 7m", name, waited)
			}
			if err := call(0); !errors.Is(err, queueimpl.ErrBadCall) {
				t.Errorf("%s with a timeout of 0: %v; want a bad call", name, err)
			}
		}
	}, "zset-locked/lua-release")
}
