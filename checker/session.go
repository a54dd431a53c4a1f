package checker

import (
	"fmt"
	"time"

	"oversell/history"
)

// cutter is a monitor that must know when a history was cut off: the operations
// then in flight are missing from it, and nothing can be concluded from their
// absence. cut is called before Verdict, on a monitor that was never advanced.
type cutter interface{ cut() }

// cutOff is how verdicts name that reason.
const cutOff = "the history was cut off, and operations then in flight are missing from it"

// session is the identity of the acquisition that a lock operation is about: a number or a
// text.
func session(op *history.Op) history.Value { return op.Arg }

// granted is the earliest time at which the lock can have been granted. The
// call is that of the whole wait; the winning attempt started at
// Until - TTL + drift, and so not before Until - TTL.
func granted(h *history.Header, op *history.Op) time.Duration {
	if h.TTL > 0 && op.Until > 0 && op.Until != history.Forever {
		return min(max(op.Call, op.Until-h.TTL), op.Return)
	}
	return op.Call
}

// leased is the end of the lease that a grant or an extension promised;
// without a lease it never ends.
func leased(op *history.Op) time.Duration {
	if op.Until > 0 {
		return op.Until
	}
	return history.Forever
}

// expiry is the latest moment at which a lease can run out that was granted or
// extended by an operation that returned at ret and promised until.
func expiry(h *history.Header, ret, until time.Duration) time.Duration {
	if h.TTL <= 0 {
		return history.Forever
	}
	return max(after(ret, h.TTL, h.Drift), until)
}

// after is t + d, and history.Forever where that has no end.
func after(t time.Duration, d ...time.Duration) time.Duration {
	for _, d := range d {
		if t > history.Forever-d {
			return history.Forever
		}
		t += d
	}
	return t
}

// seem tells in half a sentence when and how a session came to hold the lock.
func seem(s *span) string {
	verb := "held it since " + at(s.start)
	if s.acq.Kind == history.Extend {
		return verb + " (by extending its lease to " + at(s.until) + ")"
	}
	how := via(&s.acq)
	if s.acq.Until > 0 {
		if how != "" {
			how += ", "
		} else {
			how = " "
		}
		how += "lease until " + at(s.until)
	}
	if how == "" {
		return verb
	}
	return verb + " (" + how[1:] + ")"
}

// overlapped is the sentence about two spans that overlap.
func overlapped(key history.Value, a, b *span) (string, []history.Op) {
	verb := fmt.Sprintf("was granted %s at %s%s", titled("lock", key), at(b.start), via(&b.acq))
	if b.acq.Kind == history.Extend {
		verb = fmt.Sprintf("extended its lease on %s at %s", titled("lock", key), at(b.start))
	}
	end := "and never gave it back"
	switch {
	case a.rel.Kind == history.Release:
		end = fmt.Sprintf("and gave it back only at %s", at(a.rel.Call))
	case a.closed && a.rel.Kind == history.Extend:
		end = fmt.Sprintf("and learned only at %s that it was lost", at(a.rel.Return))
	case a.closed:
		end = fmt.Sprintf("until %s", at(a.end))
	}
	why := fmt.Sprintf("%s %s, while %s %s %s", client(&b.acq), verb, client(&a.acq), seem(a), end)
	return why, inOrder(a.acq, a.rel, b.acq, b.rel)
}

// inOrder lists operations in completion order, without empty ones.
func inOrder(ops ...history.Op) []history.Op {
	out := make([]history.Op, 0, len(ops))
	for _, op := range ops {
		if op.Kind == history.NoKind {
			continue
		}
		i := len(out)
		for i > 0 && out[i-1].Return > op.Return {
			i--
		}
		out = append(out[:i], append([]history.Op{op}, out[i:]...)...)
	}
	return out
}
