package queuerules

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/keyname"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// AnswersStay makes two enqueues and two pops with one client. The second call must not change what the first one returned: a task is a
// plain value.
func AnswersStay(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(long)
	first, err := c.Enter(ctx, queueclient.TheInterface, "a")
	if err != nil {
		return err
	}
	entered := slices.Clone(first)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "b"); err != nil {
		return err
	}
	if !slices.Equal(first, entered) {
		return suitetest.Broken(queueclient.TheInterface, "an enqueue answered %q, and after another enqueue of the same client that answer is %q", queueclient.IDsOf(entered), queueclient.IDsOf(first))
	}
	got, err := c.Take(ctx, 1)
	if err != nil || len(got) != 1 {
		return err // another rule's business
	}
	taken := slices.Clone(got)
	if _, err := c.Take(ctx, 1); err != nil {
		return err
	}
	if !slices.Equal(got, taken) {
		return suitetest.Broken(queueclient.TheInterface, "a pop answered %q, and after another pop of the same client that answer is %q", queueclient.IDsOf(taken), queueclient.IDsOf(got))
	}
	return nil
}

// LargeCounts asks for more tasks than a number of 15 or 16 bits can say. ErrEmpty is wrong while a task is due. Any other error leaves the
// outcome open. Much larger counts would need too much memory in a queue that makes room for the answer first.
func LargeCounts(ctx context.Context, b queueclient.Bench) error {
	for _, count := range []int{1 << 15, 1 << 16} {
		c := b.Client(long)
		c.Name = fmt.Sprint(b.Queue, "-", count)
		if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
			return err
		}
		if _, err := c.Queue.Pop(ctx, c.Name, count); !errors.Is(err, queueimpl.ErrEmpty) {
			continue
		}
		if got, err := c.Take(ctx, 1); err != nil || len(got) == 0 {
			return err // it may not have been due yet
		}
		return suitetest.Broken(b.Waiting(), "pop of %d answered %q, and a pop of 1 after it got the task: it was due", count, queueimpl.ErrEmpty)
	}
	return nil
}

// AfterEmpty has a client pop from an empty queue, and then another client enqueue a task. The next pop of the first client must not answer
// ErrEmpty. A queue may round the due time up to whole milliseconds, so the rule waits for some before that pop. It accuses the queue only
// if, five times in a row, the pop answers ErrEmpty and a third client then gets the task at once.
func AfterEmpty(ctx context.Context, b queueclient.Bench) error {
	const tries, rounding = 5, 5 * time.Millisecond
	for n := range tries {
		own := b
		own.Queue = fmt.Sprint(b.Queue, n)
		c, producer, other := own.Client(long), own.Client(long), own.Client(long)
		if _, err := c.ExpectTake(ctx, queueclient.TheInterface, 1); err != nil {
			return err
		}
		if _, err := producer.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
			return err
		}
		own.Passes(ctx, rounding)
		if got, err := c.Take(ctx, 1); err != nil || len(got) > 0 {
			return err
		}
		if got, err := other.Take(ctx, 1); err != nil || len(got) == 0 {
			return err
		}
	}
	return suitetest.Broken(b.Waiting(), "a client popped from an empty queue, another enqueued a task, and %v later the first one's pop answered %q though a third client got the task at once: %d times of %d", rounding, queueimpl.ErrEmpty, tries, tries)
}

// PeeksOften looks at a task several times, and then takes it: the looks are no deliveries.
func PeeksOften(ctx context.Context, b queueclient.Bench) error {
	const looks = 12
	c := b.Client(long)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
		return err
	}
	for range looks {
		if _, err := c.Queue.(queueimpl.Peeker).Peek(ctx, c.Name, 1); err != nil {
			return suitetest.Broken(queueclient.TheInterface, "peek answered %s", queueclient.Say(err))
		}
	}
	t, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
	if err == nil && t.Attempt > 1 {
		err = suitetest.Broken(queueclient.TheInterface, "after %d looks at a task (Peek) its first delivery is called attempt %d", looks, t.Attempt)
	}
	return err
}

// NearScore withdraws a task with a score that is a little higher or lower than its own, by what the queue's scores can tell apart: such a task
// does not wait.
func NearScore(ctx context.Context, b queueclient.Bench) error {
	for i, by := range []float64{1, -1, 20} {
		c := b.Client(long)
		c.Name = fmt.Sprint(b.Queue, "-", i)
		in, err := c.Enter(ctx, queueclient.TheInterface, "a")
		if err != nil {
			return err
		}
		by *= grain(in[0].Score)
		if err := c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, c.Name, "a", in[0].Score+by); err == nil {
			return suitetest.Broken(queueclient.TheInterface, "dequeue of a task that is due at %.6f, with the score %.6f, answered success: want ErrChanged, since the scores differ", in[0].Score, in[0].Score+by)
		}
	}
	return nil
}

