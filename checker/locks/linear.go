package locks

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// linearization judges that every answer of a lock fits one legal order of grants,
// refusals, extensions, releases and expiries, each at a moment between its
// call and its return.
//
// # The object
//
// At any moment the lock is free or held by one session. A grant needs it free. An
// extension or a release answers OK exactly while its session holds it, and "lost" exactly
// while it does not. A refusal needs a session that holds it. A lease runs out by itself,
// not before the end promised to the client (U) and not later than the return of the last
// grant or extension plus TTL plus drift (X).
//
// # The procedure
//
// Session i is granted the lock in [A, a'], where a' is the grant's return and A the
// earliest start of the winning attempt, and loses it in [lo, hi]:
//
//	release or extension   lo         hi
//	OK                     its call   min(its return, X)   the release is the end
//	lost                   U          min(its return, X)
//	release unknown        min(call, U)   X
//	never called           U          X
//
// where U is not before the call of the last extension that succeeded. An extension without an answer leaves U
// unchanged and removes the bound X, because the length of the prolongation is unknown; one that was called after X
// prolongs nothing. A session with a release without an answer is assumed to go on, since only a later answer shows
// whether it did. An empty [lo, hi] is a violation. So are two cores [a', lo] that overlap; when they do not, they fix
// the order of the sessions. Then the choice of the earliest grants and the latest ends covers the most time in every
// place at once, and a refusal is legal if and only if it touches [A, hi] of the last session granted before it
// returned or of the next one: these two keep the sessions before and after them away from it. The intervals between
// two sessions are gaps. An acquire of unknown outcome may fill one gap from its call on; a gap is filled for its first
// refusal or not at all, and later gaps accept whatever earlier ones do, so assigning such acquires to gaps greedily is
// exact. The end of the lease of such an acquire stays open: a client that takes the lock in two steps may have died
// between them. An extension that succeeds in its session shows that it was granted.
//
// A session with an empty core (the lease was over when the client learned of
// it, or the acquire had no answer and yet its release succeeded) only needs an
// instant outside the open cores of all others. When refusals lie near that
// instant, which of the two claims the time is not decided, and the verdict
// is Unknown unless something else is wrong.
//
// Renewals in the background are not recorded as operations: once a release shows that a lock has them, a session that
// was never released may be held for ever. A lock with a wait line may refuse while it is free, so its refusals are not
// judged.
//
// The smallest bad histories:
//
//	client 1  acquire  [1, 2]  ok
//	client 2  acquire  [3, 4]  ok
//
//	client 1  acquire  [1, 2]  ok, until 100
//	client 1  release  [3, 4]  refused (lost)
//
//	client 1  acquire  [1, 2]  ok
//	client 1  release  [3, 4]  ok
//	client 2  acquire  [5, 6]  refused (held)
//
// The operations of one session are assumed to take effect in the order of their returns. If two clients use a session at
// once, that order is not known, and what would be a violation is unknown.
//
// An opportunity is an answer (a grant, a refusal, an extension or a release) to an
// operation that overlaps, in time, another client's operation with an answer or its
// tenure: the answers of clients that never meet fit in the order in which they came. See
// [encounters].
type linearization struct {
	h        *history.Header
	key      history.Value
	sessions *sessions
	spans    monitor.Overlaps
	top      *monitor.Span   // the last session granted, while it is open
	topHi    time.Duration   // its hi, when it is closed
	nobody   []time.Duration // calls of further acquires without an answer of sessions that had one
	told     bool            // a session whose acquire had no answer was told later that it did not hold the lock
	strays   []history.Op    // answered releases and extensions by sessions that nothing shows to have held the lock
	hasty    int             // the same, before the end of an acquire of theirs

	loose  []refusal // refusals that nothing covers so far, by return
	renews bool      // renewals in the background were seen
	lined  bool      // the lock has a wait line

	// Kept only to place sessions with an empty core.
	keep    bool
	cores   []stretch
	refused []stretch
	dropped time.Duration // the latest call of a refusal no longer in refused
	enough  int           // when to look for entries to drop
	floats  []emptyCoreSession
	early   []history.Op // the first operations of a lock without leases, for the oracle
	odd     []stretch    // the times that sessions may have held whose empty cores were filled later, and which ended

	grants, refusals int64
	broken           int
	why              string
	witness          []history.Op
}

