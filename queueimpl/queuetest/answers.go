package queuetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file lose one command of a call, or have the server refuse it, and compare what
// the call answered with what the server holds. An error may leave the outcome open. Success and the
// declared answers may not: they must be true.

// badly are the ways in which a command fails.
var badly = []interrupt.Action{interrupt.LoseRequest, interrupt.LoseReply, interrupt.Refuse}

// failure is what a client is told of a command that has no answer, and what a server answers that
// executes nothing.
type failure struct{ lost, refused error }

// failures are those that code may take for something else. A command whose deadline passes on its way
// has another error than one whose deadline had passed before.
var failures = []failure{
	{interrupt.ErrLost, interrupt.ErrRefused},
	{context.DeadlineExceeded, interrupt.Refusal("READONLY You can't write against a read only replica.")},
	{context.Canceled, interrupt.Refusal("OOM command not allowed when used memory > 'maxmemory'.")},
	{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, interrupt.Refusal("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")},
	{io.EOF, interrupt.Refusal("CLUSTERDOWN The cluster is down")},
}

// failing is a client whose calls can be made to fail.
type failing struct {
	*client
	// kinds choose how they fail, one at a time, and say it.
	kinds []func() string
	// fail makes a call, and reports whether a command of it failed, or may have.
	fail func(call func() error) (failed bool, err error)
	// open makes another such client.
	open func(...func(*queueimpl.Options)) (*failing, error)
	// failed is what fail reported of the last call.
	failed bool
	end    func() // of the fault
}

// during makes a call that fails.
func (f *failing) during(call func() error) (err error) {
	f.failed, err = f.fail(call)
	return err
}

// failingAt returns a client with calls whose n-th command fails.
func failingAt(ctx context.Context, b bench, n int, a interrupt.Action, change ...func(*queueimpl.Options)) *failing {
	c, line := b.Interrupted(ctx, change...)
	f := &failing{client: c, end: func() { line.Plan(nil) }}
	f.open = func(change ...func(*queueimpl.Options)) (*failing, error) {
		return failingAt(ctx, b, n, a, change...), nil
	}
	for _, e := range failures {
		f.kinds = append(f.kinds, func() string {
			line.Errors(e.lost, e.refused)
			return fmt.Sprintf("with the error %q", map[bool]error{true: e.refused, false: e.lost}[a == interrupt.Refuse])
		})
	}
	f.fail = func(call func() error) (bool, error) {
		line.Arm(n, a)
		err := call()
		failed := line.Sent() >= n
		line.Plan(nil)
		return failed, err
	}
	return f
}

// unwritable returns a client with calls during which no command may write.
func unwritable(ctx context.Context, b bench, change ...func(*queueimpl.Options)) (*failing, error) {
	env, writes, err := interrupt.WithUser(ctx, b.Env())
	if err != nil {
		return nil, &suitetest.Remark{Text: fmt.Sprintf("failing commands within a script were not tested: %v", err)}
	}
	own := b
	own.Env = func() variant.Env { return env }
	c, _ := own.Interrupted(ctx, change...)
	c.Bench = b
	return &failing{
		client: c,
		end:    writes.Close,
		kinds:  []func() string{func() string { return "while the client had no right to write (ACL)" }},
		open:   func(change ...func(*queueimpl.Options)) (*failing, error) { return unwritable(ctx, b, change...) },
		fail: func(call func() error) (bool, error) {
			var err error
			if e := writes.During(ctx, func() { err = call() }); e != nil {
				err = errors.Join(err, e)
			}
			return true, err
		},
	}, nil
}

// there returns how many entries with this id another client sees.
func (f *failing) there(ctx context.Context, id string) (waiting, claimed int, _ error) {
	s, err := f.Bench.Client().State(ctx, f.Name)
	if err != nil {
		return 0, 0, broken(theInterface, "state answered %q", err)
	}
	others := func(t queueimpl.Task) bool { return t.ID != id }
	return len(slices.DeleteFunc(s.Waiting, others)), len(slices.DeleteFunc(s.Claimed, others)), nil
}

// failingCalls are the calls that the rules in this file make.
var failingCalls = []struct {
	name string
	on   func(queueimpl.Variant) bool
	try  func(context.Context, *failing) error
}{
	{"enqueue", nil, failingEnqueue},
	{"pop", nil, failingPop},
	{"ack", can[queueimpl.Acker], failingAck},
	{"extend", both(lends, can[queueimpl.Extender]), failingExtend},
	{"dequeue", can[queueimpl.Dequeuer], failingDequeue},
	{"request", can[queueimpl.Journaler], failingRequest},
	{"look", nil, failingLook},
	{"reclaim", both(lends, can[queueimpl.Reclaimer]), failingReclaim},
}

