package locks

import (
	"time"

	"oversell/checker/monitor"
	"oversell/history"
)

// encounters counts, for one lock, the moments at which two clients met: the opportunities to break the lock's
// promises. A client meets another one when its operation overlaps, in time, an operation or tenure of the other's on
// the same key. Only operations with an answer count: a client that was stopped, or whose acquire had no answer, shows
// nothing. Clients on different keys never meet, and a client does not meet itself.
//
// A tenure is the time over which a client surely held the lock: from the return of its
// grant to the call of its release or to the end of its lease, whichever comes first. A lease that was over when the
// grant returned gives no tenure. A count may be too low, but never too high: if more than a few clients hold the lock
// at once, only the newest tenures are compared.
type encounters struct {
	open    []*lockSession     // not released and not known to have lapsed
	ends    latest             // ends of the other tenures
	asked   monitor.Contention // answered acquires
	answers monitor.Contention // all answers
	changes []changed          // releases and extensions that met no other client so far, by return
	holder  int32              // the client that was granted the lock last

	grants    int64
	handovers int64 // grants that were asked for during another client's tenure
	refusals  int64 // refusals that were asked for, in part, during another client's tenure
	contended int64 // releases and extensions that met another client's acquire or tenure
	passes    int64 // grants that followed another client's
	meetings  int64 // answers that met another client's answer or tenure
}

// asking is an acquire that met a tenure whose release may have been called earlier.
type asking struct {
	call    time.Duration
	refused bool
}

// changed is a release or an extension.
type changed struct {
	client   int32
	returned time.Duration
}

// fewTenures is how many tenures are compared.
const fewTenures = 8

// observe takes an operation of the lock. t is its session, nil if that cannot hold the lock.
func (c *encounters) observe(op *history.Op, t *lockSession) {
	if op.Kind == history.Join {
		return
	}
	answered := op.Outcome == history.OK || op.Reason == history.Held || op.Reason == history.Lost
	if answered && (c.answers.Overlaps(op.Client, op.Call) || c.during(op)) {
		c.meetings++
	}
	switch op.Kind {
	case history.Acquire:
		if answered {
			c.acquire(op, t)
		}
	case history.Extend, history.Release:
		if answered {
			c.change(op)
		}
		if t != nil && t.place > 0 {
			c.goesOn(op, t)
		}
	}
	if answered {
		c.answers.Add(op.Client, op.Return)
	}
}

func (c *encounters) acquire(op *history.Op, t *lockSession) {
	refused := op.Outcome == history.Refused
	until := monitor.Leased(op)
	if refused || until > op.Return {
		c.ask(op, refused)
	}
	c.asked.Add(op.Client, op.Return)
	for i := len(c.changes) - 1; i >= 0 && c.changes[i].returned > op.Call; i-- {
		if c.changes[i].client != op.Client {
			c.contended++
			c.changes = append(c.changes[:i], c.changes[i+1:]...)
		}
	}
	if refused {
		return
	}
	if c.grants++; c.grants > 1 && c.holder != op.Client {
		c.passes++
	}
	c.holder = op.Client
	if t.place > 0 { // a session number used twice
		c.close(t, min(t.until, op.Call))
	}
	if until > op.Return {
		t.client, t.until = op.Client, until
		c.open = append(c.open, t)
		t.place = len(c.open)
	}
}

// ask looks for a tenure of another client during which op asked for the lock.
func (c *encounters) ask(op *history.Op, refused bool) {
	if c.ends.other(op.Client) > op.Call {
		c.met(refused)
	} else if t := c.tenure(op); t != nil {
		t.asked = append(t.asked, asking{op.Call, refused})
	}
}

func (c *encounters) met(refused bool) {
	if refused {
		c.refusals++
	} else {
		c.handovers++
	}
}

// tenure returns an open tenure of another client that may have lasted until op was called.
func (c *encounters) tenure(op *history.Op) *lockSession {
	for i := len(c.open) - 1; i >= max(0, len(c.open)-fewTenures); i-- {
		if t := c.open[i]; t.client != op.Client && t.until > op.Call {
			return t
		}
	}
	return nil
}

// during reports whether op met a tenure of another client, or its release.
func (c *encounters) during(op *history.Op) bool {
	return c.ends.other(op.Client) > op.Call || c.tenure(op) != nil
}

func (c *encounters) change(op *history.Op) {
	if c.asked.Overlaps(op.Client, op.Call) || c.during(op) {
		c.contended++
	} else {
		c.changes = append(c.changes, changed{op.Client, op.Return})
	}
}

// goesOn applies an operation of its session to an open tenure.
func (c *encounters) goesOn(op *history.Op, t *lockSession) {
	switch {
	case op.Kind == history.Release:
		c.close(t, min(op.Call, max(t.until, op.Until)))
	case op.Reason == history.Lost:
		c.close(t, min(op.Call, t.until))
	case op.Outcome == history.OK:
		t.until = max(t.until, monitor.Leased(op))
	}
}

// close ends a tenure. An acquire that was called before the tenure's end has met the
// tenure.
func (c *encounters) close(t *lockSession, end time.Duration) {
	for _, a := range t.asked {
		if a.call < end {
			c.met(a.refused)
		}
	}
	t.asked = t.asked[:0]
	c.ends.add(t.client, end)
	c.open = withdrawn(c.open, t)
}

// advance settles everything that no later operation can change.
func (c *encounters) advance(lowWater time.Duration) {
	for i := len(c.open) - 1; i >= 0; i-- {
		t := c.open[i]
		if t.until < lowWater {
			c.close(t, t.until)
			continue
		}
		left := t.asked[:0]
		for _, a := range t.asked {
			if a.call < lowWater { // the release is called later
				c.met(a.refused)
			} else {
				left = append(left, a)
			}
		}
		t.asked = left
	}
	old := 0
	for old < len(c.changes) && c.changes[old].returned <= lowWater {
		old++
	}
	c.changes = append(c.changes[:0], c.changes[old:]...)
}

// exclusive returns how many grants and refusals met another client's tenure, as if the history
// ended now.
func (c *encounters) exclusive() (handovers, refusals int64) {
	handovers, refusals = c.handovers, c.refusals
	for _, t := range c.open {
		for _, a := range t.asked {
			if a.refused {
				refusals++
			} else {
				handovers++
			}
		}
	}
	return handovers, refusals
}

// latest holds the latest of some times, and the latest of all other clients.
type latest struct {
	n      int
	client [2]int32
	at     [2]time.Duration
}

func (l *latest) add(client int32, at time.Duration) {
	switch {
	case l.n > 0 && client == l.client[0]:
		l.at[0] = max(l.at[0], at)
	case l.n == 0 || at > l.at[0]:
		l.client[1], l.at[1] = l.client[0], l.at[0]
		l.client[0], l.at[0] = client, at
		l.n = min(l.n+1, 2)
	case l.n == 1 || at > l.at[1]:
		l.client[1], l.at[1] = client, at
		l.n = 2
	}
}

// other returns the latest time of a client other than this one; before all times if there
// is none.
func (l *latest) other(client int32) time.Duration {
	for i := range l.n {
		if l.client[i] != client {
			return l.at[i]
		}
	}
	return -1 << 63
}
