package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// story is a violation as the run's page tells it: the promise, and the operations that broke it, in order of
// importance.
type story struct {
	// cause is the first violation, effect its consequence; the same property if there is only one. nil in a run
	// without a violation.
	cause, effect *reports.Property
	// ops is the witness, with the grants, releases and purchases of the same sessions and the faults that hit
	// their clients.
	ops []history.Op
	// about is when the promise was broken, and why describes the time around it.
	about time.Duration
	why   string
}

// storyLength bounds the operations of a story.
const storyLength = 12

// opKey identifies an operation of the history in a witness.
type opKey struct {
	client    int32
	kind      history.Kind
	call, ret time.Duration
}

func keyOf(op history.Op) opKey { return opKey{op.Client, op.Kind, op.Call, op.Return} }

// decisive returns when the second operation of a witness ended: from then on the promise was broken.
func decisive(p *reports.Property) time.Duration {
	if len(p.Witness) > 1 {
		return p.Witness[1].Return
	}
	return p.Witness[0].Return
}

// violations selects the violations of the story: the first one in time as the cause, and the first one in the
// order of properties as the effect. A violation of linearizability counts only if there is no more specific one.
func violations(r *reports.Run) (cause, effect *reports.Property) {
	for _, plain := range []bool{true, false} {
		for i := range r.Properties {
			p := &r.Properties[i]
			if p.Result != reports.Broken || len(p.Witness) == 0 || plain == (p.Name == variant.Linearizable) {
				continue
			}
			if effect == nil {
				effect = p
			}
			if cause == nil || decisive(p) < decisive(cause) {
				cause = p
			}
		}
		if cause != nil {
			break
		}
	}
	return cause, effect
}

// storyOf finds the story of a run. It reads the history once.
func storyOf(h *history.History, r *reports.Run) (s story) {
	s.cause, s.effect = violations(r)
	if s.cause == nil {
		return s
	}
	sessions := sessionsOf(s.cause.Witness)
	told := heldBy(h, sessions)
	witness := slices.Clone(s.cause.Witness)
	s.about, s.why = decisive(s.cause), "the time around the first violation"
	if beside := besideGap(h, s.cause); len(beside) > 0 {
		witness, s.why = beside, "the time around the first gap, which is known only at the end"
		s.about = beside[0].Return
	}
	if s.effect != s.cause && within(sessionsOf(s.effect.Witness), sessions) {
		witness = append(witness, s.effect.Witness...)
	}
	seen := map[opKey]bool{}
	from, to := history.Forever, time.Duration(0)
	for _, op := range witness {
		seen[keyOf(op)] = true
		from, to = min(from, tried(&h.Header, op)), max(to, op.Return)
	}
	meddles := meddling(s.cause)
	var related, faults []history.Op
	for op := range h.Each() {
		switch {
		case seen[keyOf(*op)]:
			s.ops = append(s.ops, *op)
			delete(seen, keyOf(*op))
		case op.Kind == history.Fault:
			if op.Call < to && faultEnd(*op) > from && hits(op, witness) {
				faults = append(faults, *op)
			}
		case inSection(op) && (told.have(op) || meddles(op)):
			related = append(related, *op)
		}
	}
	for _, op := range witness { // histories without them have the witness as it is
		if seen[keyOf(op)] {
			s.ops = append(s.ops, op)
			delete(seen, keyOf(op))
		}
	}
	at := spells(append(slices.Clone(s.ops), related...), to)
	for _, f := range faults {
		if f.Client < 0 || slices.ContainsFunc(at, func(x spell) bool { return x.client == f.Client && f.Call < x.to && faultEnd(f) > x.from }) {
			related = append(related, f)
		}
	}
	slices.SortStableFunc(related, func(a, b history.Op) int { return cmp.Compare(startOf(a), startOf(b)) })
	s.ops = append(s.ops, related[:min(len(related), max(0, storyLength-len(s.ops)))]...)
	slices.SortStableFunc(s.ops, func(a, b history.Op) int { return cmp.Compare(startOf(a), startOf(b)) })
	return s
}

