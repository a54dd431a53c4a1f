package load

import (
	"errors"
	"time"

	"oversell/variant"
)

// PoolUse is the cost, so far, of sharing connections.
type PoolUse struct {
	// Sent is the number of commands and pipelines that clients have sent over shared connections, and Took their
	// total duration up to the replies.
	Sent int64
	Took time.Duration
	// Waited is how many of them waited for a connection, and Wait the total wait. It is part of Took.
	Waited int64
	Wait   time.Duration
}

// Sub returns u minus an earlier value.
func (u PoolUse) Sub(before PoolUse) PoolUse {
	return PoolUse{u.Sent - before.Sent, u.Took - before.Took, u.Waited - before.Waited, u.Wait - before.Wait}
}

// PoolUse returns the cost of shared connections so far; zero if each client has its own.
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

// trip records the duration of a command or a pipeline that was sent at a time, unless the end of the run prevented
// it.
func (e *Engine) trip(sent time.Duration, err error) {
	if e.config.Pool > 0 && !errors.Is(err, variant.ErrStopped) {
		e.trips.Add(1)
		e.took.Add(int64(time.Since(e.began) - sent))
	}
}

// sentAt returns the start of a command, since the engine began; zero without a shared pool, which alone needs it.
func (e *Engine) sentAt() time.Duration {
	if e.config.Pool == 0 {
		return 0
	}
	return time.Since(e.began) // reads one clock; Now would read two
}
