// Package queueclient is a client of a queue under test for the rules of package queuetest. Its calls take the expected
// answer, and the promise that another answer breaks. It also has what many rules share: waiting for an event on the
// real clock or on one that the test moves, acting on each command of a call, and measuring how many tasks pass through
// the queue in some time.
package queueclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/clock"
	"oversell/internal/phrase"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// TheInterface stands, in place of a promise, for the rules of queueimpl.Queue and its optional interfaces.
const TheInterface variant.Property = "the contract of queueimpl.Queue"

// Bench is where a rule is tried, with the queue under test on it.
type Bench struct {
	// Env returns the environment of another client.
	Env func() variant.Env
	// Queue names a queue that has not been used yet.
	Queue string
	// Pass moves all clocks; nil if they go by themselves.
	Pass    func(time.Duration)
	Variant queueimpl.Variant
	// commands is how many commands the longest call has; 0 if that was not measured.
	commands int
	// unseen says that the calls that were measured sent none through Env.Redis.
	unseen bool
	// interrupts is set when a rule makes a client whose commands it holds up, loses, delays or refuses.
	interrupts *atomic.Bool
	// fewer tells of a rule that was tried with fewer tasks than it would have, since the queue is slow.
	fewer *atomic.Pointer[string]
	// last is the call that was made last, for the case that it does not return.
	last *atomic.Pointer[Call]
	// acked are the tasks that were acknowledged and not enqueued since.
	acked *sync.Map
}

// named is an id in a queue.
type named struct{ queue, id string }

// Call is a call of the queue.
type Call struct {
	What  string
	Since time.Time // when it began
}

// Noting returns the bench with a note of the call that is made last, which is empty so far.
func (b Bench) Noting(empty string) Bench {
	b.last, b.interrupts, b.fewer, b.acked = &atomic.Pointer[Call]{}, new(atomic.Bool), &atomic.Pointer[string]{}, new(sync.Map)
	b.Calls("%s", empty)
	return b
}

// Last is the call that was noted last.
func (b Bench) Last() Call { return *b.last.Load() }

// Calls notes a call, to name it if it does not return.
func (b Bench) Calls(format string, args ...any) {
	if b.last != nil {
		b.last.Store(&Call{fmt.Sprintf(format, args...), time.Now()})
	}
}

// once reports whether the queue hands a task to one consumer at a time.
func (b Bench) once() bool {
	return b.Variant.AtLeastOnce || Keeps(b.Variant, variant.NoDuplicateDelivery)
}

// Patience is the time limit of a rule. Answer is how long a call may take to return after its context has ended. After
// LongEnough, an event that should come within a second or two is taken to have failed.
const (
	Patience   = 12 * time.Second
	Answer     = 5 * time.Second
	LongEnough = 7 * time.Second
)

// Client makes one more client.
func (b Bench) Client(change ...func(*queueimpl.Options)) *Client {
	var o queueimpl.Options
	for _, c := range change {
		c(&o)
	}
	env := b.Env()
	return &Client{Queue: b.Variant.New(env, o), Bench: b, Env: env, Name: b.Queue}
}

// Client is one client of one queue.
type Client struct {
	queueimpl.Queue
	Bench Bench
	Env   variant.Env
	Name  string
}

// Enter expects that exactly these ids are entered.
func (c *Client) Enter(ctx context.Context, of variant.Property, ids ...string) ([]queueimpl.Task, error) {
	return c.into(of, ids)(inParts(ids, func(ids []string) ([]queueimpl.Task, error) { return c.enqueue(ctx, c.Name, ids) }))
}

// EnterAfter is Enter with a delay.
func (c *Client) EnterAfter(ctx context.Context, of variant.Property, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	d := c.Queue.(queueimpl.Delayer)
	return c.into(of, ids)(inParts(ids, func(ids []string) ([]queueimpl.Task, error) { return d.EnqueueAfter(ctx, c.Name, after, ids...) }))
}

