package explore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// Epoch is the time 0 of every search: a whole second, so that leases of whole
// seconds come out even.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// program returns the code of a client in a search, in canonical names: the steps of the scenario.
func program(c scenarios.Config, index int, b reports.Bounds) coro.Program {
	return programOf(c, index, b, names.Scheme{}.Book(0))
}

// programOf is program with the numbers of a book.
func programOf(c scenarios.Config, index int, b reports.Bounds, book *names.Book) coro.Program {
	return func(ctx context.Context, w *coro.World) {
		l := &life{w: w, resends: b.Resends, numbers: map[string]int64{}, book: book}
		scenarios.Alone(c, l.world(index)).Live(ctx, b.Tries)
	}
}

// life is the state of one client's execution that is not in its own objects.
type life struct {
	w       *coro.World
	tried   int // acquisitions begun in this round
	resends int // how often an order is sent again in a round
	numbers map[string]int64
	book    *names.Book
}

// execution starts the code of a client.
func (c *Config) execution(who Who, book *names.Book, scripts *coro.Scripts) Execution {
	if c.Start != nil {
		return c.Start(who)
	}
	return coro.Start(programOf(c.Run, who.Index, c.Bounds, book), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: book.Token, Number: book.Number(names.ClientNumber), Scripts: scripts})
}

func (l *life) world(index int) scenarios.World {
	return scenarios.World{
		Env: l.w.Env(), Index: index, Epoch: Epoch,
		Pause:  l.w.Pause,
		Turn:   l.boundary,
		Enough: func() bool { return l.tried > l.resends },
		Number: func(of string) int64 {
			l.numbers[of]++
			return l.book.Number(l.numbers[of])
		},
		Began: func(op history.Op) {
			if op.Kind == history.Acquire {
				l.tried++
			}
			l.w.Emit(Event{Op: InCanonicalNumbers(op, l.book)})
		},
		Ended: func(op history.Op, _ error) { l.w.Emit(Event{End: true, Op: InCanonicalNumbers(op, l.book)}) },
	}
}

// InCanonicalNumbers is an operation whose numbers, which are concrete if the naming of the book is, are canonical.
func InCanonicalNumbers(op history.Op, book *names.Book) history.Op {
	for _, v := range []*history.Value{&op.Key, &op.Arg, &op.Result, &op.Session} {
		if n, is := v.Num(); is && *v != (history.Value{}) {
			*v = history.Int(book.CanonicalNumber(n))
		}
	}
	return op
}

// boundary marks a point at which the client's future depends only on its objects: two clients whose
// objects have equal contents there behave in the same way.
func (l *life) boundary(begins bool, objects []any) {
	if begins {
		l.tried = 0
	}
	label := ""
	// Within a round a map may hold the tokens of several grants, and cannot be compared.
	if m := remembered(objects); m.ok && (begins || !m.sorted) {
		first, texts := l.w.Tokens(), false // that it may come to know
		if strings.Contains(strings.ReplaceAll(remembered(objects[1:]).text, `""`, ""), `"`) {
			first, texts = 0, true // a text may be made of a token
		}
		label = fmt.Sprintf("%d %t %d %d %v|%s", first, texts, l.w.Tokens(), l.tried, l.numbers, m.text)
	}
	l.w.Boundary(label)
}

// entryKind is the kind of operation that shows that a scenario tested something.
func entryKind(s scenarios.Scenario) history.Kind {
	switch {
	case s.Uses(variant.Sale):
		return history.Buy
	case s.Uses(variant.Queue):
		return history.Pop
	case s.Uses(variant.IDs):
		return history.NextID
	}
	return history.Acquire
}

// tally counts such entries, and purchases.
func (x *search) tally(e Event) (entered, sold uint8) {
	if e.End && e.Op.Outcome == history.OK {
		return flag(e.Op.Kind == x.entry), flag(e.Op.Kind == history.Buy)
	}
	return 0, 0
}

