package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/rediscmd"
	"oversell/reports"
	"oversell/variant"
)

// traceOfBest returns the trace of the best finding or, if there is none, of the one that was made at random.
func (x *search) traceOfBest(start state, best *finding) (*reports.Counterexample, error) {
	if best == nil {
		return x.traceOf(start, x.wandered.actions, x.wandered.found, false)
	}
	return x.trace(start, best)
}

// trace returns how a promise is broken: the schedule from the start, with every client under the number with which it
// began.
func (x *search) trace(start state, f *finding) (*reports.Counterexample, error) {
	return x.traceOf(start, x.way(f), f, true)
}

// traceOf is trace for a finding to which these actions lead. canonical: each state on the way was made canonical.
func (x *search) traceOf(start state, actions []action, f *finding, canonical bool) (*reports.Counterexample, error) {
	t := teller{w: x.worker(), renames: canonical, who: names.Same, canonical: start, real: start, sent: map[lateRequest][]int{}}
	c := &reports.Counterexample{Of: f.breach.Of, Property: f.breach.Property, Sentence: f.breach.Why}
	for i := range x.clients {
		c.Clients = append(c.Clients, fmt.Sprintf("client %d", i))
	}
	for i, a := range actions {
		st, err := t.tell(a)
		if err != nil {
			return nil, err
		}
		if !f.end && i == len(actions)-1 && st.breach == nil {
			return nil, fmt.Errorf("the schedule that broke a promise (%s) does not break it when it is repeated", f.breach.Why)
		}
		if st.breach != nil { // judged again, since clients have changed numbers
			c.Sentence = st.breach.Why
		}
	}
	if f.end {
		b := t.end(f)
		if b == nil {
			return nil, fmt.Errorf("the schedule that broke a promise (%s) does not break it when it is repeated", f.breach.Why)
		}
		c.Sentence = b.Why
	}
	c.Steps = t.steps
	return c, nil
}

// way lists the actions that lead to a finding.
func (x *search) way(f *finding) (actions []action) {
	if !f.end {
		actions = append(actions, f.by)
	}
	for id := f.from; ; {
		w := x.visited.Way(id)
		if w.From == table.NoState {
			break
		}
		actions = append(actions, action(w.By))
		id = w.From
	}
	slices.Reverse(actions)
	return actions
}

// teller repeats a schedule, both in the canonical states of the search and with clients that keep their numbers.
type teller struct {
	w         *worker
	renames   bool       // clients change numbers
	who       names.Perm // from a client's first number to its present one
	canonical state
	real      state
	steps     []reports.Step
	sent      map[lateRequest][]int // the steps that sent the requests in flight
}

// tell takes the next action.
func (t *teller) tell(a action) (step, error) {
	real, ok := t.translate(a)
	if !ok {
		return step{}, fmt.Errorf("a late request is not in flight any more when the schedule is repeated")
	}
	before := t.real
	there := t.w.act(t.canonical, a)
	st := t.w.act(before, real)
	if st.effect.Orders != 0 && a.kind() == goes {
		real, st = t.inOrder(real, there)
	}
	if st.err != nil {
		return st, st.err
	}
	t.describe(before, real, st)
	next, p := there.next, names.Same
	if t.renames {
		next, p = t.w.canonical(there.next)
	}
	t.canonical, t.who, t.real = next, p.After(t.who), st.next
	return st, nil
}

// inOrder returns an action whose answer is in the order that it has in the canonical
// situation, where names may sort differently, and its result.
func (t *teller) inOrder(a action, there step) (action, step) {
	x := t.w.search
	want := t.who.Inverse().Rename(x.servers.Answer(there.effect.Answer).Reply)
	for n := 0; ; n++ {
		st := t.w.act(t.real, a.inOrder(n))
		if n+1 == len(x.servers.Orders(st.effect.Orders)) || x.servers.Answer(st.effect.Answer).Reply == want {
			return a.inOrder(n), st
		}
	}
}

// translate returns an action of the canonical state for the clients as they were numbered at first.
func (t *teller) translate(a action) (action, bool) {
	back := t.who.Inverse()
	switch a.kind() {
	case timePasses:
		return a, true
	case arrives:
		x := t.w.search
		call := x.inFlight.Get(t.canonical.inFlight)[a.client()|a.which()<<3]
		call = lateRequest(x.servers.RenamedCall(uint32(call), back))
		place := slices.Index(x.inFlight.Get(t.real.inFlight), call)
		return newAction(arrives, place&7, place>>3), place >= 0
	}
	return newAction(a.kind(), back.Of(a.client()), a.which()).inOrder(a.order()), true
}