type stretch struct{ from, to time.Duration }

// refusal is a refused acquire in the gap after that many grants.
type refusal struct {
	call, ret time.Duration
	arg       history.Value
	gap       int64
	freeSince time.Duration
	client    int32
}

// emptyCoreSession is a session with an empty core.
type emptyCoreSession struct {
	acq, rel history.Op
	in       stretch // where its instant must lie
	may      stretch // the time that it may have held
}

func openTryLock(ls *locks, l *lock) {
	l.linear = &linearization{h: ls.h, key: l.key, sessions: &l.sessions, spans: monitor.Overlaps{Spare: &ls.spans}, topHi: -1 << 63, dropped: -1 << 63, enough: 1024}
}

// observe takes an operation and its session, which is nil if it can hold nothing.
func (t *linearization) observe(op *history.Op, s *lockSession) {
	if op.Kind == history.Join {
		t.lined = true
		return
	}
	t.note(op)
	switch op.Kind {
	case history.Acquire:
		t.acquire(op, s)
	case history.Extend:
		t.extend(op, s)
	case history.Release:
		t.release(op, s)
	}
}

// note keeps the first operations, and one more to show that there were more.
func (t *linearization) note(op *history.Op) {
	if t.h.TTL <= 0 && len(t.early) <= linear.OracleOps {
		t.early = append(t.early, *op)
	}
}

func (t *linearization) acquire(op *history.Op, s *lockSession) {
	if len(t.strays) > 0 && op.Outcome != history.Refused {
		t.explain(op)
	}
	switch {
	case op.Outcome == history.OK:
		t.grant(op, s, monitor.Granted(t.h, op), monitor.Leased(op))
	case op.Outcome == history.Unknown && s.lost:
		t.nobody = append(t.nobody, op.Call)
	case op.Outcome == history.Unknown:
		s.lost, s.lostCall = true, op.Call
	case op.Reason == history.Held:
		t.refuse(op)
	}
}

// grant begins a session that op says was granted at from at the earliest, and that lasts until a time unless it is
// released before.
func (t *linearization) grant(op *history.Op, n *lockSession, from, until time.Duration) {
	if n.linear != nil {
		t.fail("%s obtained %s at %s in a session that is in use", []history.Op{*op}, say.Client(op), say.Titled("lock", t.key), say.At(op.Return))
		return
	}
	s := t.spans.Start(op, 0, until)
	n.linear = s
	s.From = from
	s.Gone = monitor.Expiry(t.h, op.Return, s.Until)
	if s.Void {
		t.keep = true // its core may turn out empty
		return
	}
	// A refusal that returned before the grant did, and not before the grant can have
	// taken effect, is covered by it.
	for n := len(t.loose); n > 0 && t.loose[n-1].gap == t.grants && t.loose[n-1].ret >= s.From; n-- {
		t.loose = t.loose[:n-1]
	}
	t.grants++
	s.Number = t.grants
	t.top = s
}

func (t *linearization) refuse(op *history.Op) {
	t.refusals++
	t.refused = append(t.refused, stretch{op.Call, op.Return})
	since := t.topHi
	if t.top != nil {
		since = t.top.Gone // it was released later than this call, if at all
	}
	if since >= op.Call {
		return
	}
	t.loose = append(t.loose, refusal{op.Call, op.Return, op.Arg, t.grants, since, op.Client})
}

func (t *linearization) extend(op *history.Op, n *lockSession) {
	if n == nil || n.linear == nil {
		t.stray(op, n)
		return
	}
	s := n.linear
	switch {
	case op.Outcome == history.OK:
		t.held(s, op, "extended its lease on", "it")
		until := monitor.Leased(op)
		s.Gone = max(s.Gone, monitor.Expiry(t.h, op.Return, until))
		if s.Leaving { // it may be released right after
			until = op.Call
		}
		t.prolong(s, op.Call, until)
	case op.Outcome == history.Unknown && op.Call > s.Gone && !t.h.Renews:
		s.Late = true
	case op.Outcome == history.Unknown:
		s.Gone = history.Forever
		t.cover(s.Number, s.Gone)
	case op.Reason == history.Lost:
		t.lose(op, n)
	}
}

