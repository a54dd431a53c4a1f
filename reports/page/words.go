package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oversell/history"
	"oversell/reports"
)

// moment formats a time or a duration, like the verdicts' sentences.
func moment(d time.Duration) string { return history.FormatTime(d) }

// plainKey returns a key without the run's prefix in braces.
func plainKey(key history.Value) string {
	s := key.String()
	if i := strings.IndexByte(s, '{'); i >= 0 {
		if j := strings.IndexByte(s[i:], '}'); j >= 0 && len(s) > i+j+1 {
			s = s[:i] + s[i+j+1:]
		}
	}
	return s
}

func quotedKey(key history.Value) string { return strconv.Quote(plainKey(key)) }

// who returns the name of an operation's client.
func who(op history.Op) string {
	if op.Client < 0 {
		return "nobody"
	}
	return "client " + strconv.Itoa(int(op.Client))
}

// said formats a value with a prefix; empty for the zero value.
func said(prefix string, v history.Value) string {
	if v == (history.Value{}) {
		return ""
	}
	return prefix + v.String()
}

// sentence describes an operation, without a full stop: the client, the operation, the time, the command and the
// outcome.
func sentence(op history.Op) string {
	if op.Kind == history.Fault {
		return faultSentence(op)
	}
	s := who(op) + " " + deed(op)
	if op.Outcome == history.Unknown {
		return s + " at " + moment(op.Call) + " and never got an answer (it gave up at " + moment(op.Return) + ")"
	}
	return s
}

// deed describes what the client of an operation did.
func deed(op history.Op) string {
	tell, known := deeds[op.Kind]
	if !known {
		return op.Kind.String() + " " + plainKey(op.Key)
	}
	return tell(op)
}

// deeds describes the operations of each kind. Without an answer, it describes only the request.
var deeds = map[history.Kind]func(history.Op) string{
	history.Acquire: acquired,
	history.Extend:  extended,
	history.Release: released,
	history.Join: func(op history.Op) string {
		return "joined the line for " + quotedKey(op.Key) + " at " + moment(op.Return)
	},
	history.Buy:       bought,
	history.Refund:    refunded,
	history.ReadState: readOff,
	history.Enqueue:   enqueued,
	history.Dequeue:   withdrew,
	history.Pop:       popped,
	history.Ack:       acknowledged,
	history.Effect:    effected,
	history.NextID:    numbered,
	history.Take:      took,
	history.Submit:    submitted,
}

func interval(op history.Op) string {
	return " between " + moment(op.Call) + " and " + moment(op.Return)
}

func acquired(op history.Op) string {
	key := quotedKey(op.Key)
	switch op.Outcome {
	case history.OK:
		s := "was granted " + key + " at " + moment(op.Return) + said(" by ", op.Result) + ", having asked at " + moment(op.Call)
		if op.Until > 0 {
			s += "; its lease ends at " + moment(op.Until)
		}
		if op.Fence != 0 {
			s += "; its token is " + strconv.FormatInt(op.Fence, 10)
		}
		return s
	case history.Refused:
		return "asked for " + key + " at " + moment(op.Call) + " and was refused at " + moment(op.Return) + because(op)
	}
	return "asked for " + key
}

func extended(op history.Op) string {
	key := quotedKey(op.Key)
	switch op.Outcome {
	case history.OK:
		return "extended its lease of " + key + interval(op) + ", until " + moment(op.Until)
	case history.Refused:
		return "tried to extend its lease of " + key + ", and was told at " + moment(op.Return) + " that it was no longer the holder"
	}
	return "tried to extend its lease of " + key
}

func released(op history.Op) string {
	key := quotedKey(op.Key)
	late := ""
	if op.Until > 0 && op.Call > op.Until {
		late = ", " + moment(op.Call-op.Until) + " after the end of its lease"
	}
	switch op.Outcome {
	case history.OK:
		return "released " + key + interval(op) + late
	case history.Refused:
		return "tried to release " + key + interval(op) + late + ", and was told that it was no longer the holder"
	}
	return "tried to release " + key
}

func pieces(op history.Op) string { return reports.Count(op.Pieces(), "piece") }

func order(op history.Op) string { return " (order " + op.Arg.String() + ")" }

func bought(op history.Op) string {
	switch {
	case op.Outcome == history.OK && op.Reason == history.Repeated:
		return "sent its order again" + order(op) + interval(op) + " and was told that it had been counted before"
	case op.Outcome == history.OK:
		s := "bought " + pieces(op) + order(op) + interval(op)
		if left, ok := op.Result.Num(); ok && left >= 0 {
			s += " and was told that " + reports.Thousands(left) + " " + isOrAre(int(left)) + " left"
		}
		return s + shown(op)
	case op.Outcome == history.Refused:
		return "ordered " + pieces(op) + order(op) + interval(op) + shown(op) + " and was refused" + because(op)
	}
	return "ordered " + pieces(op) + order(op)
}

// shown describes the fencing token that an operation carried.
func shown(op history.Op) string {
	if op.Fence == 0 {
		return ""
	}
	return ", with token " + strconv.FormatInt(op.Fence, 10)
}

func refunded(op history.Op) string {
	return did(op, "refunded ", "tried to refund ", pieces(op)+order(op))
}

func readOff(op history.Op) string {
	return "counted " + op.Arg.String() + " of " + quotedKey(op.Key) + " at " + moment(op.Return) + ": " + op.Result.String()
}

func task(v history.Value) string { return "task " + v.String() }

