package bubbletest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"oversell/clock"
	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/scenarios"
	"oversell/variant"
)

// bubble is one run of a client's code.
type bubble struct {
	code *bubbles
	book *names.Dictionary
	stir chan struct{} // of the bubble: something visible happened
	// slept is how often goroutines have slept since the client ended.
	slept int

	mu       sync.Mutex // guards all below
	stands   []*stand
	events   []rules.Event
	watching coro.Watching
	ended    bool // the client's own goroutine has
	closed   bool
	late     int // requests after that
	err      error
}

// stand is a goroutine that waits for the schedule.
type stand struct {
	request coro.Request
	// numbered says that request.Thread is set.
	numbered bool
	goOn     chan answer
}

func newBubble(c *bubbles, book *names.Dictionary, slept int) *bubble {
	return &bubble{code: c, book: book, slept: slept}
}

// run follows the path, which is listed from its end, to the last step, unless that is the start already.
func (b *bubble) run(path []*place, by step, further bool, a *arrival) {
	defer func() {
		if r := recover(); r != nil && !b.closed {
			a.err = fmt.Errorf("a client's bubble: %v", r)
		} // otherwise goroutines were left waiting for each other: only a leak
	}()
	synctest.Test(b.code.t, func(*testing.T) {
		time.Sleep(time.Until(servers.Epoch)) // so that servers and client agree on the date
		b.stir = make(chan struct{}, 1)
		ctx, end := context.WithCancel(context.Background())
		go b.live(ctx)
		synctest.Wait()
		for i := len(path) - 1; i >= 0 && a.err == nil; i-- {
			if path[i].from != nil {
				b.take(path[i].by)
			}
			a.err = path[i].same(b.book, b.standing(), b.came())
		}
		if a.err == nil {
			if further {
				b.take(by)
			}
			b.describe(by, a)
		}
		b.close()
		end()
	})
}

// take goes a step.
func (b *bubble) take(by step) {
	if d := time.Until(servers.Epoch.Add(by.at)); d > 0 {
		time.Sleep(d)
		synctest.Wait()
	}
	if by.thread == asleep {
		return
	}
	b.mu.Lock()
	i := slices.IndexFunc(b.stands, func(s *stand) bool { return s.numbered && s.request.Thread == by.thread })
	s := b.stands[i]
	b.stands = slices.Delete(b.stands, i, i+1)
	by.answer.reply = b.book.Reply(by.answer.reply)
	b.mu.Unlock()
	s.goOn <- by.answer
	synctest.Wait()
}

// describe notes where the client stands now. Nothing runs after that.
func (b *bubble) describe(by step, a *arrival) {
	a.now = max(by.at, time.Since(servers.Epoch))
	a.ended = b.over()
	a.stands, a.events = b.standing(), b.came()
	a.pending = a.stands
	switch wakes, any := b.wakes(); {
	case b.failed() != nil:
		a.err = b.failed()
	case any && (!b.over() || b.slept < mostSleeps):
		a.pending = append(slices.Clip(a.stands), coro.Request{Kind: coro.Sleep, Thread: b.free(), Until: wakes})
	case !any && len(a.stands) == 0 && !b.over():
		a.err = errors.New("the client waits for something that is neither a command nor time")
	}
	if a.err == nil && len(a.pending) > most {
		a.err = fmt.Errorf("the client has %d goroutines under way at once; a search takes %d", len(a.pending), most)
	}
}

// most is how many threads a search can distinguish.
const most = 16

// mostSleeps is how many sleeps are followed after a client has ended: one that never stops a ticker has no last one.
const mostSleeps = 2

// standing returns the requests for which goroutines wait. New ones since the last call are sorted by content, because
// the order of their arrival depends on the scheduler.
func (b *bubble) standing() (rs []coro.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := slices.DeleteFunc(slices.Clone(b.stands), func(s *stand) bool { return s.numbered })
	slices.SortStableFunc(fresh, func(x, y *stand) int { return b.compare(&x.request, &y.request) })
	for _, s := range fresh {
		s.request.Thread, s.numbered = b.freeLocked(), true
	}
	slices.SortFunc(b.stands, func(x, y *stand) int { return cmp.Compare(x.request.Thread, y.request.Thread) })
	for _, s := range b.stands {
		rs = append(rs, s.request)
	}
	return rs
}

// compare orders requests by canonical names, which are the same in all runs.
func (b *bubble) compare(x, y *coro.Request) int {
	text := func(s, t string) int { return cmp.Compare(b.book.Canonical(s), b.book.Canonical(t)) }
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Label, y.Label),
		slices.CompareFunc(x.Commands, y.Commands, func(c, d []string) int { return slices.CompareFunc(c, d, text) }),
		cmp.Compare(x.Deadline, y.Deadline))
}

func (b *bubble) free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.freeLocked()
}

// freeLocked returns the least number that no goroutine has.
func (b *bubble) freeLocked() (n int) {
	for slices.ContainsFunc(b.stands, func(s *stand) bool { return s.numbered && s.request.Thread == n }) {
		n++
	}
	return n
}

