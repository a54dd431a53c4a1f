package claims

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/variant"
)

// documentsQueue is the interface of the documents' queue.
type documentsQueue interface {
	queueimpl.Queue
	queueimpl.Delayer
	queueimpl.Dequeuer
}

// queue returns a client of the documents' queue under the named lock.
func (b *bench) queue(ctx context.Context, lock string, overwrite bool) (documentsQueue, error) {
	l, ok := lockimpl.Find(lock)
	if !ok {
		return nil, fmt.Errorf("no lock %q", lock)
	}
	env, err := b.env(ctx)
	if err != nil {
		return nil, err
	}
	v, ok := queueimpl.Find("zset-locked")
	if !ok {
		return nil, errors.New("the documents' queue is gone")
	}
	q, ok := v.New(env, queueimpl.Options{
		Lock:        l.New,
		LockOptions: lockimpl.Options{TTL: 10 * time.Second, Wait: 10 * time.Second, RetryEvery: shortWait},
		Overwrite:   overwrite,
	}).(documentsQueue)
	if !ok {
		return nil, errors.New("the documents' queue does not do what it did")
	}
	return q, nil
}

// entries describes an id that was enqueued twice.
type entries struct {
	count int  // in the queue
	moved bool // to the later due time
}

// enqueuedTwice measures C7.
func enqueuedTwice(ctx context.Context, b *bench) (a answer, err error) {
	var printed, prose entries
	for _, x := range []struct {
		overwrite bool
		e         *entries
	}{{false, &printed}, {true, &prose}} {
		if *x.e, err = b.enqueueTwice(ctx, fmt.Sprintf("orders-%v", x.overwrite), x.overwrite); err != nil {
			return a, err
		}
	}
	double := map[string]int{}
	for _, lock := range []string{ownLock, soundLock} {
		rs, err := b.again(ctx, 1, "--scenario", "queue", "--queue", "zset-locked", "--lock", lock, "--repeat", "0.5", "--clients", "16")
		if err != nil {
			return a, err
		}
		double[lock] = rs[0].broke(variant.Queue, variant.OneEntryPerID)
	}
	a.is = oneEntry(printed, prose, double[ownLock])
	a.says = fmt.Sprintf("One client's two enqueues of an id left %d entry, and the printed code %s the later one and its due time; only with --overwrite, as the text describes it, does the later one win. In a run that enqueued half of the ids again, two producers were both told that they had added the entry %d times under the printed lock, and %d times under lua-release.",
		printed.count, ignored(printed.moved), double[ownLock], double[soundLock])
	a.numbers = []reports.Quantity{
		number("entries after two enqueues of one id", printed.count, ""),
		yes("the later due time stands, printed code", printed.moved),
		yes("the later due time stands, with --overwrite", prose.moved),
		number("ids that were added twice in a run with repeats, printed lock", double[ownLock], ""),
		number("ids that were added twice in a run with repeats, lua-release", double[soundLock], ""),
	}
	return a, nil
}

// The lock that the queue was printed with, and one that excludes other clients.
const (
	ownLock   = "php-lock-printed"
	soundLock = "lua-release"
)

func ignored(moved bool) string {
	if moved {
		return "follows"
	}
	return "ignores"
}

// enqueueTwice enqueues an id with due time now, and again with due time one minute later.
func (b *bench) enqueueTwice(ctx context.Context, name string, overwrite bool) (e entries, err error) {
	q, err := b.queue(ctx, ownLock, overwrite)
	if err != nil {
		return e, err
	}
	name = b.key(name)
	first, err := q.Enqueue(ctx, name, "1")
	if err != nil {
		return e, err
	}
	if _, err := q.EnqueueAfter(ctx, name, time.Minute, "1"); err != nil {
		return e, err
	}
	s, err := q.State(ctx, name)
	if err != nil || len(first) == 0 {
		return e, err
	}
	e.count = len(s.Waiting)
	for _, t := range s.Waiting {
		e.moved = e.moved || t.Score > first[0].Score
	}
	return e, nil
}

// oneEntry decides C7 by the printed code, the variant described in the text, and the number of ids that were in
// the queue twice in a run.
func oneEntry(printed, prose entries, double int) string {
	switch {
	case !prose.moved:
		return reports.Inconclusive // a later due time has no effect
	case printed.count > 1 || double > 0 || !printed.moved:
		return reports.Refuted
	}
	return reports.Confirmed
}

// taken counts entries that were both withdrawn by dequeue and delivered by pop, or delivered twice.
type taken struct{ entries, twice int }

// consistent measures C8.
func consistent(ctx context.Context, b *bench) (a answer, err error) {
	locks := []string{"none", ownLock, soundLock}
	by := map[string]taken{}
	for _, lock := range locks {
		if by[lock], err = b.withdrawAndPop(ctx, lock, time.Duration(b.times(1500, 800))*time.Millisecond); err != nil {
			return a, err
		}
	}
	stale, fresh, err := b.staleScore(ctx)
	if err != nil {
		return a, err
	}
	runs := map[string]ran{}
	for _, lock := range locks[1:] {
		rs, err := b.again(ctx, 1, "--scenario", "queue", "--queue", "zset-locked", "--lock", lock, "--clients", "16")
		if err != nil {
			return a, err
		}
		runs[lock] = rs[0]
	}
	delivered := runs[locks[1]].broke(variant.Queue, variant.NoDuplicateDelivery)
	sound := runs[locks[2]].broke(variant.Queue, variant.NoDuplicateDelivery)
	a.is = keepsConsistent(by[locks[0]], underLock{by[locks[1]], delivered}, underLock{by[locks[2]], sound}, stale, fresh)
	a.says = fmt.Sprintf("Under the lock that the queue was printed with, %s of %s entries were both withdrawn and delivered, or delivered twice, and a run delivered %s of 1,000 tasks more than once. With one client alone, a stale score was refused. Under lua-release, which excludes other clients, no entry was taken twice (of %s).",
		reports.Thousands(int64(by[ownLock].twice)), reports.Thousands(int64(by[ownLock].entries)), reports.Thousands(int64(delivered)), reports.Thousands(int64(by[soundLock].entries)))
	for _, lock := range locks {
		a.numbers = append(a.numbers, number("entries taken twice, lock "+lock, by[lock].twice, fmt.Sprintf("of %d", by[lock].entries)))
	}
	a.numbers = append(a.numbers,
		number("tasks delivered more than once in a run, printed lock", delivered, "of 1,000"),
		number("tasks delivered more than once in a run, lua-release", sound, "of 1,000"),
		yes("dequeue with a stale score is refused", stale),
		yes("dequeue with the current score succeeds", fresh))
	return a, nil
}