// renewed allows for renewals that the client did not learn of: their answers came while
// the client was paused, or never.
func (t *linearization) renewed(s *monitor.Span, op *history.Op) {
	if t.h.Renews && s.Gone < op.Return {
		s.Gone = op.Return
		t.cover(s.Number, s.Gone)
	}
}

// held notes that a client was told that it held the lock at the call of op, in which it did something.
func (t *linearization) held(s *monitor.Span, op *history.Op, did, lease string) {
	t.renewed(s, op)
	if op.Call > s.Gone {
		t.fail("%s %s %s at %s, though %s was over by %s at the latest", monitor.InOrder(s.Acq, *op),
			say.Client(op), did, say.Titled("lock", t.key), say.At(op.Return), lease, say.At(s.Gone))
	}
}

func (t *linearization) prolong(s *monitor.Span, heldAt, until time.Duration) {
	t.spans.Prolong(s, heldAt, until)
	t.cover(s.Number, s.Gone)
}

func (t *linearization) release(op *history.Op, n *lockSession) {
	if n == nil || n.linear == nil {
		t.stray(op, n)
		return
	}
	s := n.linear
	if op.Until > s.Until && s.Acq.Until > 0 && !s.Leaving { // renewed in the background
		t.renews = true
		s.Gone = max(s.Gone, monitor.Expiry(t.h, op.Call, op.Until))
		if s.Late {
			s.Gone = history.Forever
		}
		t.prolong(s, s.Start, op.Until)
	}
	switch {
	case op.Outcome == history.OK:
		t.held(s, op, "released", "its lease")
		t.end(n, op.Call, min(op.Return, s.Gone), op)
	case op.Outcome == history.Unknown:
		t.spans.Weaken(s, op)
	case op.Reason == history.Lost:
		t.lose(op, n)
	default: // refused, and still held
	}
}

// stray judges a release or extension by a session that is not known to hold the lock.
func (t *linearization) stray(op *history.Op, n *lockSession) {
	lost := n != nil && n.lost
	switch {
	case op.Outcome != history.OK:
		t.told = t.told || lost && op.Reason == history.Lost
		if lost && op.Kind == history.Release && op.Outcome == history.Unknown {
			n.leaving = true
		}
	case lost && op.Kind == history.Extend: // it was granted, at any time since it was asked for
		n.lost = false
		until := monitor.Leased(op)
		if n.leaving { // it may be released right after
			until = op.Call
		}
		granted := *op
		granted.Call = n.lostCall
		t.grant(&granted, n, n.lostCall, until)
		n.linear.Gone, n.linear.Leaving = history.Forever, n.leaving
	case lost:
		n.lost = false
		t.keep = true
		t.floats = append(t.floats, emptyCoreSession{rel: *op, in: stretch{op.Call, op.Return}, may: stretch{n.lostCall, op.Return}})
	case len(t.strays) < mostStrays:
		t.strays = append(t.strays, *op)
	default:
		why, witness := t.strayed(op)
		t.fail("%s", witness, why)
	}
}

// mostStrays bounds the strays that an acquire to come may explain.
const mostStrays = 64

// explain finds releases and extensions by a session that was, or may have been, granted the lock by acq.
func (t *linearization) explain(acq *history.Op) {
	before := len(t.strays)
	t.strays = slices.DeleteFunc(t.strays, func(op history.Op) bool {
		return monitor.Session(&op) == monitor.Session(acq) && acq.Call <= op.Return
	})
	t.hasty += before - len(t.strays)
}

// strayed describes a release or an extension by a session that did not hold the lock.
func (t *linearization) strayed(op *history.Op) (string, []history.Op) {
	verb := "released"
	if op.Kind == history.Extend {
		verb = "extended"
	}
	return fmt.Sprintf("%s %s %s at %s in session %s, which did not hold it",
		say.Client(op), verb, say.Titled("lock", t.key), say.At(op.Return), strconv.Quote(op.Arg.String())), []history.Op{*op}
}

