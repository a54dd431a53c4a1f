// Package locksearch searches a lock, or a sale under a lock, for a conformance suite: it
// chooses the bounds and the configuration of package explore, finds out first whether the lock can be stepped, ends a
// search that makes no progress, and describes the result and what to do about it. It also replays counterexamples.
package locksearch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/explore"
	"oversell/explore/bubbletest"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/reports/text"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// Lock tries every interleaving of clients that take a lock, hold it and release it, and describes what was proved.
// The error says which promise was broken, with a schedule that breaks it, or why the search is
// inconclusive.
func Lock(ctx context.Context, v lockimpl.Variant, b reports.Bounds) (string, error) {
	c := mutex(v, b)
	if c.Run.Hold > 0 {
		text, err := search(ctx, c)
		return text, because(ctx, v, err)
	}
	began, limit := time.Now(), c.Bounds.TimeMS
	c.Bounds.TimeMS = limit * 4 / 5
	text, err := search(ctx, c)
	if err == nil || errors.Is(err, errInconclusive) {
		var more string
		c.Bounds.TimeMS = max(limit-reports.InMS(time.Since(began)), limit/6)
		if more, err = extended(ctx, c, err); err == nil {
			text += "\n" + more
		}
	}
	return text, because(ctx, v, err)
}

// extended searches, without faults, a lock that was searched in sections without extensions. If it finds nothing, it returns
// the error of that search. That the lock holds with extensions, too, need not be proved.
func extended(ctx context.Context, c explore.Config, before error) (string, error) {
	c.Run.Hold = c.Run.TTL * 3 / 4
	b := &c.Bounds
	b.Tries, b.Crashes, b.Lost, b.Late, b.Stalls = 1, 0, 0, 0, 0
	text, err := search(ctx, c)
	switch {
	case err != nil && !errors.Is(err, errInconclusive):
		return "", err
	case before != nil:
		return "", before
	case err != nil:
		return fmt.Sprintf("Not proved: sections in which the lock is extended. %v", err), nil
	}
	return text, nil
}

// Sale is Lock for clients that buy the last piece under the lock. If the sale promises once-per-order, and unless b says how
// often an order is sent again, it also searches with two pieces and buyers that repeat an order without an answer.
func Sale(ctx context.Context, lock lockimpl.Variant, sale stockimpl.Variant, b reports.Bounds) (string, error) {
	c := seckill(lock, sale, b)
	first, err := search(ctx, c)
	if err != nil || c.Bounds.Resends > 0 {
		return first, because(ctx, lock, err)
	}
	if !slices.Contains(sale.Promises, variant.OncePerOrder) {
		return first + "\nOrders were not sent again: the sale does not promise once-per-order.\n", nil
	}
	c.Run.Stock, c.Bounds.Resends = 2, 1
	second, err := search(ctx, c)
	return first + "\n" + second, err
}

// Bubbles makes the clients of a complete configuration, which run in bubbles of a test.
type Bubbles func(explore.Config) *bubbletest.Clients

// InBubbles is Lock with clients in bubbles. It does not look for progress.
func InBubbles(ctx context.Context, v lockimpl.Variant, b reports.Bounds, bubbles Bubbles) (string, error) {
	text, err := searchBubbles(ctx, mutex(v, b), bubbles)
	return text, because(ctx, v, err)
}

// because returns the error of a search of v, or the reason for it if the lock cannot be stepped. It looks for the
// reason only after the search, so that the search sees the lock's first execution in this process.
func because(ctx context.Context, v lockimpl.Variant, err error) error {
	if err == nil || errors.Is(err, errBroken) {
		return err
	}
	if why := steppable(ctx, v); why != nil {
		return why
	}
	return err
}

// mutex returns a search of a lock.
func mutex(v lockimpl.Variant, b reports.Bounds) explore.Config {
	s, _ := scenarios.Find("mutex")
	c := explore.Config{Run: scenarios.Config{Scenario: s, Lock: v}, Bounds: complete(b)}
	c.Run.TTL = explore.DefaultTTL(c.Run)
	if v.Needs.Masters <= 1 { // with several masters it would take too long
		c.Run.Hold = c.Run.TTL * 3 / 4
	}
	onceMore(&c)
	return c
}

// onceMore has a lock that looks again until its time to wait is over do so a few times: each look more makes a search
// many times longer.
func onceMore(c *explore.Config) {
	c.Run.Wait = (c.Run.TTL * 2 / 3).Truncate(time.Millisecond)
	c.Run.Retry = c.Run.Wait * 2 / 5
}

// seckill is a search of a sale of one piece under a lock.
func seckill(lock lockimpl.Variant, sale stockimpl.Variant, b reports.Bounds) explore.Config {
	s, _ := scenarios.Find("seckill")
	c := explore.Config{Run: scenarios.Config{Scenario: s, Lock: lock, Sale: sale}, Bounds: complete(b)}
	c.Run.TTL = explore.DefaultTTL(c.Run)
	onceMore(&c)
	return c
}

// complete fills in the bounds that are zero.
func complete(b reports.Bounds) reports.Bounds {
	for _, of := range []struct {
		bound   *int
		without int
	}{{&b.Clients, 2}, {&b.Tries, 2}, {&b.Advances, 2}, {&b.Crashes, 1}, {&b.Stalls, 1}, {&b.Lost, 1}, {&b.Late, 1}} {
		if *of.bound == 0 {
			*of.bound = of.without
		}
		*of.bound = max(*of.bound, 0)
	}
	if b.TimeMS == 0 {
		b.TimeMS = 30_000
	}
	return b
}