// failEach makes each call fail in each way, on a queue of its own.
func failEach(ctx context.Context, b bench, open func(bench) (*failing, error)) error {
	for _, call := range failingCalls {
		if call.on != nil && !call.on(b.Variant) {
			continue
		}
		own := b
		own.Queue += "-" + call.name
		f, err := open(own)
		if err != nil {
			return err
		}
		defer f.end()
		for i, choose := range f.kinds {
			f.Name = fmt.Sprintf("%s-%d", own.Queue, i)
			said := choose()
			if err := call.try(ctx, f); err != nil {
				return fmt.Errorf("%s: %w", said, err)
			}
			if !f.failed {
				break // the call has fewer commands
			}
		}
	}
	return nil
}

// definiteAnswers fails each command of every call in each way.
func definiteAnswers(ctx context.Context, b bench) error {
	return b.Each(ctx, badly, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		return failEach(ctx, b, func(b bench) (*failing, error) { return failingAt(ctx, b, n, a, long), nil })
	})
}

// writesFail has every command that writes fail in each call. A script that ignores such an error goes on.
func writesFail(ctx context.Context, b bench) error {
	return failEach(ctx, b, func(b bench) (*failing, error) { return unwritable(ctx, b, long) })
}

func failingEnqueue(ctx context.Context, f *failing) error {
	var in []queueimpl.Task
	err := f.during(func() (err error) { in, err = f.Enqueue(ctx, f.Name, "a"); return err })
	waiting, claimed, e := f.there(ctx, "a")
	there := waiting + claimed
	switch declared := declaredAs(err); {
	case e != nil:
		return e
	case declared != nil && there > 0:
		return broken(theInterface, "an enqueue of which a command failed answered %q, which says that nothing changed, and it entered the task", declared)
	case err == nil && there < len(in):
		return broken(variant.NoLostTask, "an enqueue of which a command failed answered that it entered %q, and the server holds %d of it", idsOf(in), there)
	case err == nil && there > 1:
		of := theInterface
		if keeps(f.Bench.Variant, variant.NoDuplicateDelivery) {
			of = variant.NoDuplicateDelivery
		}
		return broken(of, "one enqueue of %q, of which a command failed, entered it %d times", "a", there)
	case err == nil && there > len(in):
		return broken(theInterface, "an enqueue of which a command failed answered that it entered nothing, and it entered the task")
	}
	return nil
}

func failingPop(ctx context.Context, f *failing) error {
	if _, err := f.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	var got []queueimpl.Task
	err := f.during(func() (err error) { got, err = f.Pop(ctx, f.Name, 1); return err })
	if declared := declaredAs(err); declared != nil {
		return broken(theInterface, "a pop of which a command failed answered %q, and a task was due", declared)
	}
	if err != nil || !f.Bench.Variant.AtLeastOnce {
		return nil
	}
	_, claimed, err := f.there(ctx, "a")
	if err == nil && claimed != len(got) {
		err = broken(theInterface, "a pop of which a command failed answered %q, and the server holds %d claims", idsOf(got), claimed)
	}
	return err
}

func failingAck(ctx context.Context, f *failing) error {
	had, err := f.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	err = f.during(func() error { return f.Queue.(queueimpl.Acker).Ack(ctx, f.Name, had[0]) })
	waiting, claimed, e := f.there(ctx, "a")
	switch declared := declaredAs(err); {
	case e != nil:
		return e
	case declared != nil:
		return broken(theInterface, "an ack of which a command failed answered %q, and the task was the caller's", declared)
	case err == nil && waiting+claimed > 0:
		return broken(variant.EffectOnce, "an ack of which a command failed answered success, and the server holds the task, so that it is delivered again")
	}
	return nil
}

func failingExtend(ctx context.Context, f *failing) error {
	had, err := f.Given(ctx, theInterface)
	if err != nil {
		return err
	}
	err = f.during(func() error { _, err := f.Queue.(queueimpl.Extender).Extend(ctx, f.Name, had[0]); return err })
	if declared := declaredAs(err); declared != nil {
		return broken(theInterface, "an extend of which a command failed answered %q, and the task was the caller's", declared)
	}
	if err != nil || !f.failed {
		return nil
	}
	// It is said to hold, so it must.
	again, err := f.open(claims)
	if err != nil {
		return err
	}
	defer again.end()
	again.Name = f.Name + "-held"
	if had, err = again.Given(ctx, theInterface); err != nil {
		return err
	}
	f.Bench.Passes(ctx, claim/2)
	var longer queueimpl.Task
	if again.during(func() (err error) {
		longer, err = again.Queue.(queueimpl.Extender).Extend(ctx, again.Name, had[0])
		return err
	}) != nil {
		return nil // a busy machine
	}
	other := f.Bench.Client(claims)
	other.Name = again.Name
	if _, err := other.ExpectNext(ctx, variant.Progress, "a"); err != nil {
		return err
	}
	if err := early(other, longer, variant.NoDuplicateDelivery); err != nil {
		return fmt.Errorf("an extend of which a command failed answered success: %w", err)
	}
	return nil
}

