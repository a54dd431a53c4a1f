package locks

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// line judges that a lock serves the clients in its wait line in the order in which they joined it.
//
// It is surely broken if a client had its place in the line before another one called, and the other one's grant
// returned before the first can have had its own. A client that never got the lock is not counted: it may have left the
// line. The smallest bad history:
//
//	client 1  join     [1, 2]
//	client 2  acquire  [3, 4]
//	client 1  acquire  [1, 7]  until 5 + TTL: the winning attempt began at 5
//
// Without leases, a grant can have happened at any time during its wait, except while another
// client held the lock: if mutual exclusion is promised as well, and another client gave the lock
// back during the wait, the grant came after that. So this is broken, too:
//
//	client 1  join     [1, 2]
//	client 2  acquire  [3, 4]
//	client 2  release  [5, 6]
//	client 1  acquire  [1, 7]
//
// An opportunity is a grant to a client that called while another one was waiting with a place in the line: it could
// have overtaken that one.
type line struct {
	h       *history.Header
	key     history.Value
	grants  monitor.RunningMax // by the call: the latest call among the grants served before t
	freed   [2]given           // the last times at which two clients were done with the lock
	asking  []wait             // in the line and not served, by the time at which they joined it
	waits   []wait             // in the line, by the return of the grant
	head    int                // waits[:head] can matter to no grant to come
	served  int64
	inLine  int64
	met     int64 // opportunities
	broken  int
	why     string
	witness []history.Op
}

// wait is the time in which a client waited in the line.
type wait struct {
	client         int32
	session        history.Value
	joined, served time.Duration
}

// given is when a client finished with the lock: by a release, or the end of its lease.
type given struct {
	client int32
	at     time.Duration
}

// fewWaits is how many waits are compared with a grant.
const fewWaits = 16

func openLine(ls *locks, l *lock) { l.line = &line{h: ls.h, key: l.key} }

func (l *line) observe(op *history.Op, t *lockSession) {
	switch op.Kind {
	case history.Join:
		if t != nil && op.Outcome == history.OK {
			joined := *op
			t.joined = &joined
			l.asking = append(l.asking, wait{client: op.Client, session: op.Arg, joined: op.Return})
		}
	case history.Release:
		if t != nil && op.Outcome == history.OK {
			l.free(given{op.Client, min(op.Call, t.leased)})
		}
	case history.Acquire:
		l.asking = slices.DeleteFunc(l.asking, func(w wait) bool { return w.client == op.Client && w.session == op.Arg })
		if op.Outcome == history.OK {
			if t.leased = monitor.Leased(op); t.leased < op.Return {
				t.leased = 0 // it may have been granted after that
			}
			l.acquire(op, t.joined)
		}
		if t != nil {
			t.joined = nil
		}
	}
}

func (l *line) acquire(op, joined *history.Op) {
	l.served++
	if joined != nil {
		l.inLine++
		from := l.earliest(op)
		if other := l.grants.Before(from); other != nil && time.Duration(other.Value) > joined.Return {
			l.overtaken(joined, op, &other.Op, from)
		}
	}
	called := op.Call // a request whose answer was lost may have joined before joined did
	if joined != nil {
		called = min(called, joined.Call)
	}
	l.meet(op, called)
	if joined != nil {
		l.waits = append(l.waits, wait{op.Client, op.Arg, joined.Return, op.Return})
	}
	asked := *op
	asked.Call = called
	l.grants.Add(int64(called), &asked)
}

// free notes that a client finished with the lock. It keeps the last time of each of the two clients with the last such
// times.
func (l *line) free(g given) {
	switch {
	case g.client == l.freed[0].client:
		l.freed[0].at = max(l.freed[0].at, g.at)
	case g.at > l.freed[0].at:
		l.freed = [2]given{g, l.freed[0]}
	case g.at > l.freed[1].at:
		l.freed[1] = g
	}
}

// earliest returns when a lock can have been granted at the earliest.
func (l *line) earliest(op *history.Op) time.Duration {
	from := monitor.Granted(l.h, op)
	if !l.h.Promised(variant.Lock, variant.MutualExclusion) || monitor.Leased(op) < op.Return {
		return from
	}
	other := l.freed[0]
	if other.client == op.Client {
		other = l.freed[1]
	}
	return max(from, min(other.at, op.Return))
}

// meet counts op if another client was waiting at the time at which op's client called.
func (l *line) meet(op *history.Op, called time.Duration) {
	for _, w := range l.asking[:min(len(l.asking), 2)] {
		if w.client != op.Client && w.joined < called {
			l.met++
			return
		}
	}
	waits := l.waits[l.head:]
	i := sort.Search(len(waits), func(i int) bool { return waits[i].served > called })
	for _, w := range waits[i:min(len(waits), i+fewWaits)] {
		if w.client != op.Client && w.joined < called {
			l.met++
			return
		}
	}
}

func (l *line) overtaken(joined, op, other *history.Op, from time.Duration) {
	l.broken++
	if l.broken > 1 {
		return
	}
	l.why = fmt.Sprintf("%s joined the line for %s at %s; %s called only at %s and was served at %s, before %s, served at %s at the earliest",
		say.Client(op), say.Titled("lock", l.key), say.At(joined.Return), say.Client(other), say.At(other.Call), say.At(other.Return), say.Client(op), say.At(from))
	l.witness = monitor.InOrder(*joined, *other, *op)
}

func (l *line) advance(lowWater time.Duration) {
	l.grants.Forget(lowWater)
	for l.head < len(l.waits) && l.waits[l.head].served <= lowWater {
		l.head++
	}
	if l.head > 1024 && 2*l.head > len(l.waits) {
		l.waits, l.head = append(l.waits[:0], l.waits[l.head:]...), 0
	}
}

// order returns the verdict on the order of service.
func (l *lock) order(*locks) monitor.Verdict {
	f := l.line
	v := monitor.Verdict{Opportunities: f.met}
	switch {
	case f.broken > 0:
		v.Result, v.Count, v.Why, v.Witness = monitor.Violated, f.broken, f.why, f.witness
	case f.inLine == 0:
		v.Why, v.Idle = "nobody was served from a line", f.served == 0
	case f.met == 0:
		v.Result, v.Say = monitor.Holds, func() string {
			return say.Count(f.inLine, "grant") + " from the line, and nobody called while another client waited in it"
		}
	default:
		v.Result, v.Say = monitor.Holds, func() string {
			return fmt.Sprintf("%s from the line, %s of a call that came while another client waited in it; nobody was provably overtaken", say.Count(f.inLine, "grant"), say.Thousands(f.met))
		}
	}
	return v
}
