package locktest

import (
	"testing"

	"oversell/explore"
	"oversell/explore/bubbletest"
	"oversell/lockimpl"
	"oversell/lockimpl/locksearch"
	"oversell/reports"
	"oversell/server"
	"oversell/stockimpl"
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
	report(t, func() (string, error) { return locksearch.Lock(t.Context(), v, b) })
}

// ExploreSale is Explore for clients that buy the last piece under the lock: it looks
// for broken promises of the sale, too: with a stock of one piece, and then with two pieces
// and buyers who send an order again that had no answer. Zero bounds are those of Explore.
func ExploreSale(t *testing.T, lock lockimpl.Variant, sale stockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) { return locksearch.Sale(t.Context(), lock, sale, b) })
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
		return locksearch.InBubbles(t.Context(), v, b, func(c explore.Config) *bubbletest.Clients { return bubblesOf(t, c) })
	})
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

// Replay drives the schedule of a counterexample that oversell explore found against
// redis-server children of its own, command by command, and fails as long as the
// schedule breaks its promise there. The trace is what explore wrote to --out or, by
// --json, to its standard output; of several searches the first counterexample counts.
// Tests that call this are written by oversell explore --emit-test.
//
// The test passes when the code goes another way, and when it goes the same way and
// nothing is broken: that schedule is no bug any more. Whether another one is, only a new
// search tells. It is skipped where no redis-server is installed, and fails there if
// OVERSELL_REQUIRE_ALL=1.
func Replay(t *testing.T, trace []byte) {
	t.Helper()
	report(t, func() (string, error) {
		return locksearch.Replay(t.Context(), trace, func(topology string) *server.Target { return Process(topology)(t) })
	})
}

// report says of a test what came of a search.
func report(t *testing.T, search func() (string, error)) {
	t.Helper()
	text, err := search()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text)
}