func (c *Client) into(of variant.Property, ids []string) func([]queueimpl.Task, error) ([]queueimpl.Task, error) {
	return func(tasks []queueimpl.Task, err error) ([]queueimpl.Task, error) {
		if err != nil {
			return nil, suitetest.Broken(of, "enqueue of %q answered %q", ids, err)
		}
		if got := IDsOf(tasks); !sameIDs(got, ids) {
			return nil, suitetest.Broken(of, "enqueue of %q entered %q", ids, got)
		}
		c.Bench.wasAcked(c.Name, ids, true)
		return inOrderOf(ids, tasks), nil
	}
}

// sameIDs reports whether the lists are equal but for their order.
func sameIDs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// inOrderOf returns the tasks in the order of these ids, which are theirs.
func inOrderOf(ids []string, tasks []queueimpl.Task) []queueimpl.Task {
	if slices.Equal(IDsOf(tasks), ids) {
		return tasks
	}
	place := map[string]int{}
	for i, id := range ids {
		place[id] = i
	}
	return slices.SortedStableFunc(slices.Values(tasks), func(a, b queueimpl.Task) int { return cmp.Compare(place[a.ID], place[b.ID]) })
}

// Overwrite enqueues an id again that is there with a score. The error tells an overwrite that was
// not reported from one that did not take place.
func (c *Client) Overwrite(ctx context.Context, after time.Duration, was queueimpl.Task) (queueimpl.Task, error) {
	const of = variant.OneEntryPerID
	var in []queueimpl.Task
	var err error
	if d, ok := c.Queue.(queueimpl.Delayer); ok && after > 0 {
		in, err = d.EnqueueAfter(ctx, c.Name, after, was.ID)
	} else {
		in, err = c.Enqueue(ctx, c.Name, was.ID)
	}
	if err != nil {
		return queueimpl.Task{}, suitetest.Broken(of, "enqueue of %q, to overwrite it, answered %q", was.ID, err)
	}
	if len(in) == 1 && in[0].ID == was.ID {
		return in[0], nil
	}
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return queueimpl.Task{}, suitetest.Broken(TheInterface, "state answered %q", err)
	}
	for _, t := range s.Waiting {
		if t.ID == was.ID && t.Score != was.Score {
			return queueimpl.Task{}, suitetest.Broken(TheInterface, "enqueue of %q overwrote it, and said that it entered %q", was.ID, IDsOf(in))
		}
	}
	return queueimpl.Task{}, suitetest.Broken(of, "enqueue of %q, to overwrite it, entered %q, and the queue has it as before", was.ID, IDsOf(in))
}

// Take takes up to count tasks, which may be none.
func (c *Client) Take(ctx context.Context, count int) ([]queueimpl.Task, error) {
	tasks, err := c.Pop(ctx, c.Name, count)
	switch {
	case errors.Is(err, queueimpl.ErrEmpty) && len(tasks) == 0:
		return nil, nil
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("pop of %d answered %v and %q", count, tasks, err)
	case err != nil:
		return nil, suitetest.Broken(TheInterface, "pop of %d answered %v and %q", count, tasks, err)
	case len(tasks) == 0 || len(tasks) > count:
		return nil, suitetest.Broken(TheInterface, "pop of %d answered %d tasks", count, len(tasks))
	}
	return tasks, nil
}

// All pops up to count tasks, and more than once while it has not so many as it wants and something is
// due: a queue may hand out fewer at a time than it is asked for.
func (c *Client) All(ctx context.Context, count, want int) (got []queueimpl.Task, _ error) {
	for first := true; first || len(got) < want; first = false {
		tasks, err := c.Take(ctx, count-len(got))
		if !c.Bench.once() { // it may hand out again what it has handed out
			tasks = slices.DeleteFunc(tasks, func(t queueimpl.Task) bool { return slices.Contains(IDsOf(got), t.ID) })
		}
		if err != nil || len(tasks) == 0 {
			return got, err
		}
		got = append(got, tasks...)
	}
	return got, nil
}

