package clients

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// Program returns the code of a client in a search, in canonical names: the steps of the scenario.
func Program(c scenarios.Config, index int, b reports.Bounds) coro.Program {
	return ProgramOf(c, index, b, names.Scheme{}.Dictionary(0), nil, nil)
}

// ProgramOf is Program with the numbers of a book. It calls stopped, unless it is nil, when b.Waits ends a client's
// waiting, and failed, unless it is nil, with the errors of its calls.
func ProgramOf(c scenarios.Config, index int, b reports.Bounds, book *names.Dictionary, stopped func(), failed func(history.Op, error)) coro.Program {
	return func(ctx context.Context, w *coro.Runtime) {
		l := &life{w: w, resends: b.Resends, waits: b.Waits, stopped: stopped, failed: failed, numbers: map[string]int64{}, book: book}
		scenarios.Alone(c, l.world(index)).Live(ctx, b.Tries)
	}
}

// life is the state of one client's execution outside of its own objects.
type life struct {
	w       *coro.Runtime
	tried   int // acquisitions begun in this round
	resends int // how often an order is sent again in a round
	waits   int // within one acquisition; 0: no bound
	waited  int
	stopped func()
	failed  func(history.Op, error)
	numbers map[string]int64
	book    *names.Dictionary
}

func (l *life) world(index int) scenarios.ClientEnv {
	env := l.w.Env()
	if wait := env.Wait; l.waits > 0 {
		env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
			if l.waited == l.waits {
				if l.stopped != nil {
					l.stopped()
				}
				return variant.ErrStopped
			}
			l.waited++
			return wait(ctx, key, atMost)
		}
	}
	return scenarios.ClientEnv{
		Env: env, Index: index, Epoch: servers.Epoch,
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
				l.waited = 0
			}
			l.w.Emit(rules.Event{Op: InCanonicalNumbers(op, l.book)})
		},
		Ended: func(op history.Op, err error) {
			if err != nil && l.failed != nil {
				l.failed(op, err)
			}
			l.w.Emit(rules.Event{End: true, Op: InCanonicalNumbers(op, l.book)})
		},
	}
}

// InCanonicalNumbers returns an operation whose numbers, which are concrete if the naming of the book is, are
// canonical.
func InCanonicalNumbers(op history.Op, book *names.Dictionary) history.Op {
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
		first, texts := l.w.Tokens(), false // that it may learn
		if strings.Contains(strings.ReplaceAll(remembered(objects[1:]).text, `""`, ""), `"`) {
			first, texts = 0, true // a text may be derived from a token
		}
		label = fmt.Sprintf("%d %t %d %d %v|%s", first, texts, l.w.Tokens(), l.tried, l.numbers, m.text)
	}
	l.w.Boundary(label)
}

// Administrator runs f as the administrative client of c.
func Administrator(c scenarios.Config, book *names.Dictionary, f func(ctx context.Context, client *scenarios.Client) error, failed *error) coro.Program {
	return func(ctx context.Context, w *coro.Runtime) {
		l := &life{w: w, numbers: map[string]int64{}, book: book}
		*failed = f(ctx, scenarios.Alone(c, l.world(names.Nobody)))
	}
}

// RoleOf returns the role of a client in a scenario: clients of one role run the same code. In a queue the first client
// produces, and the others consume. Roles never decrease from one client to the next: the canonical order of clients is
// by role.
func RoleOf(c scenarios.Config, index int) uint8 {
	if c.Scenario.Uses(variant.Queue) && index > 0 {
		return 1
	}
	return 0
}

// LockName returns the name of the lock that the clients compete for.
func LockName(c scenarios.Config) string {
	if c.Scenario.Uses(variant.Queue) {
		return "Queue:orders"
	}
	return "order"
}

// LockOptions returns how the clients ask for it.
func LockOptions(c scenarios.Config) lockimpl.Options {
	return lockimpl.Options{TTL: c.TTL, Wait: c.Wait, RetryEvery: c.Retry, MaxTries: c.MaxTries}
}
