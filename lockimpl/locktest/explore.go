package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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

// Explore tries every interleaving of clients that take the lock, hold it and give it
// back, every expiry, and every crash and lost or late message, within bounds: see
// package [explore]. The test fails with the shortest schedule that breaks a promise of
// the lock, and fails as inconclusive when the search says nothing. Otherwise the test's
// log says what was searched.
//
// Zero bounds are 2 clients, 2 tries each, 2 moves of the clock while somebody could run, 1 stall,
// 1 crash, 1 lost and 1 late message, and 30 s; a bound that is negative is 0. Depth and MemoryMB
// stay as they are. Each try is one attempt, the lease is 1.5 s, or 1 s for a lock that takes whole
// seconds only, and the section lasts for three quarters of it, so the lock is extended once, unless
// it needs several masters.
//
// The lock must keep to its variant.Env: commands, clock, tokens and goroutines. For
// one that does not, there is [ExploreBubble]. One with a Redis client of its own, which
// connects to Env.Addr, cannot be stepped by either, and the test fails as inconclusive.
func Explore(t *testing.T, v lockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) {
		if err := steppable(t.Context(), v); err != nil {
			return "", err
		}
		return search(t.Context(), mutex(v, b))
	})
}

// ExploreSale is Explore for clients that buy the last piece under the lock: it looks
// for broken promises of the sale, too: with a stock of one piece, and then with two pieces
// and buyers who send an order again that had no answer. Zero bounds are those of Explore.
func ExploreSale(t *testing.T, lock lockimpl.Variant, sale stockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) {
		if err := steppable(t.Context(), lock); err != nil {
			return "", err
		}
		c := seckill(lock, sale, b)
		first, err := search(t.Context(), c)
		if err != nil || c.Bounds.Resends > 0 {
			return first, err
		}
		c.Run.Stock, c.Bounds.Resends = 2, 1
		second, err := search(t.Context(), c)
		return first + "\n" + second, err
	})
}

// ExploreBubble is Explore for a lock that starts goroutines and tells the time by
// itself, like those of other people's libraries: clients run in bubbles of
// testing/synctest. Package [bubbletest] says what must hold then, and what is not
// covered. Progress is not looked for, so a bound of crashes says nothing. One run of a
// client's code takes some tenths of a millisecond, and several times that under the
// race detector.
func ExploreBubble(t *testing.T, v lockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) {
		if err := steppable(t.Context(), v); err != nil {
			return "", err
		}
		return searchBubbles(t, mutex(v, b))
	})
}

func report(t *testing.T, search func() (string, error)) {
	t.Helper()
	text, err := search()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text)
}

func mutex(v lockimpl.Variant, b reports.Bounds) explore.Config {
	s, _ := scenarios.Find("mutex")
	c := explore.Config{Run: scenarios.Config{Scenario: s, Lock: v}, Bounds: complete(b)}
	c.Run.TTL = explore.DefaultTTL(c.Run)
	if v.Needs.Masters <= 1 { // on several it would be out of reach
		c.Run.Hold = c.Run.TTL * 3 / 4
	}
	return c
}

func seckill(lock lockimpl.Variant, sale stockimpl.Variant, b reports.Bounds) explore.Config {
	s, _ := scenarios.Find("seckill")
	return explore.Config{Run: scenarios.Config{Scenario: s, Lock: lock, Sale: sale}, Bounds: complete(b)}
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

// errInconclusive is a search that says nothing.
var errInconclusive = errors.New("the search is inconclusive")

// search returns in words what was proved.
func search(ctx context.Context, c explore.Config) (string, error) {
	r, err := watched(ctx, c)
	switch {
	case err == nil || errors.Is(err, explore.ErrUsage) || errors.Is(err, errMutex):
	case errors.Is(err, explore.ErrNondeterministic):
		err = fmt.Errorf("%w\nthe likely cause is state that clients share, like a map of tokens in a variable of the package, by which one depends on what others did, or did in another schedule: each Locker that New returns must have its own. Else, %s", err, steppedOtherwise)
	default:
		err = fmt.Errorf("%w\na lock that waits for something else than commands and its variant.Env, like a mutex or a channel, cannot be stepped; %s", err, steppedOtherwise)
	}
	return judged(r, err)
}

// steppedOtherwise is what else can be done with a lock that does not keep to its Env.
const steppedOtherwise = "a lock that starts goroutines, reads the time or draws random numbers past its variant.Env can be searched in bubbles: see locktest.ExploreBubble"

// searchBubbles does it in bubbles.
func searchBubbles(t *testing.T, c explore.Config) (string, error) {
	if err := c.Complete(); err != nil {
		return "", err
	}
	// Whether the lock can still be taken in the end is tried outside of bubbles.
	c.Look = slices.DeleteFunc(c.Look, func(p history.Promise) bool { return p.Of == variant.Lock && p.Property == variant.Progress })
	bubbles := bubblesOf(t, c)
	c.Start = bubbles.Start
	r, err := explore.Run(t.Context(), c)
	text, err := judged(r, err)
	if err != nil {
		return text, err
	}
	return text + "\n" + bubbles.Effort(), nil
}

// judged tells what a search came to.
func judged(r reports.Exploration, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("search: %w", err)
	}
	var b strings.Builder
	if err := (text.Terminal{W: &b}).Exploration(r); err != nil {
		return "", err
	}
	switch r.Verdict {
	case reports.Pass:
		return b.String(), nil
	case reports.Violated:
		return "", fmt.Errorf("%w\n%s", errBroken, &b)
	}
	return "", fmt.Errorf("%w%s\n%s", errInconclusive, advice(r), &b)
}

// advice says why a search came to no end, and which bound to lower first.
func advice(r reports.Exploration) string {
	var b strings.Builder
	if i := slices.IndexFunc(r.NotChecked, func(s string) bool { return strings.Contains(s, "how names are spelled") }); i >= 0 {
		b.WriteString(": the client depends on how tokens are spelled, like one that hashes them or cuts them, so states that differ in their tokens only are different ones, and there are too many")
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
		fmt.Fprintf(&b, "\nThere was not enough time for all schedules. In reports.Bounds, set %s to -1, which is none, and if that is not enough the next of %s, one after the other; search for each fault alone then. Or give it more time: TimeMS", lower[0], strings.Join(lower[1:], ", "))
	case len(lower) == 1:
		fmt.Fprintf(&b, "\nThere was not enough time for all schedules. In reports.Bounds, set %s to -1, which is none, or give it more time: TimeMS", lower[0])
	default:
		b.WriteString("\nThere was not enough time for all schedules. In reports.Bounds, lower Tries to 1, or give it more time: TimeMS")
	}
	return b.String()
}

// Bubbles makes a [explore.Config.Start] that runs c's clients in bubbles of
// testing/synctest, with t as the bubbles' test, for searches that ExploreBubble does
// not make:
//
//	c := explore.Config{Run: scenarios.Config{Scenario: mutex, Lock: mine, MaxTries: 3}, Bounds: bounds}
//	c.Start = locktest.Bubbles(t, c)
//	r, err := explore.Run(t.Context(), c)
//
// It panics if c cannot be searched. Of a lock that promises progress c.Look must leave
// that out: a search tries it outside of bubbles.
func Bubbles(t *testing.T, c explore.Config) func(explore.Who) explore.Execution {
	if err := c.Complete(); err != nil {
		panic(err)
	}
	return bubblesOf(t, c).Start
}

func bubblesOf(t *testing.T, c explore.Config) *bubbletest.Clients {
	return bubbletest.New(t, c.Run, c.Bounds.Tries, c.Masters)
}
