package load

import (
	"errors"
	"time"

	"oversell/variant"
)

// PoolUse is what it has cost clients until now that they share connections.
type PoolUse struct {
	// Sent is how many commands and pipelines clients have sent over shared connections, and
	// Took how long all of them together took, until the answers.
	Sent int64
	Took time.Duration
	// Waited is how many had to wait for a connection, and Wait for how long all together.
	// It is a part of Took.
	Waited int64
	Wait   time.Duration
}

// Less is u without what was before.
func (u PoolUse) Less(before PoolUse) PoolUse {
	return PoolUse{u.Sent - before.Sent, u.Took - before.Took, u.Waited - before.Waited, u.Wait - before.Wait}
}

// PoolUse is what the shared connections have cost the clients; zero where each has its own.
func (e *Engine) PoolUse() (u PoolUse) {
	if e.shared == nil {
		return u
	}
	u.Sent, u.Took = e.trips.Load(), time.Duration(e.took.Load())
	for _, c := range e.shared {
		s := c.PoolStats()
		u.Waited, u.Wait = u.Waited+int64(s.WaitCount), u.Wait+time.Duration(s.WaitDurationNs)
	}
	return u
}

// trip notes how long a command or a pipeline took that was sent at a time, unless the end of
// the run kept it back.
func (e *Engine) trip(sent time.Time, err error) {
	if !sent.IsZero() && !errors.Is(err, variant.ErrStopped) {
		e.trips.Add(1)
		e.took.Add(int64(time.Since(sent)))
	}
}

// leaves is the time at which something is sent; zero where nobody asks for it.
func (e *Engine) leaves() (t time.Time) {
	if e.config.Pool > 0 {
		t = time.Now()
	}
	return t
}