// meddling matches the releases by which a third session may have taken the lock from its first holder: those in
// progress between the two grants.
func meddling(cause *reports.Property) func(*history.Op) bool {
	if len(cause.Witness) < 2 || cause.Witness[0].Kind != history.Acquire || cause.Witness[1].Kind != history.Acquire {
		return func(*history.Op) bool { return false }
	}
	a, b := cause.Witness[0], cause.Witness[1]
	return func(op *history.Op) bool {
		return op.Kind == history.Release && op.Outcome != history.Refused && op.Key == a.Key && op.Return > a.Return && op.Call < b.Return
	}
}

// besideGap returns the operations around the first missing number: those that received the adjacent numbers, and
// concurrent ones without an answer. Only the end of the history, where the witness is, shows that the number is
// missing. For other promises it returns none.
func besideGap(h *history.History, cause *reports.Property) (ops []history.Op) {
	if cause.Name != variant.NoGaps {
		return nil
	}
	key := cause.Witness[0].Key
	given := func(op *history.Op) (int64, bool) {
		n, is := op.Result.Num()
		return n, is && n > 0 && op.Kind == history.NextID && op.Outcome == history.OK && op.Key == key
	}
	var numbers []int64
	for op := range h.Each() {
		if n, ok := given(op); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	before, after := int64(0), int64(0)
	for _, n := range numbers {
		if n > before+1 {
			after = n
			break
		}
		before = n
	}
	from, to := history.Forever, time.Duration(0)
	beside := map[int64]bool{before: true, after: true}
	for op := range h.Each() {
		if n, ok := given(op); ok && beside[n] {
			delete(beside, n) // the first that received it
			ops, from, to = append(ops, *op), min(from, op.Call), max(to, op.Return)
		}
	}
	for op := range h.Each() {
		if op.Kind == history.NextID && op.Outcome == history.Unknown && op.Key == key && op.Call < to && op.Return > from && len(ops) < storyLength {
			ops = append(ops, *op)
		}
	}
	return ops
}

// holder is a session of a client.
type holder struct {
	client  int32
	session history.Value
}

// inSection reports whether an operation belongs to a section under a lock.
func inSection(op *history.Op) bool {
	switch op.Kind {
	case history.Acquire, history.Extend, history.Release, history.Buy, history.Refund:
		return true
	}
	return false
}

// session returns the acquisition that an operation belongs to; the zero value if none.
func session(op *history.Op) holder {
	n := op.Session
	if lockKind(op.Kind) {
		n = op.Arg
	}
	return holder{op.Client, n}
}

func sessionsOf(ops []history.Op) map[holder]bool {
	all := map[holder]bool{}
	for i := range ops {
		if s := session(&ops[i]); inSection(&ops[i]) && s.session != (history.Value{}) {
			all[s] = true
		}
	}
	return all
}

// sections are sessions under all numbers of their clients: a client without an answer continues under a new
// number, and then releases what it was granted under the old one.
type sections struct {
	holders map[holder]bool
	grants  map[inHand]bool
}

// heldBy finds the sections of these sessions. Every lock operation names the lock and the session, whichever
// client calls it; a purchase names only the session, which may belong to another lock.
func heldBy(h *history.History, sessions map[holder]bool) sections {
	s := sections{maps.Clone(sessions), map[inHand]bool{}}
	if len(sessions) == 0 {
		return s
	}
	for op := range h.Each() {
		if lockKind(op.Kind) && s.have(op) {
			s.holders[session(op)], s.grants[lockInHand(op)] = true, true
		}
	}
	return s
}

func (s sections) have(op *history.Op) bool {
	return s.holders[session(op)] || lockKind(op.Kind) && s.grants[lockInHand(op)]
}

// lockKind reports whether operations of this kind refer to a lock that a client holds.
func lockKind(kind history.Kind) bool {
	return kind == history.Acquire || kind == history.Extend || kind == history.Release
}

// within reports whether a is not empty and contains all of b.
func within(a, b map[holder]bool) bool {
	for s := range a {
		if !b[s] {
			return false
		}
	}
	return len(a) > 0
}

// spell is a time in which a client did something that belongs to the story.
type spell struct {
	client   int32
	from, to time.Duration
}

// spells returns when the clients of these operations were active: each operation, and the time between those of
// one session or with one task. A section or a task without an end continues to the end of the story. Faults that
// hit a client at other times do not belong to the story.
func spells(ops []history.Op, end time.Duration) (all []spell) {
	type matter struct {
		holder
		task history.Value
	}
	at := map[matter]int{}
	for _, op := range ops {
		m := matter{holder: holder{client: op.Client}}
		x := spell{op.Client, op.Call, op.Return}
		switch op.Kind {
		case history.Fault:
			continue
		case history.Pop, history.Take:
			m.task, x.to = op.Result, max(op.Return, end)
		case history.Effect, history.Ack, history.Submit:
			m.task = op.Arg
		case history.Acquire:
			m.holder, x.to = session(&op), max(op.Return, end)
		case history.Extend, history.Release, history.Buy, history.Refund:
			m.holder = session(&op)
		}
		i, seen := at[m]
		if !seen || m.session == (history.Value{}) && m.task == (history.Value{}) {
			at[m] = len(all)
			all = append(all, x)
			continue
		}
		switch all[i].from = min(all[i].from, x.from); op.Kind {
		case history.Ack, history.Submit:
			all[i].to = op.Return
		case history.Release: // perhaps under a new number
			for other, j := range at {
				if other.session == m.session {
					all[j].to = op.Return
				}
			}
		default:
			all[i].to = max(all[i].to, x.to)
		}
	}
	return all
}

// atEnd reports whether the story relies only on the final state of the servers.
func (s story) atEnd() bool {
	return len(s.ops) > 0 && !slices.ContainsFunc(s.ops, func(op history.Op) bool { return op.Kind != history.ReadState })
}

// deeds returns the story's operations without faults, which may last long after it, and without the final state;
// with them if there is nothing else.
func (s story) deeds() []history.Op {
	ops := slices.DeleteFunc(slices.Clone(s.ops), func(op history.Op) bool { return op.Kind == history.Fault || op.Kind == history.ReadState })
	if len(ops) == 0 {
		return s.ops
	}
	return ops
}

// hits reports whether a fault hit one of the clients, or all of them.
func hits(fault *history.Op, ops []history.Op) bool {
	return fault.Client < 0 || slices.ContainsFunc(ops, func(op history.Op) bool { return op.Client == fault.Client })
}

// startOf returns when an operation begins to matter: a grant from its answer on, any other operation from its call
// on, even without an answer or refused.
func startOf(op history.Op) time.Duration {
	if op.Outcome == history.OK {
		switch op.Kind {
		case history.Acquire, history.Pop, history.Take, history.NextID, history.Join:
			return op.Return
		}
	}
	return op.Call
}

// tried returns the time from which a fault may have influenced an operation. The wait for a lock may be long; the
// try that was granted began with its lease.
func tried(h *history.Header, op history.Op) time.Duration {
	switch {
	case op.Kind != history.Acquire || op.Outcome != history.OK:
		return op.Call
	case h.TTL > 0 && op.Until > 0:
		return min(max(op.Call, op.Until-h.TTL), op.Return)
	}
	return op.Return
}

// narrated is a step of the story.
type narrated struct {
	Number int
	At     string
	Text   string
	Class  string
	Fault  bool
}

// steps describes the story's operations.
func (s story) steps(class func(client int32) string) (steps []narrated) {
	for i, op := range s.ops {
		steps = append(steps, narrated{i + 1, moment(startOf(op)), sentence(op), class(op.Client), op.Kind == history.Fault})
	}
	return steps
}

// headline summarizes the verdict.
func headline(r *reports.Run, s story) string {
	switch {
	case r.Verdict == reports.Pass:
		return upper(r.Seen())
	case r.Verdict == reports.Inconclusive:
		return "Inconclusive: " + r.Why
	case s.effect != nil && s.effect.Name == variant.NoOversell && r.Sold != nil && r.Stock != nil:
		return fmt.Sprintf("Oversold: %s of %s pieces sold", reports.Thousands(*r.Sold), reports.Thousands(*r.Stock))
	}
	return "Violated: " + strings.Join(r.Broke(), ", ")
}

// leads returns the sentences about the violation, the cause first.
func (s story) leads() (sentences []string) {
	if s.cause == nil {
		return nil
	}
	sentences = []string{s.cause.Why}
	if s.effect != s.cause {
		sentences = append(sentences, s.effect.Why)
	}
	return sentences
}
