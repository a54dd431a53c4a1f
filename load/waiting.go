package load

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/variant"
)

// Waiting is a strategy for waiting before another try of a busy lock.
type Waiting string

// The strategies.
const (
	// Poll tries again after the retry interval, less up to half of it at random, so that clients that started
	// together drift apart.
	Poll Waiting = "poll"
	// Fixed tries again after exactly the retry interval, like the source documents' locks. Clients that started
	// together stay together.
	Fixed Waiting = "fixed"
	// Exponential doubles the pause from 1 ms up to the retry interval, with
	// the same jitter.
	Exponential Waiting = "exponential"
	// PubSub sleeps until a release is published. A release wakes the waiter that came first, or all waiters of a lock
	// with a wait line. The retry interval bounds the sleep, because the end of a lease is not published.
	PubSub Waiting = "pubsub"
)

// Waitings lists the strategies.
var Waitings = []Waiting{Poll, Fixed, Exponential, PubSub}

// WaitingNames returns the strategies' names in one line, for help and errors.
func WaitingNames() string {
	names := make([]string, len(Waitings))
	for i, w := range Waitings {
		names[i] = string(w)
	}
	return strings.Join(names, ", ")
}

// printedRetry is the pause between two attempts in the source documents.
const printedRetry = 100 * time.Millisecond

// firstPause is the first pause of Exponential.
const firstPause = time.Millisecond

// ParseWaiting parses a strategy's name.
func ParseWaiting(s string) (Waiting, error) {
	if w := Waiting(s); slices.Contains(Waitings, w) {
		return w, nil
	}
	return "", fmt.Errorf("waiting strategy %q is not known: it is one of %s", s, WaitingNames())
}

// DefaultRetry returns the retry interval of the strategy for this many clients, counted once for every master they
// ask. The interval grows with their number, because beyond about 10,000 tries a second on a small machine the
// waiters delay the holder.
func (w Waiting) DefaultRetry(clients int) time.Duration {
	switch w {
	case Fixed:
		return printedRetry
	case Exponential:
		return max(64*time.Millisecond, pollEvery(clients))
	case PubSub: // with thousands of waiters, some try at any time
		return max(time.Second, 5*pollEvery(clients))
	}
	return pollEvery(clients)
}

func pollEvery(clients int) time.Duration {
	return max(10*time.Millisecond, time.Duration(clients)*100*time.Microsecond)
}

// wait implements variant.Env.Wait.
func (c *Client) wait(ctx context.Context, key string, atMost time.Duration) error {
	if c.worker != nil {
		return c.worker.Wait(ctx, c.pause(c.engine.config.Waiting, atMost))
	}
	if c.engine.Stopping() {
		return variant.ErrStopped
	}
	var woken <-chan struct{}
	if c.engine.config.Waiting == PubSub {
		var leave func()
		woken, leave = c.engine.hub.wait(key)
		defer leave()
	}
	pause := c.pause(c.engine.config.Waiting, atMost)
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-woken:
	case <-c.engine.stopping:
		return variant.ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	triesAgain(ctx)
	return nil
}

// pause returns how long the client waits unless it is woken.
func (c *Client) pause(w Waiting, atMost time.Duration) time.Duration {
	switch w {
	case Fixed:
		return atMost
	case Exponential:
		c.waits++
		return c.jitter(min(atMost, firstPause<<min(c.waits-1, 20)))
	}
	return c.jitter(atMost)
}

// jitter returns a random duration between d/2 and d.
func (c *Client) jitter(d time.Duration) time.Duration {
	if d <= 1 {
		return d
	}
	return d - time.Duration(c.Rand.Int64N(int64(d/2)+1))
}

// wakeChannel returns the channel on which the release of a lock is published.
func wakeChannel(name string) string { return "Wake:" + name }

// lockOf is the inverse of wakeChannel.
func lockOf(channel string) string { return strings.TrimPrefix(channel, "Wake:") }