// withdrawers and poppers are the numbers of competing clients in C8.
const (
	withdrawers = 6
	poppers     = 6
)

// withdrawAndPop runs clients that enqueue tasks and withdraw them at once, and clients that pop, and counts the
// entries that were taken more than once.
func (b *bench) withdrawAndPop(ctx context.Context, lock string, lasts time.Duration) (t taken, err error) {
	var mu sync.Mutex
	times := map[queueimpl.Task]int{}
	take := func(id string, score float64) {
		mu.Lock()
		defer mu.Unlock()
		times[queueimpl.Task{ID: id, Score: score}]++
	}
	name := b.key("withdrawn-" + lock)
	var qs [withdrawers + poppers]documentsQueue
	for i := range qs {
		if qs[i], err = b.queue(ctx, lock, false); err != nil {
			return t, err
		}
	}
	var g errgroup.Group
	end := time.Now().Add(lasts)
	for i, q := range qs {
		if i < withdrawers {
			g.Go(func() error { return withdraw(ctx, end, q, name, strconv.Itoa(i+1), take) })
		} else {
			g.Go(func() error { return pop(ctx, end, q, name, take) })
		}
	}
	err = g.Wait()
	for _, n := range times {
		t.entries++
		if n > 1 {
			t.twice++
		}
	}
	return t, err
}

// withdraw enqueues a task and withdraws it, in a loop.
func withdraw(ctx context.Context, end time.Time, q documentsQueue, name, id string, take func(string, float64)) error {
	for ctx.Err() == nil && time.Now().Before(end) {
		in, err := q.Enqueue(ctx, name, id)
		if err != nil && !errors.Is(err, queueimpl.ErrLocked) {
			return err
		}
		if len(in) == 0 {
			continue // still in the queue, or the queue was locked
		}
		err = q.Dequeue(ctx, name, id, in[0].Score)
		switch {
		case err == nil:
			take(id, in[0].Score)
		case !errors.Is(err, queueimpl.ErrLocked) && !errors.Is(err, queueimpl.ErrChanged):
			return err
		}
	}
	return nil
}

// pop takes the tasks that are due, in a loop with short pauses.
func pop(ctx context.Context, end time.Time, q documentsQueue, name string, take func(string, float64)) error {
	for ctx.Err() == nil && time.Now().Before(end) {
		tasks, err := q.Pop(ctx, name, 1)
		if err != nil && !errors.Is(err, queueimpl.ErrLocked) && !errors.Is(err, queueimpl.ErrEmpty) {
			return err
		}
		for _, t := range tasks {
			take(t.ID, t.Score)
		}
		if err != nil {
			(clock.Real{}).Sleep(ctx, time.Millisecond)
		}
	}
	return nil
}

// staleScore reports whether withdrawing a task that was enqueued again is refused with its old score, and accepted
// with its new one.
func (b *bench) staleScore(ctx context.Context) (refused, accepted bool, err error) {
	q, err := b.queue(ctx, ownLock, true)
	if err != nil {
		return false, false, err
	}
	name := b.key("stale")
	first, err := q.Enqueue(ctx, name, "1")
	if err != nil {
		return false, false, err
	}
	second, err := q.EnqueueAfter(ctx, name, time.Minute, "1")
	if err != nil {
		return false, false, err
	}
	err = q.Dequeue(ctx, name, "1", first[0].Score)
	if refused = errors.Is(err, queueimpl.ErrChanged); err != nil && !refused {
		return false, false, err
	}
	err = q.Dequeue(ctx, name, "1", second[0].Score)
	if errors.Is(err, queueimpl.ErrChanged) {
		return refused, false, nil
	}
	return refused, err == nil, err
}

// fewEntries is the minimum number of entries from which to conclude that none was taken twice.
const fewEntries = 20

// underLock is the result of the queue under a lock.
type underLock struct {
	taken
	delivered int // tasks delivered more than once
}

// keepsConsistent decides C8 by the results of the queue without a lock, under the one it was printed with (the
// subject of the claim) and under a correct one, and by whether a stale score was refused and a fresh one accepted.
func keepsConsistent(open taken, printed, correct underLock, stale, fresh bool) string {
	switch {
	case open.twice == 0 || correct.entries < fewEntries || !fresh:
		return reports.Inconclusive // the clients never compete, or too rarely
	case !stale || printed.twice > 0 || printed.delivered > 0 || correct.twice > 0 || correct.delivered > 0:
		return reports.Refuted
	case printed.entries < fewEntries:
		return reports.Inconclusive
	}
	return reports.Confirmed
}
