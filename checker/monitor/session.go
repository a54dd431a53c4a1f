package monitor

import (
	"fmt"
	"time"

	"oversell/checker/say"
	"oversell/history"
)

// CutAware is a monitor that must know when a history was cut off: the operations
// then in flight are missing from it, and nothing can be concluded from their
// absence. Cut says before Verdict whether it was.
type CutAware interface{ Cut(is bool) }

// CutOff is the reason in verdicts about a history that was cut off.
const CutOff = "the history was cut off, and operations then in flight are missing from it"

// Session returns the identity of a lock operation's acquisition: a number or a text.
func Session(op *history.Op) history.Value { return op.Arg }

// Granted is the earliest time at which the lock can have been granted. Call is the start
// of the whole wait; the winning attempt started at Until - TTL + drift, so not before
// Until - TTL.
func Granted(h *history.Header, op *history.Op) time.Duration {
	if h.TTL > 0 && op.Until > 0 && op.Until != history.Forever {
		return min(max(op.Call, op.Until-h.TTL), op.Return)
	}
	return op.Call
}

// Leased returns the end of the lease that a grant or an extension promised;
// without a lease it never ends.
func Leased(op *history.Op) time.Duration {
	if op.Until > 0 {
		return op.Until
	}
	return history.Forever
}

// Expiry returns the latest moment at which a lease can run out that was granted or
// extended by an operation that returned at ret and promised until.
func Expiry(h *history.Header, ret, until time.Duration) time.Duration {
	if h.TTL <= 0 {
		return history.Forever
	}
	return max(After(ret, h.TTL, h.Drift), until)
}

// Always is before all times.
const Always = time.Duration(-1 << 63)

// Bound returns how long a lock may be free while clients try: its lease, a grace, and
// the pause between two looks of a client that waits.
func Bound(h *history.Header) time.Duration { return After(h.TTL, h.Grace, h.Retry) }

// After returns t + d, and history.Forever if that has no end.
func After(t time.Duration, d ...time.Duration) time.Duration {
	for _, d := range d {
		if t > history.Forever-d {
			return history.Forever
		}
		t += d
	}
	return t
}

// grantClause returns a clause: when and how a session came to hold the lock.
func grantClause(s *Span) string {
	verb := "held it since " + say.At(s.Start)
	renewed := ""
	if s.Rel.Kind == history.Release && s.Rel.Until > s.Until {
		renewed = ", renewed until " + say.At(s.Rel.Until)
	}
	if s.Acq.Kind == history.Extend {
		return verb + " (by extending its lease to " + say.At(s.Until) + renewed + ")"
	}
	how := say.Via(&s.Acq)
	if s.Acq.Until > 0 {
		if how != "" {
			how += ", "
		} else {
			how = " "
		}
		how += "lease until " + say.At(s.Until) + renewed
	}
	if how == "" {
		return verb
	}
	return verb + " (" + how[1:] + ")"
}

// Overlapped returns the sentence about two spans that overlap.
func Overlapped(key history.Value, a, b *Span) (string, []history.Op) {
	verb := fmt.Sprintf("was granted %s at %s%s", say.Titled("lock", key), say.At(b.Start), say.Via(&b.Acq))
	if b.Acq.Kind == history.Extend {
		verb = fmt.Sprintf("extended its lease on %s at %s", say.Titled("lock", key), say.At(b.Start))
	}
	end := "and never released it"
	switch {
	case a.Rel.Kind == history.Release:
		end = fmt.Sprintf("and released it only at %s", say.At(a.Rel.Call))
	case a.Closed && a.Rel.Kind == history.Extend:
		end = fmt.Sprintf("and learned only at %s that it was lost", say.At(a.Rel.Return))
	case a.Closed:
		end = fmt.Sprintf("until %s", say.At(a.end))
	}
	why := fmt.Sprintf("%s %s, while %s %s %s", say.Client(&b.Acq), verb, say.Client(&a.Acq), grantClause(a), end)
	return why, InOrder(a.Acq, a.Rel, b.Acq, b.Rel)
}

// InOrder lists operations in completion order, without empty ones.
func InOrder(ops ...history.Op) []history.Op {
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