// lose ends a session to which op answered that it no longer holds the lock.
func (t *linearization) lose(op *history.Op, n *lockSession) {
	s := n.linear
	if op.Return < s.Until {
		t.fail("%s was granted %s at %s until %s, and told at %s that it was lost", monitor.InOrder(s.Acq, *op),
			say.Client(op), say.Titled("lock", t.key), say.At(s.Start), say.At(s.Until), say.At(op.Return))
	}
	t.end(n, min(s.Until, op.Return), min(op.Return, s.Gone), op)
}

// end closes a session that lost the lock between lo and hi.
func (t *linearization) end(n *lockSession, lo, hi time.Duration, by *history.Op) {
	s := n.linear
	n.linear = nil
	if s.Void && lo <= s.Start {
		t.floats = append(t.floats, emptyCoreSession{s.Acq, *by,
			stretch{max(s.From, lo), min(s.Start, hi)}, stretch{s.From, max(hi, s.Start)}})
		t.spans.Close(s, s.Start, by)
		return
	}
	if s.Number == 0 {
		t.odd = append(t.odd, stretch{s.From, hi})
	}
	if t.top == s {
		t.top, t.topHi = nil, hi
	}
	t.cores = append(t.cores, stretch{s.Start, lo})
	t.spans.Close(s, lo, by)
}

// cover removes the refusals that a session covers after all, although its lease was
// thought to be over: the refusals that came while it was the last session granted.
func (t *linearization) cover(number int64, hi time.Duration) {
	to := len(t.loose)
	for to > 0 && t.loose[to-1].gap > number {
		to--
	}
	from := to
	for from > 0 && t.loose[from-1].gap == number {
		from--
	}
	if from < to && number > 0 {
		t.loose = slices.Concat(t.loose[:from],
			slices.DeleteFunc(t.loose[from:to], func(r refusal) bool { return r.call <= hi }), t.loose[to:])
	}
}

func (t *linearization) fail(format string, witness []history.Op, args ...any) {
	t.broken++
	if t.broken == 1 {
		t.why, t.witness = fmt.Sprintf(format, args...), witness
	}
}

func (t *linearization) advance(lowWater time.Duration) {
	t.spans.Advance(lowWater)
	if t.keep || len(t.cores)+len(t.refused) <= t.enough {
		return
	}
	t.cores = slices.DeleteFunc(t.cores, func(c stretch) bool { return c.to < lowWater })
	t.refused = slices.DeleteFunc(t.refused, func(r stretch) bool {
		gone := r.to < lowWater
		if gone {
			t.dropped = max(t.dropped, r.from)
		}
		return gone
	})
	t.enough = 2*(len(t.cores)+len(t.refused)) + 1024
}

// linearizable returns the verdict on linearizability.
func (l *lock) linearizable(ls *locks) monitor.Verdict {
	v := l.linear.verdict(ls.ended)
	if u := l.shared; v.Result == monitor.Violated && u != nil {
		v = monitor.Undecided(fmt.Sprintf("operations of session %s, by client %d and by another client, overlapped, so their order is open", strconv.Quote(u.session.String()), u.client))
	}
	v.Opportunities = l.meetings
	if fits := v.Say; v.Result == monitor.Holds {
		v.Say = func() string {
			if l.meetings == 0 {
				return fits() + "; no two clients met"
			}
			return fmt.Sprintf("%s; %s while another client held the lock or waited for an answer", fits(), say.Count(l.meetings, "answer"))
		}
	}
	return v
}