// alone runs the code of one client on the servers without any other: commands are executed in
// order, and a wait ends at the next moment at which something changes, or after every. It returns
// the events and the state of the servers.
func (s *servers) alone(o coro.Options, from uint32, now, patience, most time.Duration, p coro.Program) (events []Event, to uint32, err error) {
	x := coro.Start(p, o)
	defer x.Close()
	for end := now + patience; len(x.Pending()) > 0; {
		i := first(x.Pending())
		r := x.Pending()[i]
		obs := coro.Observation{Now: now}
		switch r.Kind {
		case coro.Command:
			c := call{client: nobody, node: r.Node, commands: r.Commands, tx: r.Tx, conn: r.Conn}
			e := s.execute(callAt{from, s.call(c), now})
			if e.unknown {
				return nil, from, s.unknown()
			}
			from = e.servers
			obs.Reply = global(s.answers.get(e.answer).Reply, nobody)
		case coro.Sleep, coro.Pause:
			if r.Label == "start" {
				break
			}
			if now >= end {
				return nil, from, errImpatient
			}
			last := end
			if r.Kind == coro.Pause {
				last = min(end, now+most)
			}
			by := s.until(from, now, r.Until, last)
			now += by
			from = s.pass(tick{from, by})
			obs.Now = now
		}
		x.Resume(i, obs)
	}
	for _, e := range x.Events() {
		events = append(events, e.(Event))
	}
	return events, from, x.Err()
}

// first returns the thread that can run first.
func first(rs []coro.Request) (best int) {
	for i, r := range rs {
		switch {
		case r.Kind != coro.Sleep && r.Kind != coro.Pause:
			return i
		case r.Kind == coro.Pause || (rs[best].Kind == coro.Sleep && r.Until < rs[best].Until):
			best = i
		}
	}
	return best
}

// errImpatient ends a client that has run out of time.
var errImpatient = errors.New("it waits for too long")

// nobody is the client number of commands that no client of the search sends.
const nobody = 8

// until returns when a wait ends: at the next expiry, the end of a sleep, or the end of the run.
func (s *servers) until(servers uint32, now, wake, end time.Duration) time.Duration {
	by := end - now
	if due := s.next.of(serversID(servers)); len(due.in) > 0 {
		by = min(by, due.in[0])
	}
	if wake > now {
		by = min(by, wake-now)
	}
	return max(by, tickUnit)
}

// apart returns the options of a client that is no part of the search.
func apart(masters int, scripts *coro.Scripts, naming *namer) coro.Options {
	return coro.Options{Masters: masters, Epoch: Epoch, Scripts: scripts, Token: naming.outsider, Number: naming.bookOfNobody().Number(names.ClientNumber)}
}

// administrator runs f as the administrative client of c.
func administrator(c scenarios.Config, book *names.Book, f func(ctx context.Context, client *scenarios.Client) error, failed *error) coro.Program {
	return func(ctx context.Context, w *coro.World) {
		l := &life{w: w, numbers: map[string]int64{}, book: book}
		*failed = f(ctx, scenarios.Alone(c, l.world(nobody)))
	}
}

// probed is what came of a new client's tries for the lock.
type probed struct {
	got    bool
	waited bool
	why    error // it does not have it, other than that it is held
}

// probe is a new client that tries to obtain the scenario's lock for so long.
func probe(c scenarios.Config, wait time.Duration, p *probed) coro.Program {
	return func(ctx context.Context, w *coro.World) {
		o := lockOptions(c)
		o.Wait, o.MaxTries = wait, 0
		env := w.Env()
		locker := c.Lock.New(env)
		began := env.Clock.Now()
		for end := began.Add(wait); ; {
			_, err := locker.Acquire(ctx, lockName(c), o)
			p.waited = env.Clock.Now().After(began)
			if p.got = err == nil; p.got {
				return
			}
			if !errors.Is(err, lockimpl.ErrHeld) {
				p.why = err
				return
			}
			if env.Clock.Now().After(end) {
				return
			}
			w.Pause("again") // a lock may try once only, whatever it is told
		}
	}
}
