package queuetest

import (
	"context"
	"fmt"
	"slices"

	"oversell/internal/interrupt"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this file lose one command of a call, or have the server refuse it, and compare what
// the call answered with what the server holds. An error may leave the outcome open. Success and the
// declared answers may not: they must be true.

// badly are the ways in which a command fails.
var badly = []interrupt.Action{interrupt.LoseRequest, interrupt.LoseReply, interrupt.Refuse}

// failing is a client with a call of which a command fails.
type failing struct {
	*client
	line *interrupt.Line
	n    int
	a    interrupt.Action
}

// during runs a call of which the n-th command fails.
func (f *failing) during(call func() error) error {
	f.line.Arm(f.n, f.a)
	err := call()
	f.line.Plan(nil)
	return err
}

// there is how many entries with this id another client sees.
func (f *failing) there(ctx context.Context, id string) (waiting, claimed int, _ error) {
	s, err := f.Bench.Client().State(ctx, f.Name)
	if err != nil {
		return 0, 0, broken(theInterface, "state answered %q", err)
	}
	others := func(t queueimpl.Task) bool { return t.ID != id }
	return len(slices.DeleteFunc(s.Waiting, others)), len(slices.DeleteFunc(s.Claimed, others)), nil
}

// definiteAnswers fails each command of every call in each way, on a queue of its own.
func definiteAnswers(ctx context.Context, b bench) error {
	calls := []struct {
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
	}
	return b.Each(ctx, badly, func(ctx context.Context, b bench, n int, a interrupt.Action) error {
		for _, call := range calls {
			if call.on != nil && !call.on(b.Variant) {
				continue
			}
			own := b
			own.Queue += "-" + call.name
			c, line := own.Interrupted(ctx, long)
			if err := call.try(ctx, &failing{c, line, n, a}); err != nil {
				return err
			}
		}
		return nil
	})
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
	err := f.during(func() (err error) { got, err = j.PopAs(ctx, f.Name, "request", 1); return err })
	if declared := declaredAs(err); declared != nil {
		return broken(theInterface, "a pop under a request, of which a command failed, answered %q, and a task was due", declared)
	}
	if err == nil {
		if err := f.Journal(ctx, "request", got); err != nil {
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
	var s queueimpl.State
	err := f.during(func() (err error) { s, err = f.State(ctx, f.Name); return err })
	if (err == nil || declaredAs(err) != nil) && len(s.Waiting)+len(s.Claimed) == 0 {
		return broken(theInterface, "state, of which a command failed, answered that the queue is empty (%s), and a task waits", say(err))
	}
	return nil
}
