package explore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oversell/explore/clients"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/redismodel"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// naiveLimit is the number of states after which the naive search gives up.
const naiveLimit = 1500

// simple is the naive search: states are texts, every step runs a client's code from its start, and the code that judges
// is written independently of the search under test. It handles locks on one server, and clients with one thread.
type simple struct {
	t       *testing.T
	config  Config
	scripts *coro.Scripts
	empty   *redismodel.State
	look    map[variant.Property]bool
	seen    map[string]bool
	ran     map[string]stand
	// ahead returns the times by which the enumeration lets time pass.
	ahead func(situation) []time.Duration
}

// situation is a state of the naive search.
type situation struct {
	redis                      *redismodel.State
	now                        time.Duration
	seen                       []string // for each client: what it observed, one observation a line
	holds                      []tenure
	under                      [][]history.Kind
	sent                       []sentCall
	told                       []string // the results of purchases and of requests for ids
	lost, late, moved, stalled int
}

type tenure struct {
	inside bool
	until  time.Duration
}

type sentCall struct {
	client   int
	commands [][]string
	during   history.Kind
}

// stand is where a client has stopped after its observations.
type stand struct {
	pending []coro.Request
	events  []Event // since the previous observation
	held    []Event // calls that are judged only when the client goes on
}

// naively is the result of the naive search. A search may report any of properties: all can be broken in as few steps.
type naively struct {
	verdict    string
	properties []variant.Property
	actions    int
	end        bool
}

func (n naively) fits(o outcome) bool {
	if n.verdict != o.verdict {
		return false
	}
	return n.verdict != reports.Violated || n.actions == o.actions && n.end == o.end && slices.Contains(n.properties, o.property)
}

func naive(t *testing.T, c Config, limit int) (naively, bool) {
	t.Helper()
	return naiveAhead(t, c, limit, nil)
}

// naiveAhead is naive with the times by which it lets time pass. If ahead is nil, these are the times until something
// expires.
func naiveAhead(t *testing.T, c Config, limit int, ahead func(situation) []time.Duration) (naively, bool) {
	t.Helper()
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	s := &simple{t: t, config: c, scripts: &coro.Scripts{}, empty: redismodel.Empty(), look: map[variant.Property]bool{}, seen: map[string]bool{}, ran: map[string]stand{}, ahead: ahead}
	if ahead == nil {
		s.ahead = s.expiries
	}
	for _, p := range c.Look {
		s.look[p.Property] = true
	}
	n := c.Bounds.Clients
	start := situation{redis: s.empty, seen: make([]string, n), holds: make([]tenure, n), under: make([][]history.Kind, n)}
	layer := []situation{start}
	s.seen[start.key()] = true
	entered := false
	if s.stuck(start) {
		return naively{reports.Violated, []variant.Property{variant.Progress}, 0, true}, true
	}
	for depth := 0; len(layer) > 0; depth++ {
		var next []situation
		var broken []variant.Property
		end := false
		for _, at := range layer {
			for _, then := range s.after(at) {
				entered = entered || then.entered
				if then.broken != "" {
					broken = append(broken, then.broken)
					continue
				}
				if key := then.key(); !s.seen[key] {
					s.seen[key] = true
					next = append(next, then.situation)
					end = end || s.stuck(then.situation)
				}
			}
			if len(s.seen) > limit {
				return naively{}, false
			}
		}
		switch {
		case len(broken) > 0:
			return naively{reports.Violated, broken, depth + 1, false}, true
		case end:
			return naively{reports.Violated, []variant.Property{variant.Progress}, depth + 1, true}, true
		}
		layer = next
	}
	if !entered {
		return naively{verdict: reports.Inconclusive}, true
	}
	return naively{verdict: reports.Pass}, true
}

func (s situation) key() string {
	return fmt.Sprintf("%q|%d|%q|%v|%v|%v|%q|%d %d %d %d", s.redis.Key(), s.now, s.seen, s.holds, s.under, s.sent, s.told, s.lost, s.late, s.moved, s.stalled)
}

func (s situation) clone() situation {
	s.seen, s.holds, s.sent = slices.Clone(s.seen), slices.Clone(s.holds), slices.Clone(s.sent)
	s.under, s.told = slices.Clone(s.under), slices.Clone(s.told)
	return s
}

