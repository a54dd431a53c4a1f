package oracle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/explore"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/redismodel"
	"oversell/lockimpl"
	"oversell/scenarios"
	"oversell/variant"
)

// The oracle is a plain breadth-first enumeration. A situation is the server's state, the time, and the complete list
// of each client's observations, in real names and real times: nothing is renamed, and no observation is forgotten. A
// command is executed in one step and answered in another, so that anything can happen in between.

// limits are the bounds of an enumeration.
type limits struct {
	clients, rounds            int
	crashes, lost, late, jumps int
	// extends says that the section is as long as the lease, so that the lock is extended once.
	extends bool
	// states is the number of situations after which the enumeration gives up.
	states int
	// whole says that a command is executed and answered in one step.
	whole bool
}

const nobody = -1

// naming returns the n-th token of a client.
type naming func(client, n int) string

// told is an event of an operation, as the client's driver reports it.
type told struct {
	kind  history.Kind
	end   bool
	ok    bool
	until time.Duration
}

// life returns the program that a client of a lock runs.
func life(v lockimpl.Variant, l limits) coro.Program {
	return func(ctx context.Context, w *coro.Runtime) {
		k := v.New(w.Env())
		options := lockimpl.Options{TTL: lease, Wait: time.Second, RetryEvery: 100 * time.Millisecond, MaxTries: 1}
		for range l.rounds {
			round(ctx, w, k, options, l.extends)
		}
	}
}

func round(ctx context.Context, w *coro.Runtime, k lockimpl.Locker, o lockimpl.Options, extends bool) {
	w.Emit(told{kind: history.Acquire})
	held, err := k.Acquire(ctx, "order", o)
	w.Emit(told{kind: history.Acquire, end: true, ok: err == nil, until: held.Until.Sub(explore.Epoch)})
	if err != nil {
		return
	}
	w.Pause("section")
	if extends {
		w.Emit(told{kind: history.Extend})
		longer, err := k.Extend(ctx, held, o.TTL)
		w.Emit(told{kind: history.Extend, end: true, ok: err == nil, until: longer.Until.Sub(explore.Epoch)})
		if err == nil {
			held = longer
			w.Pause("section")
		}
	}
	w.Emit(told{kind: history.Release})
	err = k.Release(ctx, held)
	w.Emit(told{kind: history.Release, end: true, ok: err == nil})
}

// sight is one entry in a client's list of observations.
type sight struct {
	thread int
	o      coro.Observation
}

// place is where a client has stopped after a list of observations.
type place struct {
	id      int
	seen    []sight
	pending []coro.Request
	events  []told // since the previous place
	// drops counts the connections that each thread has given up.
	drops [4]int
	// instants are the moments that occur in the client's data.
	instants []time.Duration
	next     map[sight]*place
}

// oracle is one enumeration.
type oracle struct {
	lock    lockimpl.Variant
	design  *design
	limits  limits
	naming  naming
	scripts *coro.Scripts
	key     string
	places  int
	visited map[string]struct{}
	queue   []*situation
	entered bool
	end     map[string]bool // by the server's state: whether a client could obtain the lock then
	broken  map[variant.Property]*situation
	unknown string
	cut     bool
}

// holder is what the oracle keeps of a client to judge it.
type holder struct {
	op    history.Kind // under way; 0: none
	holds bool
	until time.Duration
}

// straggler is a command that was sent but not yet executed.
type straggler struct {
	client, conn int
	by           history.Kind
	thread       int
	r            coro.Request
}

// flight is a command that was executed but not yet answered.
type flight struct {
	thread int
	reply  string
}

type situation struct {
	server  *redismodel.State
	now     time.Duration
	at      []*place
	dead    []bool
	flights [][]flight
	holders []holder
	late    []straggler
	// owner is the owner of the lock's key: the last client that created it in an acquire or, if it is not a
	// collection, set it to another value.
	owner int

	crashes, lost, delayed, jumps int

	from  *situation
	what  string
	sent  *sent
	depth int
}

func (s *situation) copy(what string) *situation {
	n := *s
	n.at, n.dead, n.holders = slices.Clone(s.at), slices.Clone(s.dead), slices.Clone(s.holders)
	n.flights, n.late = slices.Clone(s.flights), slices.Clone(s.late)
	n.from, n.what, n.sent, n.depth = s, what, nil, s.depth+1
	return &n
}

