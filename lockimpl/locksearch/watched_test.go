package locksearch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// clocked is a lock that reads the clock while it holds a mutex that all clients of the process share.
type clocked struct {
	mine
	mu *sync.Mutex
}

func (c clocked) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := c.mine.Acquire(ctx, key, o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.env.Clock.Now().After(l.Until) {
		err = errors.New("too late")
	}
	return l, err
}

// TestMutex checks that a search ends soon, and says why, if a client waits for a mutex that another client holds at a
// point where the search has stopped it.
func TestMutex(t *testing.T) {
	var mu sync.Mutex
	v := lockimpl.Variant{Name: "clocked", Promises: []variant.Property{variant.MutualExclusion}, New: func(env variant.Env) lockimpl.Locker {
		return clocked{mine{env: env}, &mu}
	}}
	start := time.Now()
	_, err := search(t.Context(), mutex(v, reports.Bounds{}))
	if !errors.Is(err, errMutex) || !strings.Contains(err.Error(), "watched_test.go:") {
		t.Errorf("the search said %v; want that a mutex is held, and where", err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v; want an end within the bound", took)
	}
}

// TestSharedState checks that a search that is impossible because clients share state says so.
func TestSharedState(t *testing.T) {
	_, err := search(t.Context(), mutex(entry(t, "pooled-token"), reports.Bounds{}))
	if err == nil || !strings.Contains(err.Error(), "state that clients share") && !errors.Is(err, errBroken) {
		t.Errorf("the search said %v; want that clients share state", err)
	}
}

// TestAdvice checks that a search that did not finish says which bound to lower first.
func TestAdvice(t *testing.T) {
	r := reports.Exploration{
		Verdict: reports.Inconclusive, Why: "the search of all schedules was ended after 24s, its time limit (--time; in Go tests Bounds.TimeMS)",
		Bounds: reports.Bounds{Clients: 2, Tries: 2, Crashes: 1, Lost: 1, Stalls: 1}, Stats: reports.Effort{Crashes: 2, Lost: 1},
	}
	if got, want := advice(r), "set Crashes to -1, which means none; if that is not enough, also the next of Lost, Stalls,"; !strings.Contains(got, want) {
		t.Errorf("the advice is %q; want %q in it", got, want)
	}
	r.NotChecked = []string{"other spellings of names than 6: what the client does depends on how names are spelled: once it"}
	if got, want := advice(r), ": the client depends on how tokens are spelled"; !strings.HasPrefix(got, want) {
		t.Errorf("the advice is %q; want %q first", got, want)
	}
	r.NotChecked = []string{"histories of a client were not merged, so the search takes longer: what the client does depends on how names are spelled: once it"}
	if got := advice(r); strings.HasPrefix(got, ":") {
		t.Errorf("the advice is %q, though only merging histories failed", got)
	}
	r.Why, r.NotChecked = "the search was interrupted", nil
	if got := advice(r); got != "" {
		t.Errorf("the advice is %q where nothing is to be done", got)
	}
}

// TestAtMutex checks that only threads of the given search are found, however deep in it they began.
func TestAtMutex(t *testing.T) {
	waits := func(id, creator int) string {
		return fmt.Sprintf("goroutine %d [sync.Mutex.Lock, 1 minutes]:\nsync.(*Mutex).Lock(...)\n\t/go/mutex.go:1\nmine.(*lock).Acquire(0x1)\n\t/mine/lock.go:%d +0x2\n%s0x1)\n\t/coro/thread.go:3\ncreated by oversell/internal/coro.Start in goroutine %d\n\t/coro/client.go:4", id, id, threadOf, creator)
	}
	other := func(id, creator int) string {
		return fmt.Sprintf("goroutine %d [chan receive]:\nmain.f(...)\n\t/f.go:1\ncreated by sync.(*WaitGroup).Go in goroutine %d\n\t/go/waitgroup.go:1", id, creator)
	}
	all := strings.Join([]string{other(10, 1), other(11, 10), waits(12, 11), waits(13, 10), other(20, 1), other(21, 20), waits(22, 21), waits(30, 29)}, "\n\n")
	for search, want := range map[string]string{
		"goroutine 10": "map[goroutine 12:/mine/lock.go:12 goroutine 13:/mine/lock.go:13]",
		"goroutine 20": "map[goroutine 22:/mine/lock.go:22]",
		"goroutine 40": "map[]",
	} {
		if got := fmt.Sprint(atMutex(all, search)); got != want {
			t.Errorf("of %s these wait: %s; want %s", search, got, want)
		}
	}
}