// grain is a difference of scores that a queue can tell apart which has this score: 20 µs, unless it seems to count in whole milliseconds or
// seconds.
func grain(score float64) float64 {
	for _, unit := range []float64{1, 1e-3} {
		if n := score / unit; math.Abs(n-math.Round(n)) < 1e-3 {
			return unit
		}
	}
	return 20e-6
}

// RepeatOfFar enqueues an id again that waits, with delays from none to months in all pairs: the queue keeps one entry.
func RepeatOfFar(ctx context.Context, b queueclient.Bench) error {
	delays := []time.Duration{0, time.Minute, 2 * time.Hour, 26 * time.Hour, 40 * day, 400 * day}
	for _, first := range delays[1:] {
		for _, then := range delays {
			c := b.Client(long)
			c.Name = fmt.Sprintf("%s-%v-%v", b.Queue, first, then)
			d := c.Queue.(queueimpl.Delayer)
			_, err := d.EnqueueAfter(ctx, c.Name, first, "a")
			if err == nil {
				_, err = d.EnqueueAfter(ctx, c.Name, then, "a")
			}
			if errors.Is(err, queueimpl.ErrBadCall) || errors.Is(err, errors.ErrUnsupported) {
				continue // it does not take such a delay
			}
			if err != nil {
				return suitetest.Broken(queueclient.TheInterface, "enqueue with a delay of %v, and again with a delay of %v, answered %s", first, then, queueclient.Say(err))
			}
			s, err := c.State(ctx, c.Name)
			if err != nil {
				return suitetest.Broken(queueclient.TheInterface, "state answered %q", err)
			}
			if ids := queueclient.IDsOf(s.Waiting); len(ids) != 1 {
				return suitetest.Broken(variant.OneEntryPerID, "an id was enqueued with a delay of %v, and again with a delay of %v: by the state, %q wait", first, then, ids)
			}
		}
	}
	return nil
}

// OwnIDs enqueues ids that a queue of this kind has as fields and members of its keys, beside those of its tasks: a counter, say, which is a
// field of the hash of the tasks.
func OwnIDs(ctx context.Context, b queueclient.Bench) error {
	const id, most = "task-of-another", 12
	c := b.Client(queueclient.SetVisibility)
	c.Name = b.Queue + "-before"
	for range 2 {
		if _, err := c.Enter(ctx, queueclient.TheInterface, id); err != nil {
			return err
		}
		if got, err := c.Take(ctx, 1); err != nil || len(got) != 1 || c.Done(ctx, got...) != nil {
			return err // another rule's business
		}
	}
	if _, err := c.Enter(ctx, queueclient.TheInterface, id); err != nil {
		return err
	}
	names, err := namesIn(ctx, c.Env.Redis, c.Name)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, id) })
	for i, name := range names[:min(len(names), most)] {
		own := b.Client(long)
		own.Name = fmt.Sprint(b.Queue, "-", i)
		if _, err := own.Enter(ctx, queueclient.TheInterface, "first"); err != nil {
			return err
		}
		if _, err := own.Enqueue(ctx, own.Name, name); errors.Is(err, queueimpl.ErrBadCall) {
			continue
		} else if err != nil {
			return suitetest.Broken(queueclient.TheInterface, "enqueue of %q, which a key of such a queue has as a field or member, answered %s", name, queueclient.Say(err))
		}
		what := fmt.Sprintf("%q was enqueued, which a key of such a queue has as a field or member", name)
		if _, err := own.Enter(ctx, queueclient.TheInterface, "last"); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := held(ctx, own, what, "first", name, "last"); err != nil {
			return err
		}
		if err := own.Usable(ctx, what); err != nil {
			return err
		}
	}
	return nil
}

// held takes these tasks, one by one, and is done with them when it has all.
func held(ctx context.Context, c *queueclient.Client, what string, ids ...string) error {
	var got []queueimpl.Task
	err := c.Bench.Until(ctx, fmt.Sprintf("delivery of %q", ids), func() (bool, error) {
		more, err := c.Take(ctx, 1)
		got = append(got, more...)
		return len(got) == len(ids), err
	})
	if errors.As(err, new(*queueclient.Never)) {
		return c.Lost(ctx, nil, "%s: %q were not all delivered, but %q", what, ids, queueclient.IDsOf(got))
	}
	if err == nil {
		err = c.Done(ctx, got...)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// namesIn are the fields of hashes, and the members of sets, sorted sets and lists, in the keys with a name.
func namesIn(ctx context.Context, servers []redis.UniversalClient, name string) (all []string, _ error) {
	for _, rdb := range servers {
		keys, err := keyname.Of(ctx, rdb, name)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			// A command for another type of key answers an error, and nothing.
			fields, _ := rdb.HKeys(ctx, key).Result()
			members, _ := rdb.SMembers(ctx, key).Result()
			sorted, _ := rdb.ZRange(ctx, key, 0, 99).Result()
			listed, _ := rdb.LRange(ctx, key, 0, 99).Result()
			all = slices.Concat(all, fields, members, sorted, listed)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
