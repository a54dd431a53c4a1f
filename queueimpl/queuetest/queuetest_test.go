package queuetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/mutants/queues"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/server"
	"oversell/variant"
)

// A suite that never fails proves nothing. Each saboteur is a correct queue with one flaw, and the suite must name the
// promise that it breaks.

// full has all the methods of the queue "reliable".
type full interface {
	queueimpl.Queue
	queueimpl.Delayer
	queueimpl.Deduper
	queueimpl.Dequeuer
	queueimpl.Peeker
	queueimpl.Acker
	queueimpl.Extender
	queueimpl.Reclaimer
	queueimpl.DeadLetters
	queueimpl.Journaler
}

// saboteur is a queue some of whose methods are replaced by hooks.
type saboteur struct {
	full
	hooks
	pops int
}

type hooks struct {
	enqueue func(ctx context.Context, q full, name string, after time.Duration, ids []string) ([]queueimpl.Task, error)
	// pop gets the result of a pop and may change it; nth counts this client's pops from 1.
	pop     func(ctx context.Context, q full, name string, nth int, tasks []queueimpl.Task, err error) ([]queueimpl.Task, error)
	state   func(queueimpl.State) queueimpl.State
	dequeue func(ctx context.Context, q full, name, id string, score float64) error
	peek    func(ctx context.Context, q full, name string, count int) ([]queueimpl.Task, error)
	ack     func(ctx context.Context, q full, name string, t queueimpl.Task) error
	extend  func(t queueimpl.Task) (queueimpl.Task, error)
	reclaim func(n int) int
	dead    func([]queueimpl.Task) []queueimpl.Task
	popAs   func(ctx context.Context, q full, name, request string, count int) ([]queueimpl.Task, error)
	popped  func([]queueimpl.Task) []queueimpl.Task
	options func(*queueimpl.Options)
	rename  func(string) string
}

func (s *saboteur) as(name string) string {
	if s.rename == nil || name == "" {
		return name
	}
	return s.rename(name)
}

func (s *saboteur) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return s.EnqueueAfter(ctx, name, 0, ids...)
}

func (s *saboteur) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	if s.enqueue != nil {
		return s.enqueue(ctx, s.full, s.as(name), after, ids)
	}
	return s.full.EnqueueAfter(ctx, s.as(name), after, ids...)
}

func (s *saboteur) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := s.full.Pop(ctx, s.as(name), count)
	if s.pops++; s.pop != nil {
		return s.pop(ctx, s.full, s.as(name), s.pops, tasks, err)
	}
	return tasks, err
}

func (s *saboteur) State(ctx context.Context, name string) (queueimpl.State, error) {
	got, err := s.full.State(ctx, s.as(name))
	if s.state != nil {
		got = s.state(got)
	}
	return got, err
}

func (s *saboteur) Dequeue(ctx context.Context, name, id string, score float64) error {
	if s.dequeue != nil {
		return s.dequeue(ctx, s.full, s.as(name), id, score)
	}
	return s.full.Dequeue(ctx, s.as(name), id, score)
}

func (s *saboteur) Peek(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if s.peek != nil {
		return s.peek(ctx, s.full, s.as(name), count)
	}
	return s.full.Peek(ctx, s.as(name), count)
}

func (s *saboteur) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if s.ack != nil {
		return s.ack(ctx, s.full, s.as(name), t)
	}
	return s.full.Ack(ctx, s.as(name), t)
}

func (s *saboteur) Extend(ctx context.Context, name string, t queueimpl.Task) (queueimpl.Task, error) {
	if s.extend != nil {
		return s.extend(t)
	}
	return s.full.Extend(ctx, s.as(name), t)
}

func (s *saboteur) Reclaim(ctx context.Context, name string) (int, error) {
	n, err := s.full.Reclaim(ctx, s.as(name))
	if s.reclaim != nil {
		n = s.reclaim(n)
	}
	return n, err
}

func (s *saboteur) Dead(ctx context.Context, name string) ([]queueimpl.Task, error) {
	tasks, err := s.full.Dead(ctx, s.as(name))
	if s.dead != nil {
		tasks = s.dead(tasks)
	}
	return tasks, err
}

func (s *saboteur) PopAs(ctx context.Context, name, request string, count int) ([]queueimpl.Task, error) {
	if s.popAs != nil {
		return s.popAs(ctx, s.full, s.as(name), request, count)
	}
	return s.full.PopAs(ctx, s.as(name), request, count)
}