// turned is a situation after a step, and the result of the step.
type turned struct {
	situation
	broken  variant.Property
	entered bool
}

// observed returns an observation as a line.
func observed(o coro.Observation) string { return fmt.Sprintf("%d %d %q\n", o.Now, o.Failure, o.Reply) }

// stands runs a client from its start through the observations seen, and returns where it stops.
func (s *simple) stands(client int, seen string) (at stand) {
	key := fmt.Sprint(client, " ", seen)
	if at, known := s.ran[key]; known {
		return at
	}
	x := coro.Start(clients.Program(s.config.Run, client, s.config.Bounds), coro.Options{
		Masters: 1, Epoch: Epoch, Scripts: s.scripts,
		Token: func(n int) string { return fmt.Sprintf("<%d:%d>", client, n) },
	})
	defer x.Close()
	between := func() {
		for len(x.Pending()) > 0 && x.Pending()[0].Kind == coro.Boundary {
			x.Resume(0, coro.Observation{})
		}
	}
	for line := range strings.Lines(seen) {
		x.Events()
		var o coro.Observation
		if _, err := fmt.Sscanf(line, "%d %d %q\n", &o.Now, &o.Failure, &o.Reply); err != nil {
			s.t.Errorf("%q: %v", line, err)
		}
		x.Resume(0, o)
		between()
	}
	if err := x.Err(); err != nil || len(x.Pending()) > 1 {
		s.t.Errorf("client %d stands before %v: %v", client, x.Pending(), err)
	}
	at.pending = x.Pending()
	for _, e := range x.Events() {
		at.events = append(at.events, e.(Event))
	}
	// The last calls are judged when the client goes on.
	last := len(at.events)
	for last > 0 && !at.events[last-1].End {
		last--
	}
	at.events, at.held = at.events[:last], at.events[last:]
	s.ran[key] = at
	return at
}

func quietly(r coro.Request) bool {
	return r.Kind == coro.Clock || r.Kind == coro.Pause && r.Label == "start"
}

// after returns all situations that are one step away.
func (s *simple) after(at situation) (all []turned) {
	b := s.config.Bounds
	anyone := false
	for c := range at.seen {
		here := s.stands(c, at.seen[c])
		if len(here.pending) == 0 {
			continue
		}
		anyone = true
		all = append(all, s.steps(at, c, here)...)
	}
	for i := range at.sent {
		to := at.clone()
		call := to.sent[i]
		to.sent = slices.Delete(to.sent, i, i+1)
		then := turned{situation: to}
		s.execute(&then, call)
		all = append(all, then)
	}
	ahead := s.ahead(at)
	if !anyone && len(ahead) > 1 {
		ahead = ahead[:1]
	}
	for _, by := range ahead {
		if !(anyone && at.moved < b.Advances || !anyone && len(at.sent) > 0) {
			break
		}
		to := at.clone()
		to.now += by
		to.redis = to.redis.Tick(by)
		if anyone {
			to.moved++
		}
		to.lapse()
		all = append(all, turned{situation: to})
	}
	return all
}

