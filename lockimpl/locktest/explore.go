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

// Explore tries every interleaving of clients that acquire the lock, hold it and release it, every expiry, and every
// crash and lost or late message, within bounds: see package [explore]. The test fails with a schedule that breaks a
// promise of the lock, the shortest one unless a limit ended the search, and fails as inconclusive when the search
// decides nothing. Otherwise the test's log says what was searched. A promise that is broken as a flaw of the variant
// declares does not fail the test: the log has the schedule, and the other promises are searched.
//
// Zero bounds mean 2 clients, 2 tries each, 2 advances, 1 stall, 1 crash, 1 lost and 1 late message, and 30 s; a
// negative bound means 0. Depth and MemoryMB are not changed. Each try is one attempt, the lease is 1.5 s, or 1 s for a
// lock that takes whole seconds only, and the section lasts for three quarters of it, so the lock is extended once.
// A lock on several masters is first searched without extensions, in four fifths of the time, and then with extensions,
// with one try of each client and without crashes, lost or late messages and stalls. If only the first search ends, the
// test passes, and its log says that the second one did not end.
//
// The lock must keep to its variant.Env: commands, clock, tokens and goroutines. For a lock that does not, use
// [ExploreBubble]. Neither can step a lock with a Redis client of its own that connects to Env.Addr; the test then
// fails as inconclusive.
func Explore(t *testing.T, v lockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) { return locksearch.Lock(t.Context(), v, b) })
}

// ExploreSale is Explore for clients that buy the last piece under the lock. It also looks for broken promises of the
// sale: with a stock of one piece, and then, if it promises once-per-order, with two pieces and buyers that repeat an order
// without an answer. Zero bounds are those of Explore.
func ExploreSale(t *testing.T, lock lockimpl.Variant, sale stockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) { return locksearch.Sale(t.Context(), lock, sale, b) })
}

// ExploreBubble is Explore for a lock that starts goroutines and reads the time by itself, as the locks of libraries
// do: clients run in bubbles of testing/synctest. Package [bubbletest] lists the requirements and the limits. Progress
// is not judged, so a bound of crashes has no effect. One run of a client's code takes some tenths of a millisecond,
// and several times that under the race detector.
func ExploreBubble(t *testing.T, v lockimpl.Variant, b reports.Bounds) {
	t.Helper()
	report(t, func() (string, error) {
		return locksearch.InBubbles(t.Context(), v, b, func(c explore.Config) *bubbletest.Clients { return bubblesOf(t, c) })
	})
}

// Bubbles makes an [explore.Config.Start] that runs c's clients in bubbles of testing/synctest, with t as the bubbles'
// test, for searches that ExploreBubble does not make:
//
//	c := explore.Config{Run: scenarios.Config{Scenario: mutex, Lock: mine, MaxTries: 3}, Bounds: bounds}
//	c.Start = locktest.Bubbles(t, c)
//	r, err := explore.Run(t.Context(), c)
//
// It panics if c cannot be searched. If the lock promises progress, c.Look must list the other promises: a search
// judges progress by running clients outside of bubbles.
func Bubbles(t *testing.T, c explore.Config) func(explore.Who) explore.Execution {
	if err := c.Complete(); err != nil {
		panic(err)
	}
	return bubblesOf(t, c).Start
}

func bubblesOf(t *testing.T, c explore.Config) *bubbletest.Clients {
	return bubbletest.New(t, c.Run, c.Bounds.Tries, c.Masters)
}

// Replay drives the schedule of a counterexample that oversell explore found against redis-server children of its own,
// command by command, and fails as long as the schedule breaks its promise there. The trace is what explore wrote to
// --out or, by --json, to its standard output; of several searches the first counterexample counts. Tests that call
// this are written by oversell explore --emit-test.
//
// The test passes if the code no longer follows the schedule, or follows it and breaks no promise: the schedule no longer
// shows a bug. Only a new search finds other bugs. The test is skipped where no redis-server is installed,
// and fails there if OVERSELL_REQUIRE_ALL=1.
func Replay(t *testing.T, trace []byte) {
	t.Helper()
	report(t, func() (string, error) {
		return locksearch.Replay(t.Context(), trace, func(topology string) *server.Target { return Process(topology)(t) })
	})
}

// report reports the result of a search to a test.
func report(t *testing.T, search func() (string, error)) {
	t.Helper()
	text, err := search()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text)
}