func (s *saboteur) Popped(ctx context.Context, name, request string) ([]queueimpl.Task, error) {
	tasks, err := s.full.Popped(ctx, s.as(name), request)
	if s.popped != nil {
		tasks = s.popped(tasks)
	}
	return tasks, err
}

// ackedLetters notes the receipts by which dead letters of reliable were acknowledged, by their ids.
func ackedLetters() (noted *sync.Map, ack func(context.Context, full, string, queueimpl.Task) error) {
	noted = new(sync.Map)
	return noted, func(ctx context.Context, q full, name string, t queueimpl.Task) error {
		letters, err := q.Dead(ctx, name)
		if err != nil {
			return err
		}
		err = q.Ack(ctx, name, t)
		if err == nil && slices.Contains(idsOf(letters), t.ID) {
			noted.Store(name+t.ID, t.Receipt)
		}
		return err
	}
}

// staysTaken ignores an id of which a dead letter was acknowledged, as one that is there.
func staysTaken() hooks {
	noted, ack := ackedLetters()
	return hooks{ack: ack, enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
		free := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, there := noted.Load(name + id); return there })
		if len(free) == 0 && len(ids) > 0 {
			return nil, nil
		}
		return q.EnqueueAfter(ctx, name, after, free...)
	}}
}

// staysValid accepts the receipt of an acknowledged dead letter for a later entry with the same id: the ack removes that entry.
func staysValid() hooks {
	noted, ack := ackedLetters()
	return hooks{ack: func(ctx context.Context, q full, name string, t queueimpl.Task) error {
		if receipt, there := noted.Load(name + t.ID); there && receipt == t.Receipt {
			s, err := q.State(ctx, name)
			i := slices.IndexFunc(s.Waiting, func(w queueimpl.Task) bool { return w.ID == t.ID })
			if err != nil || i < 0 {
				return queueimpl.ErrLost
			}
			return q.Dequeue(ctx, name, t.ID, s.Waiting[i].Score)
		}
		return ack(ctx, q, name, t)
	}}
}

// inCatalogue lists the rules for which package internal/mutants has flawed queues, or the package that holds the rule.
var inCatalogue = []string{
	"random calls against a model of the contract",
	"a request sent again when another has its task",
	"a request sent again after a withdrawal",
	"a request sent again much later",
	"a dead letter is not withdrawn",
	"clients with different limits on the attempts",
	"a delay with a fraction of a millisecond",
	"one reclaim returns more than a thousand claims",
	"calls for one task leave another alone for weeks",
	"an ack long after the end of the claim",
	"a call that is refused changes nothing for the holder",
	"answers do not change",
	"very large counts",
	"a task that is enqueued after a client was told that nothing is due",
	"many looks at a task",
	"a withdrawal with nearly the score",
	"a repeated id with other delays",
	"ids that the queue has as names of its own",
	"a large request sent again",
	"requests are texts like any other",
	"an ack after an extend that came too late",
	"a withdrawal with an earlier score",
	"of many claims all but one are extended",
	"a task that is due, behind others that are due later",
	"tasks return and become due in queues with unusual names",
	"ids and names with one checksum",
	"each task of a batch has a claim of its own",
	"unusual ids with a delay",
	"a client whose calls have failed, or ended early, goes on",
	"attempts are counted over hours and days",
	"an extend held up until its task is done",
	"an ack after a reclaim",
	"one reclaim returns all claims that have run out",
	"a request sent again after its tasks are done",
	"a repeated id of a task that is not due",
	"a repeated id of a task whose claim has run out",
	"an extended claim lasts until its end when answers are slow",
	"an id becomes a dead letter twice",
	"a reclaim is no attempt",
	"a dead letter is its last consumer's",
	"the state lists waiting tasks in their order",
	"peek shows a delayed task that is due",
	"ids are texts like any other",
	"ids are texts when claims end, too",
	"a claim that is extended keeps no other from ending",
	"a late ack of a task that waits again",
	"an ack of an earlier entry with the same id",
	"tasks that are all due come in their order",
	"queues with similar names do not mix",
	"many tasks",
	"overwriting moves the due time to and fro",
	"receipts of one client are told apart",
	"attempts are counted, whatever happens to a task",
	"claims that go on keep no other from ending",
	"a claim that has run out cannot be extended",
	"extending often is extending once",
	"a claim lasts until its end when answers are slow",
	"clients' clocks may differ",
	"a claim does not end by another client's clock",
	"a claim ends by its own timeout while others look",
	"a producer that dies between two commands",
	"a consumer that dies between two commands",
	"a consumer that dies in an ack",
	"a client that dies as it ends claims",
	"answers that are lost",
	"a pop of which a request is lost",
	"a consumer held up between two commands",
	"a producer held up between two commands",
	"an ack held up between two commands",
	"the end of a claim held up between two commands",
	"a dequeue held up between two commands",
	"a producer that dies as it overwrites",
	"a consumer that dies beside a task that is not due",
	"a client that dies as it puts a dead letter aside",
	"a client that dies as it withdraws or extends",
	"the server forgets its scripts",
	"what is in the queue lasts",
	"clients with different clocks use one queue",
	"five thousand tasks in one pop",
	"dead letters of months",
	"a task that is withdrawn long before it is due",
	"a pop held up until its id is due later",
	"tasks that move while a pop looks for one",
	"ten thousand tasks in one pop",
	"twenty thousand tasks",
	"many requests",
	"long ids",
	"answers of calls of which a command fails",
	"an ack held up while others enqueue",
	"a dequeue held up until its id is another entry's",
	"a client held up until another has its task",
	"a request sent again while the first is held up",
	"calls while another client enqueues between their commands",
	"names and ids that make up for each other",
	"claims that ran out long ago come back one by one",
	"the task of a dead consumer comes back while others wait",
	"a delayed task comes while others wait",
	"a task that is due sooner than one that was seen",
	"nine thousand tasks in one call",
	"a receipt is refused after a long time",
	"an entry that is overwritten while a call is held up",
}