// errBroken is a promise that was broken.
var errBroken = errors.New("a promise is broken")

// errInconclusive is a search that decided nothing.
var errInconclusive = errors.New("the search is inconclusive")

// search describes what was proved.
func search(ctx context.Context, c explore.Config) (string, error) {
	return undeclared(c, func(c explore.Config) (reports.Exploration, error) {
		r, err := watched(ctx, c)
		switch {
		case err == nil || errors.Is(err, explore.ErrUsage) || errors.Is(err, errMutex):
		case errors.Is(err, explore.ErrNondeterministic):
			err = fmt.Errorf("%w\nthe likely cause is state that clients share, like a map of tokens in a package variable, so that one client depends on others, or on another schedule: each Locker that New returns must have its own. Otherwise, %s", err, steppedOtherwise)
		default:
			err = fmt.Errorf("%w\na lock that waits for something other than commands and its variant.Env, like a mutex or a channel, cannot be stepped; %s", err, steppedOtherwise)
		}
		return r, err
	})
}

// undeclared searches for broken promises that no declared flaw explains, and describes the result. If it finds a promise that
// is broken as a flaw declares, it adds that to the description, and searches for breaks of the other promises.
func undeclared(c explore.Config, run func(explore.Config) (reports.Exploration, error)) (string, error) {
	if err := c.Complete(); err != nil {
		return judged(reports.Exploration{}, err)
	}
	declared := ""
	for {
		r, err := run(c)
		cx := r.Counterexample
		if err != nil || r.Verdict != reports.Violated || r.Expected != reports.Violated || cx == nil || len(r.ExpectedWhy) == 0 {
			text, err := judged(r, err)
			return declared + text, err
		}
		text, err := described(r)
		if err != nil {
			return "", err
		}
		declared += text + fmt.Sprintf("A flaw is declared, so other schedules that break %s were not sought.\n", cx.Property)
		c.Look = slices.DeleteFunc(slices.Clone(c.Look), func(p history.Promise) bool { return p.Of == cx.Of && p.Property == cx.Property })
		if len(c.Look) == 0 {
			return declared, nil
		}
	}
}

// steppedOtherwise is the advice for a lock that does not keep to its Env.
const steppedOtherwise = "a lock that starts goroutines, reads the time or draws random numbers outside of its variant.Env can be searched in bubbles: see locktest.ExploreBubble"

// searchBubbles searches in bubbles.
func searchBubbles(ctx context.Context, c explore.Config, of Bubbles) (string, error) {
	if err := c.Complete(); err != nil {
		return "", err
	}
	// Progress is tried outside of bubbles.
	c.Look = slices.DeleteFunc(c.Look, func(p history.Promise) bool { return p.Of == variant.Lock && p.Property == variant.Progress })
	bubbles := of(c)
	c.Start = bubbles.Start
	text, err := undeclared(c, func(c explore.Config) (reports.Exploration, error) { return explore.Run(ctx, c) })
	if err != nil {
		return text, err
	}
	return text + "\n" + bubbles.Effort(), nil
}

// judged describes the result of a search.
func judged(r reports.Exploration, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("search: %w", err)
	}
	what, err := described(r)
	if err != nil {
		return "", err
	}
	switch r.Verdict {
	case reports.Pass:
		return what, nil
	case reports.Violated:
		return "", fmt.Errorf("%w\n%s", errBroken, what)
	}
	return "", fmt.Errorf("%w%s\n%s", errInconclusive, advice(r), what)
}

// described returns the report of a search, as text.
func described(r reports.Exploration) (string, error) {
	var b strings.Builder
	err := (text.Terminal{W: &b}).Exploration(r)
	return b.String(), err
}

// advice says why a search did not end, and which bound to lower first.
func advice(r reports.Exploration) string {
	var b strings.Builder
	if i := slices.IndexFunc(r.NotChecked, func(s string) bool {
		return strings.Contains(s, "how names are spelled") && !strings.HasPrefix(s, "histories of a client")
	}); i >= 0 {
		b.WriteString(": the client depends on how tokens are spelled, like one that hashes or truncates them, so states that differ only in their tokens are different, and there are too many")
	}
	if r.Stats.Waiting == 0 && !strings.Contains(r.Why, "was ended") {
		return b.String()
	}
	type bound struct {
		name string
		is   int
		met  int64
	}
	faults := []bound{{"Lost", r.Bounds.Lost, r.Stats.Lost}, {"Crashes", r.Bounds.Crashes, r.Stats.Crashes}, {"Late", r.Bounds.Late, r.Stats.Late}}
	slices.SortStableFunc(faults, func(x, y bound) int { return cmp.Compare(y.met, x.met) })
	var lower []string
	for _, f := range append(faults, bound{"Stalls", r.Bounds.Stalls, 0}, bound{"Advances", r.Bounds.Advances, 0}) {
		if f.is > 0 {
			lower = append(lower, f.name)
		}
	}
	switch {
	case len(lower) > 1:
		fmt.Fprintf(&b, "\nThere was not enough time for all schedules. In reports.Bounds, set %s to -1, which means none; if that is not enough, also the next of %s, one after the other; then search for each fault alone. Or give it more time: TimeMS", lower[0], strings.Join(lower[1:], ", "))
	case len(lower) == 1:
		fmt.Fprintf(&b, "\nThere was not enough time for all schedules. In reports.Bounds, set %s to -1, which is none, or give it more time: TimeMS", lower[0])
	default:
		b.WriteString("\nThere was not enough time for all schedules. In reports.Bounds, lower Tries to 1, or give it more time: TimeMS")
	}
	return b.String()
}