func (t *linearization) verdict(cut bool) monitor.Verdict {
	broken, why, witness := t.broken, t.why, t.witness
	note := func(n int, f func() (string, []history.Op)) {
		if n > 0 && broken == 0 {
			why, witness = f()
		}
		broken += n
	}
	note(len(t.strays), func() (string, []history.Op) { return t.strayed(&t.strays[0]) })
	n, a, b := t.spans.Tally(cut)
	note(n, func() (string, []history.Op) { return monitor.Overlapped(t.key, a, b) })
	floats, odd := t.floating(), t.filled()
	homeless, doubt := t.place(floats, cut)
	note(len(homeless), func() (string, []history.Op) { return t.homeless(&homeless[0]) })
	bare, hopeful := t.uncovered(floats, odd)
	if !cut && !t.lined {
		note(len(bare), func() (string, []history.Op) { return t.bare(bare[0], floats, odd) })
	}
	switch {
	case broken > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: broken, Why: why, Witness: witness}
	case t.grants == 0 && len(floats)+len(odd)+t.hasty == 0 && t.refusals == 0:
		return monitor.Verdict{Idle: true, Why: "nobody obtained the lock, and nobody was refused it"}
	case len(bare) > 0 && cut:
		return monitor.Undecided(fmt.Sprintf("%s at times when nobody is known to have held the lock: %s", say.Count(len(bare), "refusal"), monitor.CutOff))
	case (doubt || hopeful || len(odd)+t.hasty > 0) && t.h.TTL <= 0 && !cut && !t.lined && len(t.early) <= linear.OracleOps && t.asked() != monitor.Unknown:
		if t.asked() == monitor.Violated {
			return monitor.Verdict{Result: monitor.Violated, Count: 1, Why: fmt.Sprintf("no order explains the %s", say.Count(len(t.early), "answer")), Witness: t.early[len(t.early)-1:]}
		}
	case t.hasty > 0:
		return monitor.Undecided(fmt.Sprintf("%s came before the end of the acquire of its session, which leaves its place in the order open", say.Count(t.hasty, "release or extension")))
	case hopeful && len(floats)+len(odd) == 0:
		return monitor.Undecided("a refusal fits no order unless an acquire without an answer was granted, of which its client was told later that it did not hold the lock")
	case doubt, hopeful:
		return monitor.Undecided(fmt.Sprintf("%s came back after its lease was over or without an answer, and refusals close by leave its place in the order open", say.Count(len(floats)+len(odd), "grant")))
	case len(odd) > 0:
		return monitor.Undecided("the lease of a session was over before its grant returned, and extended later, which leaves its place in the order open")
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string { return t.fits(int64(len(floats) + len(odd))) }}
}

// fits tells how many answers fit one order; late is how many grants are not in t.grants.
func (t *linearization) fits(late int64) string {
	text := fmt.Sprintf("%s and %s fit one order", say.Count(t.grants+late, "grant"), say.Count(t.refusals, "refusal"))
	if t.lined {
		text += "; a lock with a wait line may refuse while it is free, so refusals were not judged"
	}
	return text
}

// asked checks the whole history with porcupine, which has no leases in its lock model.
func (t *linearization) asked() monitor.Result {
	return linear.Ask(linear.LockModel(), linear.Operations(t.early))
}

// floating returns every session with an empty core, including open ones.
func (t *linearization) floating() []emptyCoreSession {
	floats := slices.Clone(t.floats)
	for _, n := range t.sessions.all {
		if s := n.linear; s != nil && s.Void {
			floats = append(floats, emptyCoreSession{acq: s.Acq, in: stretch{max(s.From, s.Until), s.Start}, may: stretch{s.From, t.mayHold(s)}})
		}
	}
	slices.SortStableFunc(floats, func(a, b emptyCoreSession) int { return cmp.Compare(a.in.to, b.in.to) })
	return floats
}

// filled returns the times that sessions may have held whose empty cores were filled later.
func (t *linearization) filled() []stretch {
	odd := slices.Clone(t.odd)
	for _, n := range t.sessions.all {
		if s := n.linear; s != nil && !s.Void && s.Number == 0 {
			odd = append(odd, stretch{s.From, t.mayHold(s)})
		}
	}
	return odd
}

