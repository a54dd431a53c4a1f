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

// story is what a run's page tells of a violation: which promise, by which
// operations, in the order in which they matter.
type story struct {
	// cause is the broken promise that came first, effect what it led to; the same
	// property where there is only one. nil in a run that broke nothing.
	cause, effect *reports.Property
	// ops are the witness, with the grants, releases and purchases of the same
	// sessions and the faults that hit their clients.
	ops []history.Op
	// about is when the promise was broken, and why says so of the time round it.
	about time.Duration
	why   string
}

// storyLength bounds the operations of a story: a longer one would not be read.
const storyLength = 12

// opKey recognises an operation of the history in a witness.
type opKey struct {
	client    int32
	kind      history.Kind
	call, ret time.Duration
}

func keyOf(op history.Op) opKey { return opKey{op.Client, op.Kind, op.Call, op.Return} }

// decisive is when the second operation of a witness ended: from then on the promise
// was broken.
func decisive(p *reports.Property) time.Duration {
	if len(p.Witness) > 1 {
		return p.Witness[1].Return
	}
	return p.Witness[0].Return
}

// violations picks what to tell of: among the broken promises the first one in time
// as the cause, and the first one in the order of properties as the effect. That an
// object is not linearizable is told when nothing plainer is.
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
	s.about, s.why = decisive(s.cause), "the time round the first violation"
	if beside := besideGap(h, s.cause); len(beside) > 0 {
		witness, s.why = beside, "the time round the first gap, which is known only at the end"
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
	for _, op := range witness { // of a history that does not hold them, as they are
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

// meddling recognises the releases by which a third session may have taken the lock
// from its first holder: those that were under way between the two grants.
func meddling(cause *reports.Property) func(*history.Op) bool {
	if len(cause.Witness) < 2 || cause.Witness[0].Kind != history.Acquire || cause.Witness[1].Kind != history.Acquire {
		return func(*history.Op) bool { return false }
	}
	a, b := cause.Witness[0], cause.Witness[1]
	return func(op *history.Op) bool {
		return op.Kind == history.Release && op.Outcome != history.Refused && op.Key == a.Key && op.Return > a.Return && op.Call < b.Return
	}
}

// besideGap returns the operations around the first number that no client was given: those
// that were given the numbers beside it, and those at that time that had no answer. That it
// is missing the history shows only at its end, where the witness is. None if the promise is
// another.
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
			delete(beside, n) // the first that was given it
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

// inSection reports whether an operation belongs to a stay under a lock.
func inSection(op *history.Op) bool {
	switch op.Kind {
	case history.Acquire, history.Extend, history.Release, history.Buy, history.Refund:
		return true
	}
	return false
}

// session is the acquisition to which an operation belongs; its zero value is none.
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

// sections are sessions under all the numbers that their clients had: one that had no answer
// goes on under a new number, and gives back under that what it was granted under the old one.
type sections struct {
	holders map[holder]bool
	grants  map[inHand]bool
}

// heldBy finds those of these sessions. Every operation on a lock names the lock and the
// session, whichever client calls it; a purchase names the session only, which may belong to
// another lock.
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

// lockKind reports whether operations of this kind are about a lock that a client holds.
func lockKind(kind history.Kind) bool {
	return kind == history.Acquire || kind == history.Extend || kind == history.Release
}

// within reports whether a has something, and b all of it.
func within(a, b map[holder]bool) bool {
	for s := range a {
		if !b[s] {
			return false
		}
	}
	return len(a) > 0
}

// spell is a time in which a client was at something that the story tells.
type spell struct {
	client   int32
	from, to time.Duration
}

// spells are when the clients of these operations were at them: each operation, and
// the time between those of one session or with one task. A section or a task that is
// not seen to end goes on to the end of the story. What hit a client at another
// time has nothing to do with it.
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

// atEnd reports whether the story rests on nothing but what the servers held at the end.
func (s story) atEnd() bool {
	return len(s.ops) > 0 && !slices.ContainsFunc(s.ops, func(op history.Op) bool { return op.Kind != history.ReadState })
}

// deeds are the story's operations without the faults, which may go on for long after
// it, and what was read at the end; with them if there is nothing else.
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

// startOf returns when an operation began to matter: a grant from its answer on, every other
// operation from its call on, also if it had no answer or was refused.
func startOf(op history.Op) time.Duration {
	if op.Outcome == history.OK {
		switch op.Kind {
		case history.Acquire, history.Pop, history.Take, history.NextID, history.Join:
			return op.Return
		}
	}
	return op.Call
}

// tried is from when on a fault may have changed what an operation came to. A lock is waited
// for, perhaps for long, and the attempt that got it began when its lease did.
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

// steps are the story's operations in words.
func (s story) steps(class func(client int32) string) (steps []narrated) {
	for i, op := range s.ops {
		steps = append(steps, narrated{i + 1, moment(startOf(op)), sentence(op), class(op.Client), op.Kind == history.Fault})
	}
	return steps
}

// headline is the verdict in words.
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

// leads are the sentences that tell the violation, the cause first.
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