func TestSaboteursAreCaught(t *testing.T) {
	type tasks = []queueimpl.Task
	// removing acknowledges popped tasks at once, so that they are gone.
	removing := func(ctx context.Context, q full, name string, _ int, got tasks, err error) (tasks, error) {
		for _, t := range got {
			if err := q.Ack(ctx, name, t); err != nil {
				return nil, err
			}
		}
		return got, err
	}
	swallowing := func(_ context.Context, _ full, _ string, nth int, got tasks, err error) (tasks, error) {
		if nth == 2 {
			return nil, queueimpl.ErrEmpty
		}
		return got, err
	}
	anew := func(ctx context.Context, q full, name string, after time.Duration, ids []string) (tasks, error) {
		in, err := q.EnqueueAfter(ctx, name, after, ids...)
		if err != nil {
			return in, err
		}
		in = nil
		for _, id := range ids {
			in = append(in, queueimpl.Task{ID: id})
		}
		return in, nil
	}
	reversed := func(_ context.Context, q full, name string, _ int, got tasks, err error) (tasks, error) {
		for i := range got {
			got[i].Score = -got[i].Score - float64(got[i].ID[0]) // the later, the lower
		}
		return got, err
	}
	asksNobody := func(ctx context.Context, q full, name string, t queueimpl.Task) error {
		s, err := q.State(ctx, name)
		for _, c := range s.Claimed {
			if c.ID == t.ID {
				return q.Ack(ctx, name, c)
			}
		}
		return errors.Join(err, queueimpl.ErrLost)
	}
	extendsNothing := func(t queueimpl.Task) (queueimpl.Task, error) {
		t.Until = t.Until.Add(time.Hour)
		return t, nil
	}
	// byID removes the task that waits under the id of a receipt which is of no use any more.
	byID := func(ctx context.Context, q full, name string, t queueimpl.Task) error {
		err := q.Ack(ctx, name, t)
		if errors.Is(err, queueimpl.ErrLost) {
			s, _ := q.State(ctx, name)
			for _, w := range s.Waiting {
				if w.ID == t.ID {
					return q.Dequeue(ctx, name, w.ID, w.Score)
				}
			}
		}
		return err
	}
	// counting counts the deliveries of an id, whatever happens to it between them.
	counting := func(most int) func(context.Context, full, string, int, tasks, error) (tasks, error) {
		var mu sync.Mutex
		had := map[string]int{}
		return func(ctx context.Context, q full, name string, nth int, got tasks, err error) (tasks, error) {
			mu.Lock()
			defer mu.Unlock()
			for i := range got {
				had[name+got[i].ID]++
				if most == 0 {
					got[i].Attempt = had[name+got[i].ID]
				} else if had[name+got[i].ID] > most {
					_, err := removing(ctx, q, name, nth, got, err)
					return nil, errors.Join(err, queueimpl.ErrEmpty)
				}
			}
			return got, err
		}
	}
	tests := []struct {
		wrong string
		with  hooks
		rule  string
		says  string
	}{
		{"an empty answer without an error", hooks{pop: func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
			if errors.Is(err, queueimpl.ErrEmpty) {
				err = nil
			}
			return got, err
		}}, "an empty queue says so", "contract"},
		{"a task gets lost", hooks{pop: swallowing}, "what is enqueued is popped once", "no-lost-task is broken"},
		{"scores of its own", hooks{pop: reversed}, "what is enqueued is popped once", "contract"},
		{"more than count", hooks{pop: func(ctx context.Context, q full, name string, _ int, got tasks, err error) (tasks, error) {
			more, _ := q.Pop(ctx, name, 1)
			return append(got, more...), err
		}}, "pops up to count", "contract"},
		{"the wrong order", hooks{pop: reversed}, "tasks come in the order of score and id", "in-order is broken"},
		{"the wrong order", hooks{pop: reversed}, "tasks of several calls come in their order", "in-order is broken"},
		{"no delay", hooks{enqueue: func(ctx context.Context, q full, name string, _ time.Duration, ids []string) (tasks, error) {
			return q.Enqueue(ctx, name, ids...)
		}}, "a delayed task does not come early", "not-early is broken"},
		{"a delay that is only said", hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) (tasks, error) {
			in, err := q.Enqueue(ctx, name, ids...)
			for i := range in {
				in[i].Score += after.Seconds()
			}
			return in, err
		}}, "a delayed task does not come early", "not-early is broken"},
		{"delays of a quarter of an hour at most", hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) (tasks, error) {
			return q.EnqueueAfter(ctx, name, min(after, 15*time.Minute), ids...)
		}}, "long delays", "not-early is broken"},
		{"delays in milliseconds of 32 bits", hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) (tasks, error) {
			return q.EnqueueAfter(ctx, name, after%(1<<32*time.Millisecond), ids...)
		}}, "long delays", "not-early is broken"},
		{"claims in milliseconds of 32 bits", hooks{options: func(o *queueimpl.Options) { o.Visibility %= 1 << 32 * time.Millisecond }},
			"long claims", "no-duplicate-delivery is broken"},
		{"claims of an hour at most", hooks{options: func(o *queueimpl.Options) { o.Visibility = min(o.Visibility, time.Hour) }},
			"long claims", "no-duplicate-delivery is broken"},
		{"the hundredth delivery is the last", hooks{pop: func(ctx context.Context, q full, name string, nth int, got tasks, err error) (tasks, error) {
			if nth >= 100 {
				return removing(ctx, q, name, nth, got, err)
			}
			return got, err
		}}, "a task that nobody finishes comes back every time", "delivery 101 of a task"},
		{"a delayed task is not kept", hooks{state: func(queueimpl.State) queueimpl.State { return queueimpl.State{} }},
			"a delayed task comes", "no-lost-task is broken"},
		{"says that it entered all", hooks{enqueue: anew}, "a repeated id is ignored", "one-entry-per-id is broken"},
		{"never overwrites", hooks{options: func(o *queueimpl.Options) { o.Overwrite = false }}, "a repeated id overwrites, as an option", "one-entry-per-id is broken"},
		{"an id is used up", hooks{ack: func(context.Context, full, string, queueimpl.Task) error { return nil }},
			"an id can be enqueued again when it is done", "contract"},
		{"claimed tasks do not count", hooks{state: func(s queueimpl.State) queueimpl.State { s.Claimed = nil; return s }},
			"the state adds up", "contract"},
		{"any score will do", hooks{dequeue: func(ctx context.Context, q full, name, id string, _ float64) error {
			s, err := q.State(ctx, name)
			for _, t := range s.Waiting {
				if t.ID == id {
					return q.Dequeue(ctx, name, id, t.Score)
				}
			}
			return errors.Join(err, queueimpl.ErrChanged)
		}}, "dequeue needs the very score", "contract"},
		{"peeking claims", hooks{peek: func(ctx context.Context, q full, name string, count int) (tasks, error) {
			got, err := q.Pop(ctx, name, count)
			if errors.Is(err, queueimpl.ErrEmpty) {
				err = nil
			}
			return got, err
		}}, "peek changes nothing", "contract"},
		{"acks always succeed", hooks{ack: func(ctx context.Context, q full, name string, t queueimpl.Task) error {
			_ = q.Ack(ctx, name, t)
			return nil
		}}, "an ack counts once", "contract"},
		{"removes as it hands out", hooks{pop: removing}, "a claimed task is hidden, then comes back", "no-lost-task is broken"},
		{"no visibility timeout", hooks{options: func(o *queueimpl.Options) { o.Visibility = time.Millisecond }},
			"a claimed task is hidden, then comes back", "contract"},
		{"acks that ask nobody", hooks{ack: asksNobody}, "an ack counts until another has the task", "contract"},
		{"no ack counts that comes late", hooks{ack: func(ctx context.Context, q full, name string, t queueimpl.Task) error {
			if time.Now().After(t.Until) {
				return queueimpl.ErrLost
			}
			return q.Ack(ctx, name, t)
		}}, "an ack counts while another has another task", "contract"},
		{"acks do nothing", hooks{ack: func(context.Context, full, string, queueimpl.Task) error { return nil }},
			"an acked task never comes back", "effect-once is broken"},
		{"the old claim stays good", hooks{ack: func(context.Context, full, string, queueimpl.Task) error { return nil }},
			"overwriting ends a claim", "contract"},
		{"extends nothing", hooks{extend: func(t queueimpl.Task) (queueimpl.Task, error) {
			t.Until = t.Until.Add(time.Second)
			return t, nil
		}}, "a claim can be extended", "contract"},
		{"counts wrongly", hooks{reclaim: func(n int) int { return 2 * n }}, "reclaim returns what has run out", "contract"},
		{"dead letters vanish", hooks{dead: func(tasks) tasks { return nil }}, "after its attempts a task is a dead letter", "has not happened"},
		{"a bound of its own", hooks{options: func(o *queueimpl.Options) {
			if o.MaxAttempts > 0 {
				o.MaxAttempts++
			}
		}}, "after its attempts a task is a dead letter", "contract"},
		{"a claim that ran out is over for good", hooks{pop: func(ctx context.Context, q full, name string, nth int, got tasks, err error) (tasks, error) {
			if nth < 20 {
				return got, err
			}
			_, err = removing(ctx, q, name, nth, got, err)
			return nil, errors.Join(err, queueimpl.ErrEmpty)
		}}, "any number of claims that have run out come back", "has not happened"},
		{"a journal without pages", hooks{popped: func(tasks) tasks { return nil }}, "the journal tells what a request took", "contract"},
		{"requests are not known again", hooks{popAs: func(ctx context.Context, q full, name, request string, count int) (tasks, error) {
			if request == "" {
				return nil, queueimpl.ErrBadCall
			}
			return q.PopAs(ctx, name, request+rand.Text(), count)
		}}, "a request sent again takes nothing more", "contract"},
		{"a task gets lost", hooks{pop: func() func(context.Context, full, string, int, tasks, error) (tasks, error) {
			var lost atomic.Bool
			return func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
				if len(got) > 0 && lost.CompareAndSwap(false, true) { // the client that gets something first
					return nil, queueimpl.ErrEmpty
				}
				return got, err
			}
		}()}, "concurrent clients lose nothing", "no-lost-task is broken"},
		{"a task comes twice", hooks{pop: func() func(context.Context, full, string, int, tasks, error) (tasks, error) {
			var last atomic.Pointer[queueimpl.Task]
			var done atomic.Bool
			return func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
				if len(got) > 0 {
					if t := last.Swap(&got[0]); t != nil && !done.Swap(true) {
						return tasks{*t, *t}, nil
					}
				}
				return got, err
			}
		}()}, "concurrent clients get nothing twice", "is broken"},
		{"says that it entered all", hooks{enqueue: anew}, "copies of one id at once make one entry", "one-entry-per-id is broken"},
		{"says that it entered all, claimed or not", hooks{enqueue: anew}, "an id that is enqueued again while a client has its task", "no-lost-task is broken"},
		{"says that it entered all, of many", hooks{enqueue: anew}, "a repeated id among many", "one-entry-per-id is broken"},
		{"one queue for all names", hooks{rename: func(n string) string { return strings.TrimSuffix(n, "2") }},
			"two queues do not mix", "is broken"},
		{"spaces in names are underscores", hooks{rename: func(n string) string { return strings.ReplaceAll(n, " ", "_") }},
			"queues with similar names do not mix", "with queues of similar names"},
		{"one queue for all", hooks{rename: func(string) string { return "the-queue" }},
			"queues with unlike names do not mix", "is broken"},
		{"claims that end a second late", hooks{options: func(o *queueimpl.Options) { o.Visibility += time.Second }},
			"a claim ends soon after its timeout", "progress is broken"},
		{"peeking at everything", hooks{peek: func(ctx context.Context, q full, name string, count int) (tasks, error) {
			s, err := q.State(ctx, name)
			return s.Waiting[:min(count, len(s.Waiting))], err
		}}, "of one look only what is due", "peek of 5 showed"},
		{"says that it entered all", hooks{enqueue: anew}, "entries with one id are tasks of their own", "no-lost-task is broken"},
		{"nothing can be withdrawn", hooks{dequeue: func(context.Context, full, string, string, float64) error { return queueimpl.ErrChanged }},
			"a task that waits again can be withdrawn", "contract"},
		{"acks do nothing", hooks{ack: func(context.Context, full, string, queueimpl.Task) error { return nil }},
			"a late ack of a dead letter", "effect-once is broken"},
		{"a hundred dead letters at most", hooks{dead: func(d tasks) tasks { return d[:min(len(d), 100)] }}, "any number of dead letters", "no-lost-task is broken"},
		{"counts every tenth claim as none", hooks{reclaim: func(n int) int { return n - n/10 }}, "any number of dead letters", "contract"},
		{"a hundred tasks at a time, and the rest is thrown away", hooks{pop: func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
			return got[:min(len(got), 100)], err
		}}, "many tasks in one pop", "no-lost-task is broken"},
		{"many tasks are sorted by id", hooks{pop: func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
			if len(got) > 16 {
				slices.SortFunc(got, func(a, b queueimpl.Task) int { return strings.Compare(a.ID, b.ID) })
			}
			return got, err
		}}, "many tasks in one pop come in their order", "in-order is broken"},
		{"nothing is written into the journal", hooks{popAs: func(ctx context.Context, q full, name, _ string, count int) (tasks, error) {
			return q.Pop(ctx, name, count)
		}}, "a pop under a request that is interrupted", "no-lost-task is broken"},
		{"a bad id is called locked", hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) (tasks, error) {
			in, err := q.EnqueueAfter(ctx, name, after, ids...)
			if errors.Is(err, queueimpl.ErrBadCall) {
				err = queueimpl.ErrLocked
			}
			return in, err
		}}, "a bad call is an error, and changes nothing", "contract"},
		{"a pop that only puts dead letters aside", hooks{pop: func() func(context.Context, full, string, int, tasks, error) (tasks, error) {
			seen := 0 // dead letters
			return func(ctx context.Context, q full, name string, _ int, got tasks, err error) (tasks, error) {
				dead, e := q.Dead(ctx, name)
				if grew := len(dead) > seen; e == nil && grew && len(got) > 0 {
					seen = len(dead)
					return nil, queueimpl.ErrEmpty
				}
				return got, err
			}
		}()}, "tasks that become dead letters hide no other", "and another one was due"},
		{"an old receipt removes what waits", hooks{ack: byID}, "an id that has left is as new", "while it waits, was answered with success"},
		{"acks that ask nobody", hooks{ack: asksNobody}, "an id that has left is as new", "while another client has it, was answered with success"},
		{"deliveries are counted by id", hooks{pop: counting(0)}, "an id that has left is as new", "of the new entry is attempt"},
		{"two deliveries for an id", hooks{pop: counting(2)}, "an id that has left is as new", "no-lost-task is broken"},
		{"the id of a dead letter stays taken", staysTaken(), "an id that has left is as new", "after the late ack of its dead letter entered nothing"},
		{"the receipt of a dead letter stays valid", staysValid(), "an id that has left is as new", "after the late ack of its dead letter, and an ack with the receipt of its earlier entry, while it waits, was answered with success"},
		{"extends nothing", hooks{extend: extendsNothing}, "an extended claim lasts until its end", "no-duplicate-delivery is broken"},
		{"extends nothing", hooks{extend: extendsNothing}, "long extended claims", "no-duplicate-delivery is broken"},
		{"acks that ask nobody", hooks{ack: asksNobody}, "many receipts", "no-lost-task is broken"},
		{"a claimed task is nowhere", hooks{state: func(s queueimpl.State) queueimpl.State { s.Claimed = nil; return s }},
			"a task whose claim has run out is there", "no-lost-task is broken"},
		{"a journal of UTF-8", hooks{popped: func(d tasks) tasks {
			for i := range d {
				d[i].ID = strings.ToValidUTF8(d[i].ID, "?")
			}
			return d
		}}, "ids are texts in the journal, too", "no-lost-task is broken"},
		{"a deadline that has passed is called empty", hooks{pop: func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
			if errors.Is(err, context.DeadlineExceeded) {
				err = queueimpl.ErrEmpty
			}
			return got, err
		}}, "a cancelled context is no declared answer", "deadline has passed"},
		{"5 ms early", hooks{enqueue: func(ctx context.Context, q full, name string, after time.Duration, ids []string) (tasks, error) {
			return q.EnqueueAfter(ctx, name, max(0, after-5*time.Millisecond), ids...)
		}}, "long delays", "not-early is broken"},
		{"an error is called empty", hooks{pop: func(_ context.Context, _ full, _ string, _ int, got tasks, err error) (tasks, error) {
			if err != nil {
				err = queueimpl.ErrEmpty
			}
			return got, err
		}}, "a cancelled context is no declared answer", "contract"},
	}
	good, ok := queueimpl.Find("reliable")
	if !ok {
		t.Fatal("no queue reliable")
	}
	good.Promises = variant.PropertiesOf(variant.Queue)
	tried := map[string]bool{}
	for _, tt := range tests {
		tried[tt.rule] = true
		t.Run(tt.rule+"/"+tt.wrong, func(t *testing.T) {
			bad := good
			bad.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
				if tt.with.options != nil {
					tt.with.options(&o)
				}
				return &saboteur{full: good.New(env, o).(full), hooks: tt.with}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			b := newBench(t)
			err := find(t, tt.rule).check(ctx, bench{Env: b.Env, Queue: b.Queue, Pass: b.Pass, Variant: bad})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the rule says %v; want that it says %q", err, tt.says)
			}
		})
	}
	tried[writesMayFail] = true // in TestWritesFail
	for _, r := range rules {
		if r.appliesTo(good) && !tried[r.name] && !slices.Contains(inCatalogue, r.name) {
			t.Errorf("no saboteur breaks the rule %q", r.name)
		}
	}
}

