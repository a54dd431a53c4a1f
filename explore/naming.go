package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/redismodel"
)

// Clients can be exchanged for one another, and runs of their code compared, only as
// long as names mean nothing: a program may pass a token on and compare it with
// another, and that is all. Nothing is taken on trust. Each list of observations is
// executed under two spellings of the names, in which any two names are in different
// orders, and so is each command by the servers. If what comes out differs in more
// than the names, the search is made again: first with names as long as real ones, since
// what differs may be no more than their length, and then without exchanging anybody,
// with names that look like real ones, once for each of several namings.

// namer is what a search calls its clients' names.
type namer struct {
	naming  names.Naming
	clients int
	seen    *names.Seen
	known   [][]string // if the naming is concrete: the first tokens of each client
}

// knownTokens is how many tokens of a client are recognised when they are concrete.
const knownTokens = 16

func newNamer(n names.Naming, clients int) namer {
	s := namer{naming: n, clients: clients, seen: &names.Seen{}}
	for i := 0; i < clients && n >= names.Concrete; i++ {
		var tokens []string
		for k := range knownTokens {
			tokens = append(tokens, s.scheme(i).Token(k))
		}
		s.known = append(s.known, tokens)
	}
	return s
}

// scheme is that of a client.
func (n *namer) scheme(client int) names.Scheme {
	return names.Scheme{Naming: n.naming, Client: client, Seen: n.seen}
}

// owners are the clients whose names are in text.
func (n *namer) owners(text string) (clients []int) {
	for _, s := range n.found(text) {
		clients = append(clients, s.client)
	}
	return clients
}

// found are the names in text, and whose they are.
func (n *namer) found(text string) []secret {
	all := secretsIn(text)
	for i, tokens := range n.known {
		for _, name := range tokens {
			for range strings.Count(text, name) {
				all = append(all, secret{name: name, client: i})
			}
		}
	}
	return all
}

// bookOfNobody has the numbers of whoever is no client.
func (n *namer) bookOfNobody() *names.Book { return n.scheme(nobody).Book(0) }

// outsider is the n-th token of whoever is no client.
func (n *namer) outsider(number int) string {
	return global(n.scheme(nobody).Token(number), nobody)
}

// Who says which client's code an execution runs.
type Who struct {
	// Index is 0 for a queue's producer, 1 for its consumers, and 0 for all clients of
	// other scenarios.
	Index int
	// Names says what the client's names are.
	Names names.Scheme
}

// eachText is what requests and events say, with f applied to every text in it that may
// hold names. Numbers in events are texts here, since a value drawn at random may be a
// number.
func eachText(pending []coro.Request, events []Event, f func(string) string) ([]coro.Request, []Event) {
	pending = slices.Clone(pending)
	for i := range pending {
		r := &pending[i]
		if r.Kind == coro.Boundary {
			r.Label = f(r.Label)
		}
		commands := make([][]string, len(r.Commands))
		for j, cmd := range r.Commands {
			commands[j] = make([]string, len(cmd))
			for k, arg := range cmd {
				commands[j][k] = f(arg)
			}
		}
		if r.Commands != nil {
			r.Commands = commands
		}
	}
	events = slices.Clone(events)
	for i := range events {
		o := &events[i].Op
		for _, v := range []*history.Value{&o.Key, &o.Arg, &o.Result, &o.Session} {
			if is := v.String(); *v != (history.Value{}) {
				if text := f(is); text != is {
					*v = history.Text(text)
				}
			}
		}
	}
	return pending, events
}

// shape is all in requests and events that eachText passes over.
func shape(pending []coro.Request, events []Event) string {
	var b strings.Builder
	for _, r := range pending {
		fmt.Fprintf(&b, "%d %d %d %t %d %d", r.Thread, r.Kind, r.Node, r.Tx, r.Until, r.Deadline)
		if r.Kind != coro.Boundary {
			b.WriteString(r.Label)
		}
		for _, cmd := range r.Commands {
			fmt.Fprintf(&b, " %d", len(cmd))
		}
		b.WriteByte(';')
	}
	for _, e := range events {
		o := e.Op
		fmt.Fprintf(&b, "%t %d %d %d %d %d %d %t%t%t%t;", e.End, o.Kind, o.Outcome, o.Reason, o.Amount, o.Fence, o.Until,
			o.Key == history.Value{}, o.Arg == history.Value{}, o.Result == history.Value{}, o.Session == history.Value{})
	}
	return b.String()
}

// Said is what a run says where it stands, in its own names.
func Said(book *names.Book, pending []coro.Request, events []Event) *names.Stand {
	s := &names.Stand{Book: book, Shape: shape(pending, events), Says: func() string { return requests(pending) }}
	eachText(pending, events, func(text string) string {
		s.Texts = append(s.Texts, text)
		return text
	})
	return s
}

