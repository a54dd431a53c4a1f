package queuerules

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"oversell/internal/alike"
	"oversell/internal/suitetest"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// SameChecksums enqueues ids in pairs that have the same checksum of 32 bits, by some common function, into one queue, and
// one task into each of several queues whose names have.
func SameChecksums(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(long)
	var ids []string
	for _, p := range alike.Colliding {
		for _, n := range p {
			ids = append(ids, strconv.FormatInt(n, 10), "task-"+strconv.FormatInt(n, 10))
		}
	}
	if ids, err := b.Accepted(ctx, ids); err != nil {
		return err
	} else if err := handsOut(ctx, c, ids); err != nil {
		return fmt.Errorf("of ids that have the same checksum as another: %w", err)
	}
	names := alike.SameChecksum(b.Queue)
	for i, name := range names {
		own := *c
		own.Name = name
		if _, err := own.Enter(ctx, variant.NoLostTask, fmt.Sprintf("task-%d", i)); err != nil {
			return fmt.Errorf("queues whose names have the same checksum as another's: %w", err)
		}
	}
	for i, name := range names {
		own := *c
		own.Name = name
		if _, err := own.ExpectTake(ctx, variant.NoLostTask, 2, fmt.Sprintf("task-%d", i)); err != nil {
			return fmt.Errorf("of queues whose names have the same checksum as another's: %w", err)
		}
	}
	return nil
}

// handsOut enqueues ids, and expects each of them once.
func handsOut(ctx context.Context, c *queueclient.Client, ids []string) error {
	if _, err := c.Enter(ctx, variant.NoLostTask, ids...); err != nil {
		return err
	}
	tasks, err := c.All(ctx, len(ids), len(ids))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if n := len(slices.DeleteFunc(queueclient.IDsOf(tasks), func(other string) bool { return other != id })); n != 1 {
			return suitetest.Broken(variant.NoLostTask, "%q was enqueued once, and delivered %d times", id, n)
		}
	}
	return nil
}
