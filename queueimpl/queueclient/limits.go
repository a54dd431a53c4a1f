package queueclient

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"oversell/queueimpl"
)

// A queue may take fewer ids in one call than a rule has, or hand out fewer tasks. It then answers ErrBadCall, or an
// error that wraps errors.ErrUnsupported, and the client makes several calls of half the size.

// plain matches ids that no queue has a reason to refuse.
var plain = regexp.MustCompile(`^[A-Za-z0-9:_-]{1,64}$`)

// refuses reports whether an answer says that the call was not made.
func refuses(err error) bool {
	return errors.Is(err, queueimpl.ErrBadCall) || errors.Is(err, errors.ErrUnsupported)
}

// Enqueue implements queueimpl.Queue, in several calls if the queue does not take so many ids at once.
func (c *Client) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	enqueue := func(ids []string) ([]queueimpl.Task, error) { return c.enqueue(ctx, name, ids) }
	if name == "" || slices.ContainsFunc(ids, func(id string) bool { return !plain.MatchString(id) }) {
		return enqueue(ids) // a refusal may be about the name, or an id
	}
	return inParts(ids, enqueue)
}

// enqueue makes one call, and notes it.
func (c *Client) enqueue(ctx context.Context, name string, ids []string) ([]queueimpl.Task, error) {
	c.Bench.Calls("enqueue of %.40q", ids)
	c.Bench.wasAcked(name, ids, true)
	return c.Queue.Enqueue(ctx, name, ids...)
}

// inParts enqueues ids by one call, or by several if the queue refuses one with so many.
func inParts(ids []string, enqueue func([]string) ([]queueimpl.Task, error)) ([]queueimpl.Task, error) {
	entered, err := enqueue(ids)
	if len(ids) < 2 || !refuses(err) || len(entered) > 0 {
		return entered, err
	}
	for _, half := range [][]string{ids[:len(ids)/2], ids[len(ids)/2:]} {
		some, err := inParts(half, enqueue)
		entered = append(entered, some...)
		if err != nil {
			return entered, err
		}
	}
	return entered, nil
}

// Pop implements queueimpl.Queue. It asks for fewer tasks if the queue does not hand out so many at once.
func (c *Client) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := c.pop(ctx, name, count)
	for count > 1 && name != "" && refuses(err) && len(tasks) == 0 {
		count /= 2
		tasks, err = c.pop(ctx, name, count)
	}
	return tasks, err
}

// pop makes one call, and notes it.
func (c *Client) pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	c.Bench.Calls("pop of %d", count)
	return c.Queue.Pop(ctx, name, count)
}

// Works reports why a queue does not take a task, or hand out what it took: then every rule would fail.
func (b Bench) Works(ctx context.Context) error {
	const tries = 3
	c := b.Client()
	var err error
	for range tries {
		ctx, cancel := context.WithTimeout(ctx, Answer)
		if _, err = c.Enqueue(ctx, c.Name, "works"); err == nil {
			_, err = c.Pop(ctx, c.Name, 1)
		}
		cancel()
		if err == nil || DeclaredAs(err) != nil {
			return nil
		}
	}
	return fmt.Errorf("enqueue of one id, and a pop, were tried %d times, and the last answer was: %w", tries, err)
}