// Spelled puts texts in the place of those that Said took.
func Spelled(pending []coro.Request, events []Event, texts []string) ([]coro.Request, []Event) {
	i := -1
	return eachText(pending, events, func(string) string { i++; return texts[i] })
}

// run is an execution, with its names.
type run struct {
	x      Execution
	book   *names.Book
	events []Event // since it was last looked at
}

// stand is what the run says where it stands.
func (r *run) stand() *names.Stand { return Said(r.book, r.x.Pending(), r.events) }

// resume shows the run an observation in canonical names.
func (r *run) resume(i int, o coro.Observation) {
	o.Reply = r.book.Reply(o.Reply)
	r.x.Resume(i, o)
	r.look()
}

// failed says why the run cannot be stepped.
func (r *run) failed() error {
	err := r.x.Err()
	if err != nil && !r.book.Plain() {
		return fmt.Errorf("%w: with other names: %w", names.ErrNotOpaque, err)
	}
	return err
}

// look takes over what the run has come to.
func (r *run) look() {
	r.events = nil
	for _, e := range r.x.Events() {
		r.events = append(r.events, e.(Event))
	}
}

// runs are executions that were shown the same: the first, whose tokens are spelled as
// in the canonical text, and others with other spellings.
type runs []*run

func (rs runs) close() {
	for _, r := range rs {
		r.x.Close()
	}
}

// settled is where the runs stand, in canonical names. more brings another run like the
// first one to the same place.
func (rs runs) settled(known int, more func() (*run, error)) (pending []coro.Request, events []Event, drawn []names.Value, err error) {
	first := rs[0]
	if err := first.x.Err(); err != nil {
		return nil, nil, nil, err
	}
	pending, events = first.x.Pending(), first.events
	if len(rs) == 1 {
		return pending, events, nil, nil
	}
	var stands []*names.Stand
	for _, r := range rs {
		if err := r.failed(); err != nil {
			return nil, nil, nil, err
		}
		stands = append(stands, r.stand())
	}
	var others runs
	defer func() { others.close() }()
	texts, drawn, err := names.Settle(stands, known, func() (*names.Stand, error) {
		r, err := more()
		if err != nil {
			return nil, err
		}
		others = append(others, r)
		return r.stand(), nil
	})
	if err != nil {
		return nil, nil, nil, chance(err)
	}
	pending, events = Spelled(pending, events, texts)
	return pending, events, drawn, nil
}

// chance says of an error in words of this package what it means.
func chance(err error) error {
	if errors.Is(err, names.ErrChance) && !errors.Is(err, ErrNondeterministic) {
		return fmt.Errorf("%w: shown the same, %w", ErrNondeterministic, err)
	}
	return err
}

// spelling executes what the servers do once more, with the names spelled otherwise.
type spelling struct {
	off    bool
	failed atomic.Pointer[string] // the first thing that depended on how names are spelled
	mapped *memo[respelled, []*redismodel.State]
}

type respelled struct {
	servers uint32
	seed    uint64
}

// spell is what the servers hold, with the names spelled otherwise.
func (s *servers) spell(k respelled) []*redismodel.State {
	before := s.states.get(k.servers)
	nodes := make([]*redismodel.State, len(before))
	for i, n := range before {
		nodes[i] = n.Map(func(text string) string { return names.Other(k.seed, text) }, func(conn int) int { return conn })
	}
	return nodes
}

// check compares what a call does with what it does when names are spelled otherwise.
func (s *servers) check(k callAt, c call, after *redismodel.State, reply []byte, info redismodel.Info) {
	if s.spelling.off || s.spelling.failed.Load() != nil {
		return
	}
	for seed := range uint64(names.Others) {
		if why := s.checkWith(seed+1, k, c, after, reply, info); why != "" {
			s.spelling.failed.CompareAndSwap(nil, &why)
			return
		}
	}
}

// checkWith is check with one other spelling; it says what differs.
func (s *servers) checkWith(seed uint64, k callAt, c call, after *redismodel.State, reply []byte, info redismodel.Info) (why string) {
	other := func(text string) string { return names.Other(seed, text) }
	d := c
	d.commands = make([][]string, len(c.commands))
	for i, cmd := range c.commands {
		d.commands[i] = make([]string, len(cmd))
		for j, arg := range cmd {
			d.commands[i][j] = other(arg)
		}
	}
	before := s.spelling.mapped.of(respelled{k.servers, seed})
	then, answer, about := perform(before[c.node], s.epoch+k.now, d)
	want := after.Map(other, func(conn int) int { return conn })
	same := about.Unknown == "" && about.Clock == info.Clock && then.Key() == want.Key()
	if same && slices.Contains(alternatives(names.MapReplies(string(reply), other), info), string(answer)) {
		return ""
	}
	return fmt.Sprintf("%q answers %q, and with other names %q", c.commands, reply, answer)
}