// ExpectTake expects exactly these ids, in any order, when it asks for so many; none means that
// nothing is due.
func (c *Client) ExpectTake(ctx context.Context, of variant.Property, count int, want ...string) ([]queueimpl.Task, error) {
	tasks, err := c.All(ctx, count, len(want))
	if err != nil {
		return nil, err
	}
	got := IDsOf(tasks)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		if back := c.Bench.wasAcked(c.Name, missing(got, want), false); len(back) > 0 {
			return nil, suitetest.Broken(TheInterface, "pop of %d answered %q, which had been acknowledged, and not enqueued since", count, back)
		}
		without := slices.DeleteFunc(want, func(id string) bool { return slices.Contains(got, id) })
		if of == variant.NoLostTask && len(without) > 0 {
			return nil, c.Lost(ctx, without, "pop of %d answered %q, without %q", count, got, without)
		}
		return nil, suitetest.Broken(of, "pop of %d answered %q; want %q", count, got, want)
	}
	return tasks, nil
}

// Given enqueues "a", and pops it.
func (c *Client) Given(ctx context.Context, of variant.Property) ([]queueimpl.Task, error) {
	if _, err := c.Enter(ctx, TheInterface, "a"); err != nil {
		return nil, err
	}
	return c.ExpectTake(ctx, of, 1, "a")
}

// Waiting is what a queue breaks that does not deliver a task that waits and is due: its promise of progress or, if it makes none,
// the meaning of ErrEmpty.
func (b Bench) Waiting() variant.Property {
	if Keeps(b.Variant, variant.Progress) {
		return variant.Progress
	}
	return TheInterface
}

// Lost reports tasks that were not delivered, any if ids is nil. If all of them wait in the queue, they
// are not lost: the queue makes no progress with them.
func (c *Client) Lost(ctx context.Context, ids []string, format string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Answer)
	defer cancel()
	s, err := c.State(ctx, c.Name)
	waits := IDsOf(s.Waiting)
	if err != nil || len(waits) == 0 || len(missing(ids, waits)) > 0 {
		return suitetest.Broken(variant.NoLostTask, format, args...)
	}
	return suitetest.Broken(c.Bench.Waiting(), "%s; by its state it waits in the queue", fmt.Sprintf(format, args...))
}

// missing returns the ids that are in none of the lists.
func missing(ids []string, in ...[]string) (none []string) {
	for _, id := range ids {
		if !slices.ContainsFunc(in, func(list []string) bool { return slices.Contains(list, id) }) {
			none = append(none, id)
		}
	}
	return none
}

// Done acknowledges tasks, where the queue wants that.
func (c *Client) Done(ctx context.Context, tasks ...queueimpl.Task) error {
	a, ok := c.Queue.(queueimpl.Acker)
	for _, t := range tasks {
		if !ok {
			break
		}
		c.Bench.Calls("ack of %.40q", t.ID)
		if err := a.Ack(ctx, c.Name, t); err != nil {
			return suitetest.Broken(TheInterface, "ack of %+v by the one who has it answered %q", t, err)
		}
		if c.Bench.acked != nil {
			c.Bench.acked.Store(named{c.Name, t.ID}, true)
		}
	}
	return nil
}

// wasAcked returns those of the ids that were acknowledged and not enqueued since. If forget is set, they no longer count.
func (b Bench) wasAcked(queue string, ids []string, forget bool) (acked []string) {
	if b.acked == nil {
		return nil
	}
	for _, id := range ids {
		if _, was := b.acked.Load(named{queue, id}); was {
			acked = append(acked, id)
		}
		if forget {
			b.acked.Delete(named{queue, id})
		}
	}
	return acked
}

// ExpectAck expects that an ack is answered so.
func (c *Client) ExpectAck(ctx context.Context, of variant.Property, t queueimpl.Task, want error) error {
	if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, t); !errors.Is(err, want) {
		return suitetest.Broken(of, "ack of %+v answered %s; want %s", t, Say(err), Say(want))
	}
	return nil
}

// ExpectState expects exactly these ids to be waiting and claimed on the server.
func (c *Client) ExpectState(ctx context.Context, of variant.Property, waiting, claimed []string) error {
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return suitetest.Broken(of, "state answered %q", err)
	}
	w, cl := IDsOf(s.Waiting), IDsOf(s.Claimed)
	for _, ids := range [][]string{w, cl, waiting, claimed} {
		slices.Sort(ids)
	}
	if !slices.Equal(w, waiting) || !slices.Equal(cl, claimed) {
		of = c.ofState(ctx, of, missing(slices.Concat(waiting, claimed), w, cl))
		return suitetest.Broken(of, "the server holds %q waiting and %q claimed; want %q and %q", w, cl, waiting, claimed)
	}
	return nil
}