// place looks for an instant for every session with an empty core. homeless are the sessions without one. doubt says
// that refusals lie in the gap of such an instant.
func (t *linearization) place(floats []emptyCoreSession, cut bool) (homeless []emptyCoreSession, doubt bool) {
	if len(floats) == 0 {
		return nil, false
	}
	cores := slices.Clone(t.cores)
	for _, n := range t.sessions.all {
		if s := n.linear; s != nil && !s.Void && (!cut || s.Leaving) {
			cores = append(cores, stretch{s.Start, s.Until})
		}
	}
	slices.SortFunc(cores, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for _, f := range floats {
		at := f.in.to
		// The last core that starts before the window's end is the only one that can
		// cover that end, because cores do not overlap.
		i := sort.Search(len(cores), func(i int) bool { return cores[i].from >= at }) - 1
		if i >= 0 && cores[i].to > at {
			if cores[i].from < f.in.from {
				homeless = append(homeless, f)
				continue
			}
			at = cores[i].from // the instant at which that core starts
			i--
		}
		gap := stretch{-1 << 63, history.Forever}
		if i >= 0 {
			gap.from = cores[i].to
		}
		if j := sort.Search(len(cores), func(i int) bool { return cores[i].from >= at }); j < len(cores) {
			gap.to = cores[j].from
		}
		doubt = doubt || t.dropped > gap.from || slices.ContainsFunc(t.refused, func(r stretch) bool {
			return r.from > gap.from && r.to < gap.to
		})
	}
	return homeless, doubt
}

func (t *linearization) homeless(f *emptyCoreSession) (string, []history.Op) {
	op := &f.acq
	if op.Kind == history.NoKind {
		op = &f.rel
	}
	return fmt.Sprintf("%s had %s at some moment between %s and %s, all of which another session held it for",
		say.Client(op), say.Titled("lock", t.key), say.At(f.in.from), say.At(f.in.to)), monitor.InOrder(f.acq, f.rel)
}

// uncovered returns the first refusal of every gap that no session can have filled, and whether another one was skipped
// because a session may have covered it whose core is empty, or was for a time.
func (t *linearization) uncovered(floats []emptyCoreSession, odd []stretch) (bare []refusal, hopeful bool) {
	if len(t.loose) == 0 {
		return nil, false
	}
	calls := slices.Clone(t.nobody)
	for _, n := range t.sessions.all {
		if n.lost {
			calls = append(calls, n.lostCall)
		}
	}
	slices.Sort(calls)
	covers := t.mayCover()
	used, gap := 0, int64(-1)
	for _, r := range t.loose {
		if hi, ok := covers[r.gap]; r.gap == gap || ok && r.call <= hi {
			continue
		}
		touches := func(s stretch) bool { return s.from <= r.ret && r.call <= s.to }
		if slices.ContainsFunc(odd, touches) || slices.ContainsFunc(floats, func(f emptyCoreSession) bool { return touches(f.may) }) {
			hopeful = true
			continue
		}
		gap = r.gap
		if used < len(calls) && calls[used] <= r.ret {
			used++
		} else {
			bare = append(bare, r)
		}
	}
	return bare, hopeful || used > 0 && t.told
}

// mayCover returns until when sessions that were never released may have held the lock, by number. A dead client does
// not report renewals in the background; see progress.
func (t *linearization) mayCover() map[int64]time.Duration {
	covers := make(map[int64]time.Duration)
	for _, n := range t.sessions.all {
		if s := n.linear; s != nil && !s.Void && s.Number > 0 {
			covers[s.Number] = t.mayHold(s)
		}
	}
	return covers
}

// mayHold returns until when a session that was never released may have held the lock.
func (t *linearization) mayHold(s *monitor.Span) time.Duration {
	switch {
	case s.Leaving:
	case t.renews, t.h.Renews && t.h.Hold == 0:
		return history.Forever
	case 4*t.h.Hold > t.h.TTL:
		return max(s.Gone, monitor.After(s.Start, t.h.Hold, t.h.TTL, t.h.Drift))
	}
	return s.Gone
}

func (t *linearization) bare(r refusal, floats []emptyCoreSession, odd []stretch) (string, []history.Op) {
	for _, f := range floats {
		odd = append(odd, f.may)
	}
	for _, s := range odd {
		if s.to < r.call {
			r.freeSince = max(r.freeSince, s.to)
		}
	}
	if hi, ok := t.mayCover()[r.gap]; ok && hi < r.call {
		r.freeSince = max(r.freeSince, hi)
	}
	since := "nobody had held it before"
	if r.freeSince > -1<<63 {
		since = "nobody can have held it after " + say.At(r.freeSince)
	}
	return fmt.Sprintf("client %d was refused %s, which it asked for from %s to %s, though %s", r.client, say.Titled("lock", t.key), say.At(r.call), say.At(r.ret), since),
		[]history.Op{{Client: r.client, Kind: history.Acquire, Outcome: history.Refused, Reason: history.Held,
			Key: t.key, Arg: r.arg, Due: r.call, Call: r.call, Return: r.ret}}
}