// small is a queue that takes and hands out few tasks in one call, takes short ids without spaces only, names the tasks that
// it entered in another order, and rounds delays up to whole seconds.
type small struct{ full }

var shortID = regexp.MustCompile(`^[!-~]{1,64}$`)

const fewAtOnce = 8

func (s small) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return s.EnqueueAfter(ctx, name, 0, ids...)
}

func (s small) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	if len(ids) > fewAtOnce {
		return nil, fmt.Errorf("%w: %d ids, more than %d", queueimpl.ErrBadCall, len(ids), fewAtOnce)
	}
	if i := slices.IndexFunc(ids, func(id string) bool { return !shortID.MatchString(id) }); i >= 0 {
		return nil, fmt.Errorf("%w: the id %q", queueimpl.ErrBadCall, ids[i])
	}
	in, err := s.full.EnqueueAfter(ctx, name, (after + time.Second - 1).Truncate(time.Second), ids...)
	slices.Reverse(in)
	return in, err
}

func (s small) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if count > fewAtOnce {
		return nil, fmt.Errorf("%w: %d tasks, more than %d", queueimpl.ErrBadCall, count, fewAtOnce)
	}
	return s.full.Pop(ctx, name, count)
}

// TestUnusualQueues checks that sound queues that use the freedom that the interface leaves them are not accused: small, and
// one that overwrites a repeated id whether it is told to or not, and says so.
func TestUnusualQueues(t *testing.T) {
	good, _ := queueimpl.Find("reliable")
	for name, change := range map[string]func(variant.Env, queueimpl.Options) queueimpl.Queue{
		"small": func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return small{good.New(env, o).(full)} },
		"always overwrites": func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
			o.Overwrite = true
			return good.New(env, o)
		},
	} {
		v := good
		v.New = change
		for _, r := range rules {
			if !r.appliesTo(v) {
				continue
			}
			t.Run(name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				if err := r.try(t.Context(), bench{Env: b.Env, Queue: b.Queue, Pass: b.Pass, Variant: v}); errors.As(err, new(*suitetest.Breach)) {
					t.Errorf("the rule accuses it: %v", err)
				}
			})
		}
	}
}