func (s *situation) fingerprint() string {
	var b []byte
	num := func(n int) { b = binary.AppendVarint(b, int64(n)) }
	num(int(s.now))
	for i, p := range s.at {
		num(p.id)
		h := s.holders[i]
		flags := 0
		if s.dead[i] {
			flags |= 1
		}
		if h.holds {
			flags |= 2
		}
		num(flags)
		num(len(s.flights[i]))
		for _, f := range s.flights[i] {
			num(f.thread)
			b = append(b, f.reply...)
		}
	}
	num(s.owner)
	for _, l := range s.late {
		num(l.client)
		num(l.conn)
		b = append(b, fmt.Sprint(l.r.Commands, l.r.Tx, l.by, l.thread)...)
	}
	num(s.crashes)
	num(s.lost)
	num(s.delayed)
	num(s.jumps)
	b = append(b, s.server.Key()...)
	return string(b)
}

// outcome is the result of an enumeration.
type outcome struct {
	broken  map[variant.Property]int // the promises that were broken, and in how many steps
	entered bool
	cut     bool   // the enumeration gave up
	unknown string // what the model of the server does not know
	states  int
	traces  map[variant.Property][]string
	ends    map[variant.Property]*situation
	scripts *coro.Scripts
}

func enumerate(v lockimpl.Variant, d *design, l limits, n naming) outcome {
	o := &oracle{
		lock: v, design: d, limits: l, naming: n, scripts: &coro.Scripts{}, key: lockimpl.Key("order"),
		visited: map[string]struct{}{}, broken: map[variant.Property]*situation{}, end: map[string]bool{},
	}
	if d.key != nil {
		o.key = d.key("")
	}
	first := &situation{server: redismodel.Empty(), crashes: l.crashes, lost: l.lost, delayed: l.late, jumps: l.jumps, owner: nobody}
	for i := range l.clients {
		p := o.execute(i, nil)
		first.at = append(first.at, p)
		first.dead = append(first.dead, false)
		first.flights = append(first.flights, nil)
		first.holders = append(first.holders, holder{})
	}
	o.add(first)
	for at := 0; at < len(o.queue) && o.unknown == ""; at++ {
		if len(o.visited) > l.states {
			o.cut = true
			break
		}
		s := o.queue[at]
		o.queue[at] = nil
		o.expand(s)
	}
	r := outcome{broken: map[variant.Property]int{}, entered: o.entered, cut: o.cut, unknown: o.unknown, states: len(o.visited), traces: map[variant.Property][]string{}, ends: o.broken, scripts: o.scripts}
	for p, s := range o.broken {
		r.broken[p] = s.depth
		r.traces[p] = s.trace()
	}
	return r
}

func (s *situation) trace() (lines []string) {
	for ; s.from != nil; s = s.from {
		lines = append(lines, fmt.Sprintf("%v %s | %s", s.now, s.what, s.server.Text(nil)))
	}
	slices.Reverse(lines)
	return lines
}

func (o *oracle) add(s *situation) {
	f := s.fingerprint()
	if _, known := o.visited[f]; known {
		return
	}
	o.visited[f] = struct{}{}
	o.queue = append(o.queue, s)
}

// execute runs a client's code from its start through the observations seen, and returns the place where it stops.
func (o *oracle) execute(client int, seen []sight) *place {
	c := coro.Start(life(o.lock, o.limits), coro.Options{
		Masters: 1, Epoch: explore.Epoch, Scripts: o.scripts, Token: func(n int) string { return o.naming(client, n) },
	})
	defer c.Close()
	o.places++
	p := &place{id: o.places, seen: seen, next: map[sight]*place{}}
	for i, s := range seen {
		if i == len(seen)-1 {
			c.Events()
		}
		at := slices.IndexFunc(c.Pending(), func(r coro.Request) bool { return r.Thread == s.thread })
		p.observe(c.Pending()[at], s, o.design.spans)
		c.Resume(at, s.o)
	}
	p.pending = c.Pending()
	for _, e := range c.Events() {
		t := e.(told)
		p.events = append(p.events, t)
		if t.ok {
			p.instants = append(p.instants, t.until)
		}
	}
	if err := c.Err(); err != nil && o.unknown == "" {
		o.unknown = err.Error()
	}
	for _, r := range p.pending {
		p.speaks(r)
		if r.Kind == coro.Sleep {
			p.instants = append(p.instants, r.Until)
		}
		if r.Deadline > 0 {
			p.instants = append(p.instants, r.Deadline)
		}
	}
	slices.Sort(p.instants)
	p.instants = slices.Compact(p.instants)
	return p
}