func (b *bubble) came() []rules.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events
}

// longest is how long a sleeping client is watched.
const longest = 10 * time.Minute

// wakes lets time pass until something visible happens by itself.
func (b *bubble) wakes() (at time.Duration, any bool) {
	if b.failed() != nil {
		return 0, false
	}
	select {
	case <-b.stir:
	default:
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-b.stir:
		return time.Since(servers.Epoch), true
	case <-timer.C:
		return 0, false
	}
}

func (b *bubble) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended || b.err != nil
}

func (b *bubble) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// close ends the client: nothing that it does later is visible.
func (b *bubble) close() {
	b.mu.Lock()
	b.closed = true
	left := b.stands
	b.stands = nil
	b.mu.Unlock()
	for _, s := range left {
		s.goOn <- answer{closed: true}
	}
}

// change changes b in a way that is visible from outside.
func (b *bubble) change(f func()) {
	b.mu.Lock()
	f()
	b.mu.Unlock()
	select {
	case b.stir <- struct{}{}:
	default:
	}
}

func (b *bubble) fail(err error) {
	b.change(func() {
		if b.err == nil && !b.closed {
			b.err = err
		}
	})
}

// enough is how often a goroutine of a closed client may send a request before it is ended.
const enough = 100

// stand waits for the schedule.
func (b *bubble) stand(r coro.Request) answer {
	s := &stand{request: r, goOn: make(chan answer, 1)}
	closed, late := false, 0
	b.change(func() {
		if closed = b.closed; closed {
			b.late++
			late = b.late
			return
		}
		b.stands = append(b.stands, s)
	})
	switch {
	case late > enough:
		runtime.Goexit()
	case closed:
		return answer{closed: true}
	}
	return <-s.goOn
}

// crashed is the value with which the client's own goroutine panics when it is closed.
type crashed struct{}

// pause waits for the schedule, and ends the goroutine of a client that was closed.
func (b *bubble) pause(label string) {
	if b.stand(coro.Request{Kind: coro.Pause, Label: label}).closed {
		panic(crashed{})
	}
}

// live runs the client's code.
func (b *bubble) live(ctx context.Context) {
	defer b.change(func() { b.ended = true })
	defer func() {
		if r := recover(); r != nil && r != (crashed{}) {
			b.fail(fmt.Errorf("the client panicked: %v\n%s", r, stack()))
		}
	}()
	b.pause("start")
	beside, end := context.WithCancel(ctx)
	defer end()
	env := b.env(beside)
	tried, numbers := 0, map[string]int64{}
	over := func() bool { return tried >= b.code.tries }
	client := scenarios.Alone(b.code.config, scenarios.ClientEnv{
		Env: env, Index: b.code.who.Index, Epoch: servers.Epoch, Pause: b.pause, Enough: over,
		Number: func(of string) int64 {
			numbers[of]++
			return b.book.Number(numbers[of])
		},
		Began: func(op history.Op) {
			if op.Kind == history.Acquire {
				tried++
			}
			b.change(func() { b.events = append(b.events, rules.Event{Op: clients.InCanonicalNumbers(op, b.book)}) })
		},
		Ended: func(op history.Op, _ error) {
			b.change(func() {
				b.events = append(b.events, rules.Event{End: true, Op: clients.InCanonicalNumbers(op, b.book)})
			})
		},
	})
	for rounds := 0; rounds < b.code.tries && !over(); rounds++ {
		if client.Step(ctx) {
			return
		}
	}
}

// env returns the client's environment: connections that end here, and otherwise the usual one, since the schedule
// controls the time in a bubble.
func (b *bubble) env(beside context.Context) variant.Env {
	e := variant.Env{Clock: clock.Real{}}
	tokens := 0
	e.Token = func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		tokens++
		return b.book.Token(tokens - 1)
	}
	e.Wait = func(ctx context.Context, _ string, _ time.Duration) error {
		if ctx.Err() == nil {
			b.pause("wait")
		}
		return context.Cause(ctx)
	}
	e.Go = func(f func(context.Context)) func(context.Context) error {
		over := make(chan struct{})
		go func() {
			defer close(over)
			defer func() {
				if r := recover(); r != nil && r != (crashed{}) {
					panic(r)
				}
			}()
			f(beside)
		}()
		return variant.Join(over)
	}
	for node := range b.code.masters {
		e.Redis = append(e.Redis, b.connect(node))
	}
	return e
}

// connect makes a client of a server. It sends every command once, and keeps to
// the deadlines of contexts. It needs no closing.
func (b *bubble) connect(node int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Dialer: b.dialer(node), // a name would be looked up
		Protocol: 2, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true, ContextTimeoutEnabled: true,
		ReadTimeout: -1, WriteTimeout: -1, PoolTimeout: time.Hour,
		PoolSize: most, PipelinePoolSize: -1, ConnMaxIdleTime: -1,
		ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// stack returns the stack of the code that panicked.
func stack() string {
	text := make([]byte, 4<<10)
	text = text[:runtime.Stack(text, false)]
	_, after, _ := strings.Cut(string(text), "panic(")
	return after
}