// TestOutOfTime checks that a rule that ran out of time accuses a queue only if one of its calls was slow while other calls
// are quick.
func TestOutOfTime(t *testing.T) {
	good, _ := queueimpl.Find("reliable")
	failing := good
	failing.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		return &saboteur{full: good.New(env, o).(full), hooks: hooks{pop: func(context.Context, full, string, int, []queueimpl.Task, error) ([]queueimpl.Task, error) {
			return nil, context.DeadlineExceeded
		}}}
	}
	of := func(v queueimpl.Variant, went time.Duration) error {
		own := newBench(t)
		b := bench{Env: own.Env, Queue: own.Queue, Pass: own.Pass, Variant: v}.Noting("pop of 1")
		return outOfTime(b, rule{name: "mine"}, b.Last().Since.Add(went), context.DeadlineExceeded)
	}
	for _, c := range []struct {
		err  error
		says string
	}{{of(failing, patience), "looks at the queue then failed"}, {of(good, patience/4), "had gone on for 3s"}} {
		if !errors.As(c.err, new(*suitetest.TooSlow)) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%v; want suitetest.TooSlow that says %q", c.err, c.says)
		}
	}
	var err error
	for range 50 { // on a busy machine a look may take long
		if err = of(good, patience/2); errors.As(err, new(*suitetest.Breach)) {
			return
		}
	}
	t.Errorf("one long call: %v; want a breach", err)
}