// observe notes the instants that occur in an observation.
func (p *place) observe(r coro.Request, s sight, spans []time.Duration) {
	switch r.Kind {
	case coro.Clock:
		for _, d := range append(spans, lease) {
			p.instants = append(p.instants, s.o.Now+d)
		}
	case coro.Command:
		p.speaks(r)
		p.numbers(s.o.Reply)
	}
	if s.o.Failure != coro.Answered {
		p.drops[s.thread]++
	}
}

func (p *place) speaks(r coro.Request) {
	for _, c := range r.Commands {
		for _, arg := range c {
			p.numbers(arg)
		}
	}
}

// numbers notes the numbers in a text that are instants of this search, in any unit.
func (p *place) numbers(text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || len(word) < 10 {
			continue
		}
		for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
			if n > int64(1<<62)/int64(unit) {
				continue
			}
			if d := time.Duration(n)*unit - time.Duration(explore.Epoch.UnixNano()); d >= 0 && d < time.Hour {
				// A client that compares whole units notices that d is over when the next unit begins.
				p.instants = append(p.instants, d, d+unit)
			}
		}
	}
}

// after returns the place of a client after one more observation.
func (o *oracle) after(s *situation, client int, thread int, obs coro.Observation) *place {
	p := s.at[client]
	// A thread learns the time only from the clock, unless the code sets deadlines.
	r := p.pending[slices.IndexFunc(p.pending, func(r coro.Request) bool { return r.Thread == thread })]
	if r.Kind == coro.Clock || o.design.deadlines {
		obs.Now = s.now
	}
	v := sight{thread, obs}
	n := p.next[v]
	if n == nil {
		n = o.execute(client, append(slices.Clip(p.seen), v))
		p.next[v] = n
	}
	return n
}

// resume adds the situation in which a client's thread goes on with an observation.
func (o *oracle) resume(s *situation, client, thread int, obs coro.Observation, what string) {
	n := s.copy(fmt.Sprintf("client %d.%d: %s", client, thread, what))
	o.goOn(n, client, thread, obs)
	o.add(n)
}

func (o *oracle) goOn(n *situation, client, thread int, obs coro.Observation) {
	n.at[client] = o.after(n, client, thread, obs)
	for _, e := range n.at[client].events {
		o.judge(n, client, e)
	}
}

// judge applies an event. A client holds the lock from its grant to its release, but not beyond its promised lease.
func (o *oracle) judge(n *situation, client int, e told) {
	h := &n.holders[client]
	h.op = e.kind
	if e.end {
		h.op = history.NoKind
	}
	switch {
	case e.kind == history.Release:
		h.holds = false
		return
	case !e.end || !e.ok:
		return
	}
	h.holds, h.until = true, e.until
	if n.now < e.until {
		o.entered = true
	}
	for other := range n.holders {
		if other != client && n.holding(other) && n.holding(client) {
			o.breaks(n, variant.MutualExclusion)
		}
	}
}

func (s *situation) holding(client int) bool {
	h := s.holders[client]
	return h.holds && s.now < h.until && !s.dead[client]
}

func (o *oracle) breaks(s *situation, p variant.Property) {
	if o.broken[p] == nil {
		o.broken[p] = s
	}
}

// expand takes every step that is possible in a situation.
func (o *oracle) expand(s *situation) {
	wakes, free := time.Duration(-1), true
	steps := len(s.late)
	for client, p := range s.at {
		if s.dead[client] {
			continue
		}
		steps += len(p.pending)
		for _, r := range p.pending {
			if at := slices.IndexFunc(s.flights[client], func(f flight) bool { return f.thread == r.Thread }); at >= 0 {
				free = false
				o.answer(s, client, at)
				continue
			}
			if r.Kind == coro.Sleep {
				end := r.Until
				if r.Deadline > 0 {
					end = min(end, r.Deadline)
				}
				if s.now < end {
					if wakes < 0 || end < wakes {
						wakes = end
					}
					continue
				}
			}
			free = false
			o.step(s, client, r)
		}
		if s.crashes > 0 && len(p.pending) > 0 {
			n := s.copy(fmt.Sprintf("client %d dies", client))
			n.dead[client], n.flights[client] = true, nil
			n.crashes--
			o.add(n)
		}
	}
	for i, l := range s.late {
		free = false
		n := s.copy(fmt.Sprintf("late: %v", l.r.Commands))
		n.late = slices.Delete(n.late, i, i+1)
		o.send(n, l.client, l.conn, l.thread, l.by, l.r)
		o.add(n)
	}
	if steps == 0 {
		o.ends(s)
		return
	}
	o.wait(s, free, wakes)
}

