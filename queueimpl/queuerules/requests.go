package queuerules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// sentAgain repeats a request, and expects that it returns the tasks that it took at first, and that the journal has the same.
func sentAgain(ctx context.Context, c *queueclient.Client, request string, first []queueimpl.Task, when string) error {
	again, err := c.Queue.(queueimpl.Journaler).PopAs(ctx, c.Name, request, max(len(first), 1))
	if err != nil || !slices.EqualFunc(again, first, queueclient.Same) {
		return suitetest.Broken(queueclient.TheInterface, "the request %.60q took %s; %s it was sent again, and was answered %s and %s", request, few(first), when, few(again), queueclient.Say(err))
	}
	if err := c.Journal(ctx, request, first); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	return nil
}

// few describes up to three tasks; of more, only their number.
func few(tasks []queueimpl.Task) string {
	if len(tasks) > 3 {
		return fmt.Sprintf("%d tasks", len(tasks))
	}
	return fmt.Sprintf("%+v", tasks)
}

// pops pops up to count tasks under a request, and expects at least one.
func pops(ctx context.Context, c *queueclient.Client, request string, count int) ([]queueimpl.Task, error) {
	got, err := c.Queue.(queueimpl.Journaler).PopAs(ctx, c.Name, request, count)
	if err != nil || len(got) == 0 {
		return nil, suitetest.Broken(variant.NoLostTask, "a pop of %d under the request %.60q, of tasks that are due, answered %s and %s", count, request, few(got), queueclient.Say(err))
	}
	return got, nil
}

// RequestOfOthers repeats a request after its claim has run out and another consumer was given the task. It must return what it
// returned at first, and not the receipt of the other consumer.
func RequestOfOthers(ctx context.Context, b queueclient.Bench) error {
	c, other := b.Client(queueclient.SetVisibility), b.Client(queueclient.SetVisibility)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
		return err
	}
	first, err := pops(ctx, c, c.Request(0), 1)
	if err != nil {
		return err
	}
	b.Passes(ctx, queueclient.Claim*5/4)
	second, err := other.ExpectNext(ctx, variant.NoLostTask, "a")
	if err != nil {
		return err
	}
	if err := sentAgain(ctx, c, c.Request(0), first, "when another consumer had the task"); err != nil {
		return err
	}
	return other.ExpectAck(ctx, queueclient.TheInterface, second, nil)
}

// RequestAfterWithdrawal repeats a request after its task was acknowledged, and the same id enqueued again and withdrawn. The request
// must return the task that it took at first, and take no other.
func RequestAfterWithdrawal(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(long)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
		return err
	}
	first, err := pops(ctx, c, c.Request(0), 1)
	if err != nil {
		return err
	}
	if err := c.Done(ctx, first...); err != nil {
		return err
	}
	in, err := c.Enter(ctx, queueclient.TheInterface, "a", "b")
	if err != nil {
		return err
	}
	for _, t := range in {
		if t.ID != "a" {
			continue
		}
		if err := c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, c.Name, t.ID, t.Score); err != nil {
			return suitetest.Broken(queueclient.TheInterface, "dequeue of a waiting task with its score answered %q", err)
		}
	}
	if err := sentAgain(ctx, c, c.Request(0), first, "when its task was done, and the same id was enqueued again and withdrawn,"); err != nil {
		return err
	}
	return c.ExpectState(ctx, queueclient.TheInterface, []string{"b"}, nil)
}

// LargeRequest pops hundreds of tasks under one request, and repeats it. It must return all of them again.
func LargeRequest(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(long)
	n := b.Fits(ctx, 500, 150, queueclient.Lateness)
	if _, err := c.Enter(ctx, queueclient.TheInterface, queueclient.Numbered(n)...); err != nil {
		return err
	}
	first, err := pops(ctx, c, c.Request(0), n)
	if err != nil {
		return err
	}
	return sentAgain(ctx, c, c.Request(0), first, "then")
}