// describe appends the result of an action.
func (t *teller) describe(before state, a action, st step) {
	x := t.w.search
	s := reports.Step{AtMS: reports.InMS(before.time()), Client: a.client(), Thread: a.thread()}
	switch a.kind() {
	case timePasses:
		if a.moment() == momentLimit {
			t.buries(before)
		}
		s.Kind, s.Client, s.AdvanceMS = reports.StepAdvance, reports.TheClock, reports.InMS(st.next.time()-before.time())
		s.Thread = 0
		s.Text = t.passing(before, a, st)
	case arrives:
		f := x.inFlight.Get(before.inFlight)[a.client()|a.which()<<3]
		c := x.servers.Call(uint32(f))
		s.Kind, s.Client, s.Thread, s.Of, s.Clock = reports.StepArrive, c.Client, 0, t.sent[f][0], st.effect.Clock
		t.sent[f] = t.sent[f][1:]
		t.sends(&s, c)
		s.Text, s.Reply = t.commands(c)+" -> "+servers.Replies(c, x.answerOf(st.effect, c)), x.answerOf(st.effect, c)
	default:
		t.describeClient(&s, before, a, st)
	}
	s.Redis = x.servers.Text(st.next.servers)
	t.steps = append(t.steps, s)
}

func (t *teller) describeClient(s *reports.Step, before state, a action, st step) {
	x := t.w.search
	at, which := before.nodes[a.client()], a.thread()
	r := t.w.node(a.client(), at).Pending[which]
	s.Thread = a.thread()
	if clients.Private(r) && a.kind() != looks && a.kind() != looksAhead {
		if to := t.w.look(a.client(), at, which, before.time()); to.Fused {
			at, which = to.Node, int(to.Which)
			r = t.w.node(a.client(), at).Pending[which]
		}
	}
	s.Clock = st.did && st.effect.Clock
	for _, events := range st.events[:st.came] {
		s.Marks = append(s.Marks, marks(x.tries[x.roles[a.client()]].Events(events), a.client())...)
	}
	if a.kind() == looks || a.kind() == looksAhead || clients.Private(r) && r.Label != "start" {
		s.Kind, s.Text = reports.StepLook, "looks at the clock"
		if to := t.w.look(a.client(), at, which, before.time()); len(t.w.node(a.client(), at).Pending) > 1 {
			s.Looks = int(to.Looked)
		}
		if a.kind() == looks || a.kind() == looksAhead {
			s.Looks = a.times()
		}
		return
	}
	if r.Kind != coro.Command {
		s.Kind, s.Text = reports.StepPause, "goes on after: "+r.Label
		switch {
		case r.Label == "start":
			s.Kind, s.Text = reports.StepStart, ""
		case r.Kind == coro.Sleep:
			s.Text = "wakes up"
		}
		return
	}
	id := x.tries[x.roles[a.client()]].Call(t.w.node(a.client(), at), which, a.client())
	c := x.servers.Call(id)
	t.sends(s, c)
	s.Text = t.commands(c)
	if st.did {
		s.Reply = x.answerOf(st.effect, c)
	}
	switch a.kind() {
	case goes:
		s.Kind = reports.StepCommand
		s.Text += " -> " + servers.Replies(c, s.Reply)
	case losesCall:
		s.Kind = reports.StepLost
	case losesReply:
		s.Kind = reports.StepNoReply
		s.Text += " -> " + servers.Replies(c, s.Reply)
	case givesUp:
		s.Kind = reports.StepLate
		_, under := x.leaves(before, &r, id)
		t.sent[lateRequest(under)] = append(t.sent[lateRequest(under)], len(t.steps))
	}
}

func (t *teller) sends(s *reports.Step, c servers.Call) {
	s.Node, s.Commands, s.Tx, s.Conn = c.Node, c.Commands, c.Tx, c.Conn
}

// answerOf returns what the servers answered, in global names.
func (x *search) answerOf(e servers.Effect, c servers.Call) string {
	return names.Global(x.servers.Answer(e.Answer).Reply, c.Client)
}

// buries appends the crash of every client that could go on.
func (t *teller) buries(before state) {
	then, _, _ := t.w.crashRunnable(before)
	for c := range t.w.search.clients {
		if then.nodes[c] != before.nodes[c] {
			t.steps = append(t.steps, reports.Step{AtMS: reports.InMS(before.time()), Kind: reports.StepCrash, Client: c, Redis: t.w.search.servers.Text(before.servers)})
		}
	}
}

// passing says that a key expires while time passes, or returns "".
func (t *teller) passing(before state, a action, st step) string {
	text := ""
	if t.w.search.servers.Due(before.servers).Expires(st.next.time() - before.time()) {
		text = "a key expires"
	}
	return text
}