// wait lets time pass to each moment that the server or a client knows, and to just before and just after it. It costs a
// jump unless all clients wait.
func (o *oracle) wait(s *situation, free bool, wakes time.Duration) {
	var moments []time.Duration
	if in, any := s.server.NextExpiry(); any {
		moments = append(moments, s.now+in)
	}
	for _, k := range append(o.design.keys, o.key) {
		if _, left, exists := s.server.Value(k); exists && left > 0 {
			moments = append(moments, s.now+left)
		}
	}
	for client, p := range s.at {
		if !s.dead[client] || s.holders[client].holds {
			moments = append(moments, p.instants...)
		}
	}
	var all []time.Duration
	for _, m := range moments {
		for _, d := range []time.Duration{-time.Millisecond, 0, time.Millisecond} {
			if m+d > s.now {
				all = append(all, m+d)
			}
		}
	}
	slices.Sort(all)
	for _, m := range slices.Compact(all) {
		cost := 1
		if free && (wakes < 0 || m <= wakes) {
			cost = 0
		}
		if s.jumps < cost {
			continue
		}
		n := s.copy("time passes")
		n.jumps -= cost
		n.server = s.server.Tick(m - s.now)
		n.forget(o.key)
		n.now = m
		o.add(n)
	}
}

func (o *oracle) answer(s *situation, client, at int) {
	n := s.copy("")
	f := s.flights[client][at]
	n.flights[client] = slices.Delete(slices.Clone(s.flights[client]), at, at+1)
	r := s.at[client].pending[slices.IndexFunc(s.at[client].pending, func(r coro.Request) bool { return r.Thread == f.thread })]
	obs := coro.Observation{Reply: f.reply}
	if r.Deadline > 0 && s.now >= r.Deadline {
		obs = coro.Observation{Failure: coro.TimedOut}
	}
	n.what = fmt.Sprintf("client %d.%d: answered %q", client, f.thread, obs.Reply)
	o.goOn(n, client, f.thread, obs)
	o.add(n)
}

// step takes every step that one thread of a client can take.
func (o *oracle) step(s *situation, client int, r coro.Request) {
	if r.Kind != coro.Command {
		what := r.Label
		if r.Kind == coro.Clock {
			what = "looks at the clock"
		}
		o.resume(s, client, r.Thread, coro.Observation{}, what)
		return
	}
	conn := client*100 + r.Thread*10 + s.at[client].drops[r.Thread]
	by := s.holders[client].op
	name := fmt.Sprint(r.Commands)
	if r.Deadline > 0 && s.now >= r.Deadline {
		o.resume(s, client, r.Thread, coro.Observation{Failure: coro.TimedOut}, name+" not sent in time")
		n := s.copy(fmt.Sprintf("client %d.%d: %s, answered too late", client, r.Thread, name))
		if _, ok := o.send(n, client, conn, r.Thread, by, r); ok {
			o.goOn(n, client, r.Thread, coro.Observation{Failure: coro.TimedOut})
			o.add(n)
		}
		return
	}
	n := s.copy(fmt.Sprintf("client %d.%d: %s", client, r.Thread, name))
	reply, ok := o.send(n, client, conn, r.Thread, by, r)
	if !ok {
		return
	}
	if o.limits.whole {
		n.what += fmt.Sprintf(" -> %q", reply)
		o.goOn(n, client, r.Thread, coro.Observation{Reply: reply})
	} else {
		n.flights[client] = append(slices.Clip(n.flights[client]), flight{r.Thread, reply})
	}
	o.add(n)
	silent := coro.Observation{Failure: coro.NoAnswer}
	if s.lost > 0 {
		n := s.copy(fmt.Sprintf("client %d.%d: %s, reply lost", client, r.Thread, name))
		n.lost--
		o.send(n, client, conn, r.Thread, by, r)
		o.goOn(n, client, r.Thread, silent)
		o.add(n)
		n = s.copy(fmt.Sprintf("client %d.%d: %s, request lost", client, r.Thread, name))
		n.lost--
		o.goOn(n, client, r.Thread, silent)
		o.add(n)
	}
	if s.delayed > 0 {
		n := s.copy(fmt.Sprintf("client %d.%d: %s, delayed", client, r.Thread, name))
		n.delayed--
		n.late = append(slices.Clip(n.late), straggler{client, conn, by, r.Thread, r})
		o.goOn(n, client, r.Thread, silent)
		o.add(n)
	}
}