// TestOrder checks that tasks that come after later ones are noticed, if the queue promises an order.
func TestOrder(t *testing.T) {
	for _, promised := range []bool{false, true} {
		var b bench
		if promised {
			b.Variant.Promises = []variant.Property{variant.InOrder}
		}
		var o queueclient.Order
		o.Entered([]queueimpl.Task{{ID: "task-0998", Score: 1}, {ID: "task-0999", Score: 1}, {ID: "task-1000", Score: 1}})
		o.Entered([]queueimpl.Task{{ID: "task-1001", Score: 2}})
		var scoreless queueclient.Order
		scoreless.Entered([]queueimpl.Task{{ID: "a"}, {ID: "b"}})
		scoreless.Entered([]queueimpl.Task{{ID: "c"}})
		within := scoreless.Next(b, []queueimpl.Task{{ID: "b"}, {ID: "a"}, {ID: "c"}})
		if across := scoreless.Next(b, []queueimpl.Task{{ID: "b"}}); within != nil || (across != nil) != promised {
			t.Errorf("with the promise: %t; tasks without scores are judged %v and %v", promised, within, across)
		}
		if err := o.Next(b, []queueimpl.Task{{ID: "task-0999"}}); err != nil {
			t.Errorf("a task that was entered by the same call as one that comes later: %v", err)
		}
		first := o.Next(b, []queueimpl.Task{{ID: "task-0998"}, {ID: "task-0999"}, {ID: "task-1001"}})
		second := o.Next(b, []queueimpl.Task{{ID: "task-1000"}})
		if first != nil || (second != nil) != promised {
			t.Errorf("with the promise: %t; the pops are judged %v and %v", promised, first, second)
		}
	}
}