// RequestsAlike pops tasks under pairs of requests that careless code takes for the same. Each request must get a task of its own.
func RequestsAlike(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(long)
	var requests []string
	for i, ends := range [][2]string{
		{"a", "A"}, {"1", "01"}, {"1", "1.0"}, {"x", "x "}, {"x", " x"}, {"x", "x\n"}, {"x", "x\x00"}, {"x:y", "x"}, {"x*", "x?"}, {"é", "e\u0301"}, {"ab", "abc"},
		{strings.Repeat("x", 300) + "a", strings.Repeat("x", 300) + "b"},
	} {
		base := c.Request(i)
		requests = append(requests, base+"-"+ends[0], base+"-"+ends[1])
	}
	requests = b.SomeOf(ctx, requests, queueclient.Lateness)
	if _, err := c.Enter(ctx, queueclient.TheInterface, queueclient.Numbered(len(requests))...); err != nil {
		return err
	}
	had := map[string][]queueimpl.Task{}
	by := map[string]string{} // which request took a task
	for _, r := range requests {
		got, err := c.Queue.(queueimpl.Journaler).PopAs(ctx, c.Name, r, 1)
		if errors.Is(err, queueimpl.ErrBadCall) {
			continue // it does not take such a request
		}
		if err != nil || len(got) != 1 {
			return suitetest.Broken(variant.NoLostTask, "a pop of 1 under the request %.60q, of tasks that are due, answered %s and %s", r, few(got), queueclient.Say(err))
		}
		if other, taken := by[got[0].ID]; taken {
			return suitetest.Broken(queueclient.TheInterface, "the request %s was given %q, which the request %s had taken", shortened(r), got[0].ID, shortened(other))
		}
		had[r], by[got[0].ID] = got, r
	}
	for _, r := range requests {
		if len(had[r]) > 0 {
			if err := sentAgain(ctx, c, r, had[r], "among others like it,"); err != nil {
				return err
			}
		}
	}
	return nil
}

// LateExtendThenAck extends a claim that has run out, which the queue must refuse, and then acknowledges the task. Nobody else has
// popped it, and a refused extend changes nothing, so the ack must succeed.
func LateExtendThenAck(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(queueclient.SetVisibility)
	had, err := c.Given(ctx, queueclient.TheInterface)
	if err != nil {
		return err
	}
	b.Passes(ctx, queueclient.Claim*5/4)
	if _, err := c.Queue.(queueimpl.Extender).Extend(ctx, c.Name, had[0]); !errors.Is(err, queueimpl.ErrLost) {
		return nil // another rule's business
	}
	if err := c.ExpectAck(ctx, queueclient.TheInterface, had[0], nil); err != nil {
		return fmt.Errorf("after an extend that came too late: %w", err)
	}
	return c.ExpectState(ctx, queueclient.TheInterface, nil, nil)
}

// EarlierScore withdraws an id with the score that an earlier entry of the same id had, moments before. The present
// entry must stay.
func EarlierScore(ctx context.Context, b queueclient.Bench) error {
	c := b.Client()
	d := c.Queue.(queueimpl.Dequeuer)
	withdraw := func(score float64, want error) error {
		if err := d.Dequeue(ctx, c.Name, "a", score); !errors.Is(err, want) {
			return suitetest.Broken(queueclient.TheInterface, "dequeue with the score of %s entry answered %s; want %s", map[bool]string{true: "an earlier", false: "the waiting"}[want != nil], queueclient.Say(err), queueclient.Say(want))
		}
		return nil
	}
	var earlier []queueimpl.Task
	for range b.Fits(ctx, 100, 10, queueclient.Lateness) {
		in, err := c.Enter(ctx, queueclient.TheInterface, "a")
		if err != nil || len(in) != 1 {
			return err
		}
		if len(earlier) > 0 && earlier[0].Score != in[0].Score {
			if err := withdraw(earlier[0].Score, queueimpl.ErrChanged); err != nil {
				return err
			}
		}
		if err := withdraw(in[0].Score, nil); err != nil {
			return err
		}
		earlier = in
	}
	return nil
}

// shortened quotes a text, of a long one the beginning and the end.
func shortened(text string) string {
	if len(text) <= 60 {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q…%q (%d bytes)", text[:25], text[len(text)-25:], len(text))
}