// send has the server execute a request, and judges whether the request changed the lock of another client.
func (o *oracle) send(n *situation, client, conn, thread int, by history.Kind, r coro.Request) (reply string, ok bool) {
	before := n.server
	to, reply, unknown := executeOn(o.scripts, before, n.now, conn, r)
	if unknown != "" {
		o.unknown = unknown
		return "", false
	}
	n.server, n.sent = to, &sent{conn, r, reply}
	if by == history.Release || by == history.Extend || thread > 0 {
		for other := range n.holders {
			if other != client && n.owner == other && n.holding(other) && changed(before, to, o.key) {
				o.breaks(n, variant.OwnerOnlyRelease)
			}
		}
	}
	v, _, was := before.Value(o.key)
	w, _, is := to.Value(o.key)
	if by == history.Acquire && is && (!was || v != w && !o.design.collection) {
		n.owner = client
	}
	n.forget(o.key)
	return reply, true
}

// forget clears the owner if the lock's key no longer exists.
func (s *situation) forget(key string) {
	if _, _, exists := s.server.Value(key); !exists {
		s.owner = nobody
	}
}

func changed(a, b *redismodel.State, key string) bool {
	v, left, is := a.Value(key)
	w, rest, still := b.Value(key)
	return v != w || left != rest || is != still
}

func executeOn(scripts *coro.Scripts, s *redismodel.State, now time.Duration, conn int, r coro.Request) (to *redismodel.State, reply, unknown string) {
	at := time.Duration(explore.Epoch.UnixNano()) + now
	for _, c := range r.Commands {
		if strings.HasPrefix(strings.ToLower(c[0]), "evalsha") {
			if text, known := scripts.Text(c[1]); known {
				s.Load(text)
			}
		}
	}
	if r.Tx {
		to, answer, info := s.Transaction(at, conn, r.Commands)
		return to, string(answer), info.Unknown
	}
	for _, c := range r.Commands {
		var answer []byte
		var info redismodel.Info
		s, answer, info = s.Do(at, conn, c)
		if info.Unknown != "" {
			return s, "", info.Unknown
		}
		reply += string(answer)
	}
	return s, reply, ""
}

// ends judges the final state, in which all clients have stopped: a client that keeps trying must obtain the lock within
// the lease and a grace period.
func (o *oracle) ends(s *situation) {
	if o.broken[variant.Progress] != nil {
		return
	}
	key := fmt.Sprint(s.now, s.server.Key())
	got, known := o.end[key]
	if !known {
		got = o.obtains(s.server, s.now)
		o.end[key] = got
	}
	if !got {
		o.breaks(s, variant.Progress)
	}
}

func (o *oracle) obtains(server *redismodel.State, now time.Duration) bool {
	var got bool
	c := coro.Start(func(ctx context.Context, w *coro.Runtime) {
		k := o.lock.New(w.Env())
		for !got {
			_, err := k.Acquire(ctx, "order", lockimpl.Options{TTL: lease, MaxTries: 1})
			got = err == nil
			if err != nil && !errors.Is(err, lockimpl.ErrHeld) {
				return
			}
			w.Pause("again")
		}
	}, coro.Options{Masters: 1, Epoch: explore.Epoch, Scripts: o.scripts, Token: func(n int) string { return o.naming(o.limits.clients, n) }})
	defer c.Close()
	pass := func(d time.Duration) { server, now = server.Tick(d), now+d }
	conn := 1_000_000
	for end := now + lease + scenarios.Grace; len(c.Pending()) > 0 && !got; {
		r := c.Pending()[0]
		obs := coro.Observation{Now: now}
		switch r.Kind {
		case coro.Command:
			var unknown string
			server, obs.Reply, unknown = executeOn(o.scripts, server, now, conn, r)
			if unknown != "" {
				o.unknown = unknown
				return true
			}
		case coro.Sleep:
			pass(max(r.Until-now, 0))
			obs.Now = now
		case coro.Pause:
			if r.Label == "again" {
				if now > end {
					return false
				}
				pass(100 * time.Millisecond)
				obs.Now = now
			}
		}
		c.Resume(0, obs)
	}
	return got
}