// ofState returns the promise that a wrong state breaks: no task is lost if the queue has all of them, though elsewhere, or as dead letters.
func (c *Client) ofState(ctx context.Context, of variant.Property, gone []string) variant.Property {
	if d, ok := c.Queue.(queueimpl.DeadLetters); ok && len(gone) > 0 {
		dead, _ := d.Dead(ctx, c.Name)
		gone = missing(gone, IDsOf(dead))
	}
	if of == variant.NoLostTask && len(gone) == 0 {
		return TheInterface
	}
	return of
}

// Numbered returns n ids.
func Numbered(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("task-%05d", i))
	}
	return ids
}

// IDsOf are the ids of tasks.
func IDsOf(tasks []queueimpl.Task) []string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// Say returns an answer in words.
func Say(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q", err)
}

// Look is how long passes between two looks, and looks is how many there are at
// most on a virtual clock: far more time than any rule needs.
const (
	Look  = 2 * time.Millisecond
	looks = 800
)

// Until looks until something has happened.
func (b Bench) Until(ctx context.Context, what string, happened func() (bool, error)) error {
	start := time.Now()
	for n := 1; ; n++ {
		if ok, err := happened(); ok || err != nil {
			return err
		}
		if b.Pass == nil {
			if waited := time.Since(start); waited > LongEnough {
				return &Never{what, waited, b.holds(ctx)}
			}
			if err := (clock.Real{}).Sleep(ctx, Look); err != nil {
				return &Never{what, time.Since(start), ""}
			}
			continue
		}
		if b.Pass(Look); n == looks {
			return &Never{what, looks * Look, b.holds(ctx)}
		}
	}
}

// holds says how many tasks the queue has, if it says so itself.
func (b Bench) holds(ctx context.Context) string {
	s, err := b.Client().State(ctx, b.Queue)
	if err != nil || len(s.Waiting)+len(s.Claimed) == 0 { // the rule may have given its clients another queue
		return ""
	}
	return fmt.Sprintf("; by its state %d wait, and %d are claimed", len(s.Waiting), len(s.Claimed))
}

// ExpectNext pops, with this client alone, until a task comes, and expects that task to be id.
func (c *Client) ExpectNext(ctx context.Context, of variant.Property, id string) (queueimpl.Task, error) {
	var got queueimpl.Task
	err := c.Bench.Until(ctx, fmt.Sprintf("delivery of %q", id), func() (bool, error) {
		tasks, err := c.Take(ctx, 1)
		if err != nil || len(tasks) == 0 {
			return false, err
		}
		if got = tasks[0]; got.ID != id {
			return false, suitetest.Broken(of, "%q was delivered; want %q", got.ID, id)
		}
		return true, nil
	})
	n := new(Never)
	if !errors.As(err, &n) || ctx.Err() != nil {
		return got, err
	}
	if of == variant.NoLostTask {
		err = c.Lost(ctx, []string{id}, "%q was not delivered in %v", id, n.After.Round(time.Millisecond))
	} else {
		err = suitetest.Broken(of, "%q was not delivered in %v", id, n.After.Round(time.Millisecond))
	}
	return got, err
}

// DeclaredAs returns the declared answer that an error is or wraps, or nil.
func DeclaredAs(err error) error {
	for _, d := range []error{queueimpl.ErrEmpty, queueimpl.ErrLocked, queueimpl.ErrChanged, queueimpl.ErrLost, queueimpl.ErrBadCall} {
		if errors.Is(err, d) {
			return d
		}
	}
	return nil
}

// Grain is how much the clocks of a server and a client on the same machine may differ. Redis counts the lifetime of
// keys and the idle time of stream entries in whole milliseconds, and rounds down both the start and the present time.
const Grain = 2 * time.Millisecond

// Before reports whether the client's clock is before t.
func (b Bench) Before(c *Client, t time.Time) bool { return c.Env.Clock.Now().Before(t) }