// failingReclaim fails as often as it is asked to, since only a reclaim that is executed ends the claim.
func failingReclaim(ctx context.Context, f *failing) error {
	own, err := f.open(claims)
	if err != nil {
		return err
	}
	defer own.end()
	if _, err := own.Given(ctx, theInterface); err != nil {
		return err
	}
	f.Bench.Passes(ctx, claim*5/4)
	for _, choose := range own.kinds {
		choose()
		n := 0
		err := own.during(func() (err error) { n, err = own.Queue.(queueimpl.Reclaimer).Reclaim(ctx, own.Name); return err })
		_, claimed, e := own.there(ctx, "a")
		switch declared := declaredAs(err); {
		case e != nil:
			return e
		case declared != nil:
			return broken(theInterface, "a reclaim of which a command failed answered %q", declared)
		case err == nil && claimed > 0:
			if _, err := own.Queue.(queueimpl.Reclaimer).Reclaim(ctx, own.Name); err != nil {
				return nil // another rule's business
			}
			if _, still, err := own.there(ctx, "a"); err != nil || still > 0 {
				return err // the claim lasts longer than it should, whether or not a command fails
			}
			return broken(variant.NoLostTask, "a reclaim of which a command failed answered that it ended %d claims, and one that had run out is there still", n)
		case !own.failed || claimed == 0:
			return nil
		}
	}
	return nil
}

func failingDequeue(ctx context.Context, f *failing) error {
	in, err := f.Enter(ctx, theInterface, "a")
	if err != nil {
		return err
	}
	err = f.during(func() error { return f.Queue.(queueimpl.Dequeuer).Dequeue(ctx, f.Name, "a", in[0].Score) })
	waiting, claimed, e := f.there(ctx, "a")
	switch declared := declaredAs(err); {
	case e != nil:
		return e
	case declared != nil:
		return broken(theInterface, "a dequeue of which a command failed answered %q, and no other client had touched the task", declared)
	case err == nil && waiting+claimed > 0:
		return broken(theInterface, "a dequeue of which a command failed answered success, and the server holds the task")
	}
	return nil
}

func failingRequest(ctx context.Context, f *failing) error {
	j := f.Queue.(queueimpl.Journaler)
	if _, err := f.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	var got []queueimpl.Task
	err := f.during(func() (err error) { got, err = j.PopAs(ctx, f.Name, f.Request(0), 1); return err })
	if declared := declaredAs(err); declared != nil {
		return broken(theInterface, "a pop under a request, of which a command failed, answered %q, and a task was due", declared)
	}
	if err == nil {
		if err := f.Journal(ctx, f.Request(0), got); err != nil {
			return fmt.Errorf("after a pop under a request, of which a command failed: %w", err)
		}
	}
	took, err := j.Popped(ctx, f.Name, "request")
	if err != nil {
		return broken(theInterface, "journal of a request answered %q", err)
	}
	var told []queueimpl.Task
	if err := f.during(func() (err error) { told, err = j.Popped(ctx, f.Name, "request"); return err }); err == nil && !slices.EqualFunc(told, took, same) {
		return broken(theInterface, "a look into the journal, of which a command failed, answered that the request took %q; it took %q", idsOf(told), idsOf(took))
	}
	return nil
}

// failingLook looks at a queue in which a task is due.
func failingLook(ctx context.Context, f *failing) error {
	if _, err := f.Enter(ctx, theInterface, "a"); err != nil {
		return err
	}
	if p, ok := f.Queue.(queueimpl.Peeker); ok {
		var shown []queueimpl.Task
		err := f.during(func() (err error) { shown, err = p.Peek(ctx, f.Name, 1); return err })
		if declared := declaredAs(err); err == nil && len(shown) == 0 || declared != nil {
			return broken(theInterface, "a peek of which a command failed answered that nothing is due (%s), and a task was due", say(err))
		}
	}
	var s queueimpl.State
	err := f.during(func() (err error) { s, err = f.State(ctx, f.Name); return err })
	if (err == nil || declaredAs(err) != nil) && len(s.Waiting)+len(s.Claimed) == 0 {
		return broken(theInterface, "state, of which a command failed, answered that the queue is empty (%s), and a task waits", say(err))
	}
	return nil
}