// end describes which clients died, and what is wrong with the servers' final state.
func (t *teller) end(f *finding) *rules.Breach {
	x := t.w.search
	at := reports.InMS(t.real.time())
	dead := x.rules.Busy(x.facts.Get(t.real.facts))
	for c := range x.clients {
		if dead>>c&1 == 1 && !t.w.node(c, t.real.nodes[c]).Dead {
			t.steps = append(t.steps, reports.Step{AtMS: at, Kind: reports.StepCrash, Client: c, Redis: x.servers.Text(t.real.servers)})
		}
	}
	b := x.ends.judge(ending{t.real.servers, t.real.facts, t.real.now})
	if b == nil {
		return nil
	}
	t.steps = append(t.steps, reports.Step{AtMS: at, Kind: reports.StepEnd, Client: reports.TheClock, Text: b.Why, Redis: x.servers.Text(t.real.servers)})
	return b
}

// scriptCalls finds the commands that a script calls.
var scriptCalls = regexp.MustCompile(`redis\.p?call\(\s*['"](\w+)['"]`)

// commands shows in readable form what was sent: a script by the commands in it.
func (t *teller) commands(c servers.Call) string {
	parts := make([]string, len(c.Commands))
	for i, cmd := range c.Commands {
		parts[i] = t.command(cmd)
	}
	text := strings.Join(parts, "; ")
	if c.Tx {
		text = "multi; " + text + "; exec"
	}
	if t.w.search.masters > 1 {
		text = fmt.Sprintf("[%d] %s", c.Node+1, text)
	}
	return text
}

func (t *teller) command(cmd []string) string {
	name, args := cmd[0], cmd[1:]
	if rediscmd.Is(name, rediscmd.RunsHash|rediscmd.RunsText) && len(cmd) > 2 {
		text, known := t.w.search.scripts.Text(cmd[1])
		if !known {
			text = cmd[1]
		}
		var does []string
		for _, m := range scriptCalls.FindAllStringSubmatch(text, -1) {
			if does = append(does, m[1]); len(does) > 4 {
				does[4] = "…"
				break
			}
		}
		name, args = "script("+strings.Join(does, " ")+")", cmd[3:]
	}
	words := []string{name}
	for _, arg := range args {
		words = append(words, names.Readable(servers.Quoted(arg)))
	}
	return strings.Join(words, " ")
}

// marks returns the results of a client's operations, in a word or two each.
func marks(events []Event, client int) (all []string) {
	for _, e := range events {
		if m := mark(e, client); m != "" {
			all = append(all, m)
		}
		if e.End && e.Op.Kind == history.Acquire && e.Op.Fence != 0 {
			all = append(all, fmt.Sprintf("fence %d", e.Op.Fence))
		}
	}
	return all
}

func mark(e Event, client int) string {
	op := e.Op
	if !e.End {
		if op.Kind == history.Release {
			return reports.MarkLeave
		}
		return ""
	}
	if op.Outcome == history.Unknown {
		return "no answer to " + op.Kind.String()
	}
	if op.Outcome == history.Refused {
		return strings.ToUpper(op.Reason.String())
	}
	word, named := cameTo[op.Kind]
	if !named {
		return ""
	}
	what := op.Result
	if op.Kind == history.Enqueue || op.Kind == history.Buy || op.Kind == history.Effect || op.Kind == history.Ack {
		what = op.Arg
	}
	switch {
	case op.Kind == history.Acquire:
		return word
	case op.Reason == history.Repeated:
		return word + " before: " + names.Readable(names.Global(what.String(), client))
	}
	return word + " " + names.Readable(names.Global(what.String(), client))
}

// cameTo describes the result of a successful operation of a kind.
var cameTo = map[history.Kind]string{
	history.Acquire: reports.MarkEnter, history.Buy: "SOLD", history.Refund: "RETURNED", history.Enqueue: "ENQUEUED",
	history.Pop: "GOT", history.Effect: "DONE", history.Ack: "ACKNOWLEDGED", history.NextID: "NUMBER",
}

// faultsIn returns the faults that these bounds allow, in the terms of flaws.
func faultsIn(b reports.Bounds) []variant.Fault {
	fs := []variant.Fault{variant.NoFault}
	if b.Advances > 0 {
		fs = append(fs, variant.Overrun)
	}
	if b.Crashes > 0 {
		fs = append(fs, variant.Crash)
	}
	if b.Lost > 0 {
		fs = append(fs, variant.DropReply, variant.Resend) // a client without an answer sends again
	}
	if b.Late > 0 {
		fs = append(fs, variant.LateRequest, variant.DropReply) // it may arrive before its client sends again
	}
	return fs
}