// Ended waits for the end of a claim.
func (b Bench) Ended(ctx context.Context, c *Client, end time.Time) error {
	return b.Until(ctx, "the end of a claim", func() (bool, error) { return !b.Before(c, end.Add(Grain)), nil })
}

// ExpectNotEarly judges that a claimed task has not come to another client before the claim was over. Its
// end is counted by the client that has it, from before its call.
func ExpectNotEarly(c *Client, t queueimpl.Task, of variant.Property) error {
	if by := t.Until.Sub(c.Env.Clock.Now()); by > Grain {
		return suitetest.Broken(of, "the task was given to another %v before the claim was over", by)
	}
	return nil
}

// Next pops and acknowledges one task, which must be due.
func (c *Client) Next(ctx context.Context) (queueimpl.Task, error) {
	tasks, err := c.Take(ctx, 1)
	if err == nil && len(tasks) == 0 {
		err = c.Lost(ctx, nil, "pop answered that nothing is due, and a task was due")
	}
	if err != nil {
		return queueimpl.Task{}, err
	}
	return tasks[0], c.Done(ctx, tasks...)
}

// Request returns an id for a request of the client's queue. No other queue of the suite has a request with that id.
func (c *Client) Request(n any) string {
	return fmt.Sprintf("request-%08x-%v", crc32.ChecksumIEEE([]byte(c.Name)), n)
}

// Journal expects what a request took.
func (c *Client) Journal(ctx context.Context, request string, want []queueimpl.Task) error {
	got, err := c.Queue.(queueimpl.Journaler).Popped(ctx, c.Name, request)
	if err != nil {
		return suitetest.Broken(TheInterface, "journal of %s answered %q", request, err)
	}
	if !slices.EqualFunc(got, want, Same) {
		return suitetest.Broken(TheInterface, "the journal says that %s took %+v; want %+v", request, got, want)
	}
	return nil
}

// Same compares tasks but for the time promised.
func Same(a, b queueimpl.Task) bool {
	a.Until, b.Until = time.Time{}, time.Time{}
	return a == b
}

// Found reports whether the queue has a task: waiting, claimed, or as a dead letter.
func (c *Client) Found(ctx context.Context, id string) (bool, error) {
	s, err := c.State(ctx, c.Name)
	if err != nil {
		return false, suitetest.Broken(TheInterface, "state answered %q", err)
	}
	if slices.Contains(IDsOf(s.Waiting), id) || slices.Contains(IDsOf(s.Claimed), id) {
		return true, nil
	}
	if d, ok := c.Queue.(queueimpl.DeadLetters); ok {
		dead, err := d.Dead(ctx, c.Name)
		return slices.Contains(IDsOf(dead), id), err
	}
	return false, nil
}

// ExpectAll expects that each of these tasks is delivered in the end.
func (c *Client) ExpectAll(ctx context.Context, after string, ids ...string) error {
	got, err := c.Settled(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if got[id] == 0 {
			return c.Lost(ctx, []string{id}, "%s, %q was not delivered for %v; delivered were %s", after, id, PatienceForClaims, Deliveries(got))
		}
	}
	return nil
}

// Deliveries says how often each id was delivered.
func Deliveries(times map[string]int) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(times)) {
		if n := times[id]; n == 1 {
			all = append(all, fmt.Sprintf("%q", id))
		} else if n > 1 {
			all = append(all, fmt.Sprintf("%q (%s)", id, phrase.Count(n, "time")))
		}
	}
	if len(all) == 0 {
		return "no others"
	}
	return strings.Join(all, ", ")
}

// Usable enqueues and pops a new task, and tasks with ids that were used before and are done. It asks nothing of a queue that
// loses tasks without a fault.
func (c *Client) Usable(ctx context.Context, after string, ids ...string) error {
	if !Keeps(c.Bench.Variant, variant.NoLostTask) {
		return nil
	}
	ids = append(ids, "afterwards")
	if _, err := c.Enqueue(ctx, c.Name, ids...); err != nil {
		return suitetest.Broken(variant.NoLostTask, "%s, enqueue of %q answered %q", after, ids, err)
	}
	return c.ExpectAll(ctx, after+", and enqueued again", ids...)
}