// TestRulesApplyToThosePromising checks that a rule runs on the queues that promise what it checks, and on no others.
func TestRulesApplyToThosePromising(t *testing.T) {
	control, _ := queueimpl.Find("range-run-remove")
	streams, _ := queueimpl.Find("streams")
	for _, tt := range []struct {
		v    queueimpl.Variant
		rule string
		want bool
	}{
		{control, "concurrent clients get nothing twice", false},
		{control, "concurrent clients lose nothing", true},
		{control, "a claimed task is hidden, then comes back", false},
		{streams, "a claimed task is hidden, then comes back", true},
		{streams, "a delayed task does not come early", false},
		{streams, "a repeated id is ignored", false},
		{streams, "a locked queue is not an empty one", false},
	} {
		if got := find(t, tt.rule).appliesTo(tt.v); got != tt.want {
			t.Errorf("%q applies to %s: %v; want %v", tt.rule, tt.v.Name, got, tt.want)
		}
	}
}

func find(t *testing.T, name string) rule {
	t.Helper()
	for _, r := range rules {
		if r.name == name {
			return r
		}
	}
	t.Fatalf("no rule %q", name)
	return rule{}
}

func newBench(t *testing.T) Bench {
	t.Helper()
	clk := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	target, err := server.OpenEmbedded(clk, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return Bench{
		Queue: "{ov}mail",
		Pass:  clk.Advance,
		Env: func() variant.Env {
			c := target.Client(0, server.ConnOptions{PoolSize: 1})
			t.Cleanup(func() { c.Close() })
			return variant.Env{
				Redis: []redis.UniversalClient{c}, Clock: clk, Token: rand.Text,
				Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
					return clock.Real{}.Sleep(ctx, min(atMost, time.Millisecond))
				},
			}
		},
	}
}

// TestRulesOnTheCatalogue checks rules on flawed queues of the catalogue.
func TestRulesOnTheCatalogue(t *testing.T) {
	all := queues.All()
	for _, tt := range []struct{ rule, queue, says string }{
		{"what is in the queue lasts", "overdue-overlooked", "progress is broken"},
		{"long claims", "receipts-for-an-hour", "before the end of a claim"},
	} {
		t.Run(tt.rule+"/"+tt.queue, func(t *testing.T) {
			i := slices.IndexFunc(all, func(q queues.Queue) bool { return q.Name == tt.queue })
			if i < 0 {
				t.Fatalf("no queue %q", tt.queue)
			}
			b := newBench(t)
			err := find(t, tt.rule).check(t.Context(), bench{Env: b.Env, Queue: b.Queue, Pass: b.Pass, Variant: all[i].Variant})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the rule says %v; want that it says %q", err, tt.says)
			}
		})
	}
}