// expiries returns the times after which something happens by itself: a key expires; the promised lease of a holder ends;
// an instant passes that a key holds as its value, in seconds; a lease has passed since such an instant; or the second
// after either passes.
func (s *simple) expiries(at situation) (all []time.Duration) {
	for key := range strings.FieldsSeq("Lock:order note a b line") {
		v, left, is := at.redis.Value(key)
		if is && left > 0 {
			all = append(all, left)
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && len(v) == 10 {
			then := time.Unix(n, 0).Sub(Epoch) - at.now
			all = append(all, then, then+time.Second, then+s.config.Run.TTL, then+s.config.Run.TTL+time.Second)
		}
	}
	for _, h := range at.holds {
		if h.inside && (s.look[variant.MutualExclusion] || s.look[variant.OwnerOnlyRelease]) {
			all = append(all, h.until-at.now)
		}
	}
	all = slices.DeleteFunc(all, func(d time.Duration) bool { return d <= 0 || at.now+d > time.Hour })
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *situation) lapse() {
	for i := range s.holds {
		if s.holds[i].until <= s.now {
			s.holds[i].until = 0
		}
	}
}

// steps returns the steps of one client.
func (s *simple) steps(at situation, c int, here stand) (all []turned) {
	b := s.config.Bounds
	then := turned{situation: at.clone()}
	first := here.pending[0]
	heard := false
	hear := func(es []Event) {
		heard = heard || slices.ContainsFunc(es, func(e Event) bool {
			return e.Op.Kind != history.Acquire || e.End && e.Op.Outcome == history.OK
		})
		s.judge(&then, c, es)
	}
	hear(here.held)
	if quietly(first) {
		looked := false
		for {
			looked = looked || here.pending[0].Kind == coro.Clock
			then.seen[c] += observed(coro.Observation{Now: at.now})
			here = s.stands(c, then.seen[c])
			hear(here.events)
			if heard || len(here.pending) == 0 {
				return append(all, then)
			}
			if !quietly(here.pending[0]) {
				break
			}
			if looked && at.stalled < b.Stalls { // between two readings of the clock
				all = append(all, then.stall())
			}
			hear(here.held)
		}
		if here.pending[0].Kind != coro.Command {
			return append(all, then)
		}
		if looked && at.stalled < b.Stalls {
			all = append(all, then.stall())
		}
		hear(here.held)
	}
	r := here.pending[0]
	if r.Kind != coro.Command {
		return append(all, s.observes(then, c, coro.Observation{Now: at.now}))
	}
	call := sentCall{client: c, commands: r.Commands, during: history.NoKind}
	if u := then.under[c]; len(u) > 0 {
		call.during = u[len(u)-1]
	}
	none := coro.Observation{Failure: coro.NoAnswer}
	done := turned{situation: then.clone(), broken: then.broken, entered: then.entered}
	reply := s.execute(&done, call)
	all = append(all, s.observes(done, c, coro.Observation{Reply: reply}))
	if at.lost < b.Lost {
		done := done.copy()
		done.lost++
		all = append(all, s.observes(done, c, none))
		gone := then.copy()
		gone.lost++
		all = append(all, s.observes(gone, c, none))
	}
	if at.late < b.Late {
		slow := then.copy()
		slow.late++
		slow.sent = append(slow.sent, call)
		slices.SortFunc(slow.sent, func(a, b sentCall) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		all = append(all, s.observes(slow, c, none))
	}
	return all
}

// stall returns a copy of t that counts one more stall of the client.
func (t turned) stall() turned {
	t = t.copy()
	t.stalled++
	return t
}

func (t turned) copy() turned {
	t.situation = t.situation.clone()
	return t
}

func (s *simple) observes(then turned, c int, o coro.Observation) turned {
	then = then.copy()
	then.seen[c] += observed(o)
	s.judge(&then, c, s.stands(c, then.seen[c]).events)
	return then
}

// execute has the server execute a call, and judges what the call does to the lock.
func (s *simple) execute(then *turned, call sentCall) (reply string) {
	key := lockimpl.Key("order")
	for _, cmd := range call.commands {
		if text, known := s.scripts.Text(cmd[min(1, len(cmd)-1)]); known {
			s.empty.Load(text)
		}
		before, left, is := then.redis.Value(key)
		next, r, info := then.redis.Do(time.Duration(Epoch.UnixNano())+then.now, call.client, cmd)
		if info.Unknown != "" {
			s.t.Errorf("the model does not know %s", info.Unknown)
		}
		then.redis = next
		reply += string(r)
		after, left2, is2 := next.Value(key)
		changed := before != after || left != left2 || is != is2 || slices.Contains(info.Expiring, key)
		if s.look[variant.OwnerOnlyRelease] && changed && (call.during == history.Release || call.during == history.Extend) && !strings.HasPrefix(before, fmt.Sprintf("<%d:", call.client)) && then.other(call.client) && then.broken == "" {
			then.broken = variant.OwnerOnlyRelease // and it was not the client's own
		}
	}
	return reply
}

// other reports whether a client other than but holds the lock.
func (s situation) other(but int) bool {
	for i, h := range s.holds {
		if i != but && h.inside && h.until > s.now {
			return true
		}
	}
	return false
}

// judge applies the events of a client's operations, and notes a broken promise.
func (s *simple) judge(then *turned, c int, events []Event) {
	for _, e := range events {
		if e.Op.Kind == history.Join {
			continue
		}
		then.under[c] = slices.Clone(then.under[c])
		if e.End {
			then.under[c] = then.under[c][:len(then.under[c])-1]
		} else {
			then.under[c] = append(then.under[c], e.Op.Kind)
		}
		h := &then.holds[c]
		until := e.Op.Until
		if until <= 0 {
			until = math.MaxInt64
		}
		granted := e.End && e.Op.Outcome == history.OK
		switch {
		case e.Op.Kind == history.Release && !e.End:
			*h = tenure{}
		case e.Op.Kind == history.Acquire && granted:
			then.entered = true
			*h = tenure{true, until}
		case e.Op.Kind == history.Extend && granted && h.until > then.now:
			h.until = max(h.until, until)
			continue
		case e.Op.Kind == history.Extend && granted:
			h.until = until
		case granted && (e.Op.Kind == history.Buy || e.Op.Kind == history.NextID):
			s.tell(then, e)
			continue
		case e.Op.Kind == history.Extend && e.End && e.Op.Outcome == history.Refused && e.Op.Reason == history.Lost:
			h.until = 0
			continue
		default:
			continue
		}
		if h.until <= then.now {
			h.until = 0
		}
		if s.look[variant.MutualExclusion] && h.until > then.now && then.other(c) && then.broken == "" {
			then.broken = variant.MutualExclusion
		}
	}
}

// tell records the result of a purchase or of a request for an id.
func (s *simple) tell(then *turned, e Event) {
	result := e.Op.Result.String()
	if e.Op.Kind == history.Buy {
		if result = "sold"; s.look[variant.NoOversell] && int64(len(then.told)) >= s.config.Run.Stock && then.broken == "" {
			then.broken = variant.NoOversell
		}
	} else if s.look[variant.UniqueIDs] && slices.Contains(then.told, result) && then.broken == "" {
		then.broken = variant.UniqueIDs
	}
	then.told = append(then.told, result)
	slices.Sort(then.told)
}

// stuck reports whether the busy clients may have died so that no client can then obtain the lock.
func (s *simple) stuck(at situation) bool {
	var busy uint
	for c := range at.seen {
		if len(at.under[c]) > 0 || at.holds[c].inside {
			busy |= 1 << c
		}
	}
	if !s.look[variant.Progress] || bits.OnesCount(busy) > s.config.Bounds.Crashes {
		return false
	}
	// A client that waits for the next expiry must obtain the lock, and so must one that tries at every interval.
	return !s.obtains(at, time.Hour) || !s.obtains(at, cmp.Or(s.config.Run.Retry, 100*time.Millisecond))
}

// obtains reports whether a client that waits no longer than most before each attempt obtains the lock.
func (s *simple) obtains(at situation, most time.Duration) bool {
	got := false
	x := coro.Start(func(ctx context.Context, w *coro.Runtime) {
		_, err := s.config.Run.Lock.New(w.Env()).Acquire(ctx, "order", lockimpl.Options{TTL: s.config.Run.TTL, Wait: s.config.Run.Patience(), RetryEvery: time.Millisecond})
		got = err == nil
	}, coro.Options{Masters: 1, Epoch: Epoch, Scripts: s.scripts, Token: func(n int) string { return fmt.Sprintf("<x:%d>", n) }})
	defer x.Close()
	then := turned{situation: at.clone()}
	for end := at.now + s.config.Run.Patience(); len(x.Pending()) > 0; {
		o := coro.Observation{Now: then.now}
		switch r := x.Pending()[0]; {
		case r.Kind == coro.Command:
			o.Reply = s.execute(&then, sentCall{client: 8, commands: r.Commands})
		case r.Kind == coro.Pause && r.Label == "wait":
			by := min(most, end-then.now)
			if in, any := then.redis.NextExpiry(); any {
				by = min(by, in)
			}
			then.now += by
			then.redis = then.redis.Tick(by)
		}
		x.Resume(0, o)
	}
	return got
}