func enqueued(op history.Op) string {
	switch {
	case op.Outcome == history.OK && op.Reason == history.Repeated:
		return "enqueued " + task(op.Arg) + " in " + quotedKey(op.Key) + interval(op) + ", where it was already"
	case op.Outcome == history.OK:
		s := "enqueued " + task(op.Arg) + " in " + quotedKey(op.Key) + interval(op)
		if op.Until > 0 {
			s += ", due at " + moment(op.Until)
		}
		return s
	}
	return did(op, "", "wanted to enqueue ", task(op.Arg))
}

func withdrew(op history.Op) string { return did(op, "withdrew ", "wanted to withdraw ", task(op.Arg)) }

func popped(op history.Op) string {
	switch op.Outcome {
	case history.OK:
		s := "was delivered " + task(op.Result) + interval(op)
		if op.Amount > 1 {
			s += ", as attempt " + strconv.Itoa(int(op.Amount))
		}
		return s
	case history.Refused:
		return "asked " + quotedKey(op.Key) + " for a task" + interval(op) + " and had none" + because(op)
	}
	return "asked " + quotedKey(op.Key) + " for a task"
}

func acknowledged(op history.Op) string {
	switch op.Outcome {
	case history.OK:
		return "told the queue" + interval(op) + " that " + task(op.Arg) + " is done"
	case history.Refused:
		return "told the queue" + interval(op) + " that " + task(op.Arg) + " is done, and was told that it was no longer the holder"
	}
	return "told the queue that " + task(op.Arg) + " is done"
}

func effected(op history.Op) string {
	if op.Outcome == history.OK && op.Reason == history.Repeated {
		return "did " + task(op.Arg) + interval(op) + " and found it done before"
	}
	return did(op, "did ", "wanted to do ", task(op.Arg))
}

func numbered(op history.Op) string {
	return did(op, "was given "+op.Result.String()+" of ", "asked for a number of ", quotedKey(op.Key))
}

func took(op history.Op) string {
	switch op.Outcome {
	case history.OK:
		s := "was given " + task(op.Result) + " at " + moment(op.Return) + ", having asked at " + moment(op.Call)
		if op.Until > 0 {
			s += "; it may keep it until " + moment(op.Until)
		}
		return s
	case history.Refused:
		return "asked for a task" + interval(op) + " and had none" + because(op)
	}
	return "asked for a task"
}

func submitted(op history.Op) string { return did(op, "submitted ", "wanted to submit ", task(op.Arg)) }

// did is what somebody did to a thing, or only wanted to.
func did(op history.Op, done, wanted, what string) string {
	switch op.Outcome {
	case history.OK:
		return done + what + interval(op)
	case history.Refused:
		return wanted + what + interval(op) + " and was refused" + because(op)
	}
	return wanted + what
}

// because formats the reason of a refusal, in brackets.
func because(op history.Op) string {
	if op.Reason == history.NoReason {
		return ""
	}
	return " (" + op.Reason.String() + ")"
}

// faultSentence describes an injection.
func faultSentence(op history.Op) string {
	name := plainKey(op.Key)
	if op.Result == (history.Value{}) { // the client itself died
		name = op.Arg.String()
	}
	s := "injected fault: " + name + ", which hit "
	switch {
	case op.Client >= 0:
		s += who(op)
	case op.Result != (history.Value{}):
		s += op.Result.String()
	default:
		s += "the run"
	}
	if op.Return > op.Call+time.Microsecond {
		return s + " from " + moment(op.Call) + " to " + moment(faultEnd(op))
	}
	return s + " at " + moment(op.Call)
}

// faultEnd returns when a fault ended. One that was never healed lasts to the end of the run.
func faultEnd(op history.Op) time.Duration {
	if op.Until == history.Forever {
		return op.Return
	}
	return max(op.Return, op.Until)
}

// tag returns a short word for the result of an operation, for the little room on a bar.
func tag(op history.Op) string {
	switch op.Kind {
	case history.Acquire:
		return quotedKey(op.Key) + said(" by ", op.Result)
	case history.Buy:
		if left, ok := op.Result.Num(); ok && left >= 0 && op.Outcome == history.OK {
			return "buys: " + reports.Thousands(left) + " left"
		}
		return "buys" + outcomeTag(op)
	case history.Pop:
		return "handed " + op.Result.String() + outcomeTag(op)
	case history.NextID:
		return "given " + op.Result.String() + outcomeTag(op)
	case history.Take:
		return task(op.Result) + outcomeTag(op)
	case history.Enqueue, history.Dequeue, history.Ack, history.Effect, history.Submit:
		return op.Kind.String() + " " + op.Arg.String() + outcomeTag(op)
	case history.Fault:
		return op.Key.String()
	}
	return op.Kind.String() + outcomeTag(op)
}

func outcomeTag(op history.Op) string {
	switch {
	case op.Outcome == history.Unknown:
		return "?"
	case op.Outcome == history.Refused && op.Reason != history.NoReason:
		return ": " + op.Reason.String()
	case op.Outcome == history.Refused:
		return ": refused"
	}
	return ""
}

// upper capitalizes the first letter.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// untriedSentence describes an untried condition.
func untriedSentence(u history.Untried) string {
	var broken []string
	for _, p := range u.Breaks {
		broken = append(broken, fmt.Sprintf("%s of the %s", p.Property, p.Of))
	}
	return fmt.Sprintf("%s, which breaks %s: %s", u.Under, strings.Join(broken, ", "), u.Why)
}
