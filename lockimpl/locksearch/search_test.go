package locksearch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/explore"
	"oversell/explore/bubbletest"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/stockimpl"
	"oversell/variant"
)

// mine is a lock as a user would write it, with the mistakes that a test plants.
type mine struct {
	env variant.Env
	mistakes
}

type mistakes struct {
	anybody bool // a release deletes whatever is there
	beside  bool // commands are sent by goroutines
	late    bool // the lease counts from the answer
}

const deleteText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

var deleteOwn = redis.NewScript(deleteText)

func (m mine) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: m.env.Token()}
	began := m.env.Clock.Now()
	for tries := 1; ; tries++ {
		l.Until = m.env.Clock.Now().Add(o.TTL)
		ok, err := m.set(ctx, l, o.TTL)
		if m.late {
			l.Until = m.env.Clock.Now().Add(o.TTL)
		}
		if ok || err != nil {
			return l, err
		}
		if tries == o.MaxTries || m.env.Clock.Now().Sub(began) >= o.Wait {
			return l, lockimpl.ErrHeld
		}
		if err := m.env.Clock.Sleep(ctx, o.RetryEvery); err != nil {
			return l, err
		}
	}
}

func (m mine) set(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (ok bool, err error) {
	over := make(chan struct{})
	set := func() {
		ok, err = m.env.Redis[0].SetNX(ctx, lockimpl.Key(l.Key), l.Token, ttl).Result()
		close(over)
	}
	if m.beside {
		go set()
	} else {
		set()
	}
	<-over
	return ok, err
}

func (m mine) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, errors.New("not made for that")
}

func (m mine) Release(ctx context.Context, l lockimpl.Lock) error {
	if m.anybody {
		return m.env.Redis[0].Del(ctx, lockimpl.Key(l.Key)).Err()
	}
	n, err := deleteOwn.Run(ctx, m.env.Redis[0], []string{lockimpl.Key(l.Key)}, l.Token).Int()
	if err == nil && n == 0 {
		err = lockimpl.ErrLost
	}
	return err
}

func mineWith(m mistakes) lockimpl.Variant {
	return lockimpl.Variant{
		Name: "mine", Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
		New: func(env variant.Env) lockimpl.Locker { return mine{env, m} },
	}
}

// bubblesOf returns a function that makes clients in bubbles of the test.
func bubblesOf(t *testing.T) Bubbles {
	return func(c explore.Config) *bubbletest.Clients {
		return bubbletest.New(t, c.Run, c.Bounds.Tries, c.Masters)
	}
}

func TestLock(t *testing.T) {
	if _, err := Lock(t.Context(), mineWith(mistakes{}), reports.Bounds{}); err != nil {
		t.Error(err)
	}
}

func TestInBubbles(t *testing.T) {
	b := reports.Bounds{}
	if os.Getenv("OVERSELL_LONG") == "" {
		b = reports.Bounds{Tries: 1, Late: -1} // without bounds there are 700,000 states
	}
	if _, err := InBubbles(t.Context(), mineWith(mistakes{beside: true}), b, bubblesOf(t)); err != nil {
		t.Error(err)
	}
}

// TestMistakesAreFound checks that both engines find the planted mistakes.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		m      mistakes
		breaks variant.Property
	}{
		{"release of another's lock", mistakes{anybody: true}, variant.OwnerOnlyRelease},
		{"lease from the answer", mistakes{late: true}, variant.MutualExclusion},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := search(t.Context(), mutex(mineWith(c.m), reports.Bounds{}))
			wants(t, err, errBroken, string(c.breaks)+" violated: client")
			c.m.beside = true
			_, err = searchBubbles(t.Context(), mutex(mineWith(c.m), reports.Bounds{}), bubblesOf(t))
			wants(t, err, errBroken, string(c.breaks)+" violated: client")
		})
	}
}

func TestGoroutinesNeedBubbles(t *testing.T) {
	_, err := search(t.Context(), mutex(mineWith(mistakes{beside: true}), reports.Bounds{}))
	wants(t, err, nil, "starts goroutines of its own", "locktest.ExploreBubble")
}

func TestSaleThatOversellsIsFound(t *testing.T) {
	lock, _ := lockimpl.Find("lua-release")
	sale, _ := stockimpl.Find("plain")
	text, err := search(t.Context(), seckill(lock, sale, reports.Bounds{Tries: 1}))
	if want := "A flaw is declared, so other schedules that break no-oversell were not sought"; err != nil || !strings.Contains(text, want) {
		t.Errorf("it says %v, and\n%s\nwant %q", err, text, want)
	}
	sale.Flaws = nil
	_, err = search(t.Context(), seckill(lock, sale, reports.Bounds{Tries: 1}))
	wants(t, err, errBroken, "no-oversell")
}

func TestNothingPromised(t *testing.T) {
	v := mineWith(mistakes{})
	v.Promises = nil
	_, err := search(t.Context(), mutex(v, reports.Bounds{}))
	wants(t, err, explore.ErrUsage)
	if strings.Contains(err.Error(), "ExploreBubble") {
		t.Errorf("a wrong configuration has the hint about bubbles: %v", err)
	}
}

// TestUnknownCommandIsInconclusive checks that a command that the model does not know makes a search inconclusive.
func TestUnknownCommandIsInconclusive(t *testing.T) {
	v := mineWith(mistakes{})
	v.New = func(env variant.Env) lockimpl.Locker { return strange{mine{env: env}} }
	_, err := searchBubbles(t.Context(), mutex(v, reports.Bounds{}), bubblesOf(t))
	wants(t, err, errInconclusive, "does not know")
}

type strange struct{ mine }

func (s strange) Acquire(ctx context.Context, _ string, _ lockimpl.Options) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, s.env.Redis[0].Do(ctx, "acquire.lock").Err()
}

// wants checks that err is the wanted error and contains these words. Line breaks in err count as spaces.
func wants(t *testing.T, err, is error, words ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Fatalf("got %v; want %v", err, is)
	}
	said := strings.Join(strings.Fields(err.Error()), " ")
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("the error does not say %q:\n%v", w, err)
		}
	}
}

func TestBubblesNoticeChance(t *testing.T) {
	v := mineWith(mistakes{})
	drawn := 0
	v.New = func(env variant.Env) lockimpl.Locker {
		env.Token = func() string { drawn++; return fmt.Sprint("random", drawn) }
		return mine{env: env}
	}
	_, err := searchBubbles(t.Context(), mutex(v, reports.Bounds{}), bubblesOf(t))
	wants(t, err, explore.ErrNondeterministic, "random")
}

func TestBubblesNoticePanic(t *testing.T) {
	v := mineWith(mistakes{})
	v.New = func(variant.Env) lockimpl.Locker { return nil }
	_, err := searchBubbles(t.Context(), mutex(v, reports.Bounds{}), bubblesOf(t))
	wants(t, err, nil, "the client panicked")
}

// TestSameVerdicts checks that both engines give the same verdict on a lock that uses only its Env.
func TestSameVerdicts(t *testing.T) {
	for _, v := range lockimpl.Variants {
		if v.Needs.Masters > 1 || v.Needs.SQL {
			continue // too many threads for a test, or impossible to search
		}
		c := mutex(v, reports.Bounds{Tries: 1, Advances: 1, Lost: -1, Late: -1})
		c.Look, c.Run.Hold = nil, 0
		for _, p := range []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Fencing} {
			for _, q := range c.Run.Promises() {
				if q.Of == variant.Lock && q.Property == p {
					c.Look = append(c.Look, q)
				}
			}
		}
		if c.Look == nil {
			continue // it promises nothing that both engines can check
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			_, alone := search(t.Context(), c)
			_, inBubble := searchBubbles(t.Context(), c, bubblesOf(t))
			for _, is := range []error{nil, errBroken, errInconclusive} {
				if errors.Is(alone, is) != errors.Is(inBubble, is) {
					t.Errorf("stepped by its Env: %v\nin bubbles: %v", alone, inBubble)
				}
			}
		})
	}
}

// majority is a lock on three masters. Its extend may do nothing.
type majority struct {
	env  variant.Env
	idle bool
}

func (m majority) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: m.env.Token(), Until: m.env.Clock.Now().Add(o.TTL)}
	taken := 0
	for _, rdb := range m.env.Redis {
		if ok, err := rdb.SetNX(ctx, key, l.Token, o.TTL).Result(); ok && err == nil {
			taken++
		}
	}
	if taken >= 2 && m.env.Clock.Now().Before(l.Until) {
		return l, nil
	}
	_ = m.Release(ctx, l)
	return l, lockimpl.ErrHeld
}

var expireOwn = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`)

func (m majority) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	l.Until = m.env.Clock.Now().Add(ttl)
	extended := 0
	for _, rdb := range m.env.Redis {
		if m.idle {
			extended++
		} else if n, err := expireOwn.Run(ctx, rdb, []string{l.Key}, l.Token, ttl.Milliseconds()).Int(); n == 1 && err == nil {
			extended++
		}
	}
	if extended < 2 {
		return l, lockimpl.ErrLost
	}
	return l, nil
}

func (m majority) Release(ctx context.Context, l lockimpl.Lock) (err error) {
	for _, rdb := range m.env.Redis {
		err = errors.Join(err, deleteOwn.Run(ctx, rdb, []string{l.Key}, l.Token).Err())
	}
	return err
}

// TestExtendOnMasters checks that a lock on several masters is searched with extensions, too, and that only the search without
// them must end.
func TestExtendOnMasters(t *testing.T) {
	b := reports.Bounds{Clients: 2, Tries: 1, Advances: 1, Crashes: -1, Lost: -1, Late: -1, Stalls: -1}
	of := func(idle bool) lockimpl.Variant {
		return lockimpl.Variant{
			Name: "majority", Promises: []variant.Property{variant.MutualExclusion}, Needs: variant.Needs{Masters: 3},
			New: func(env variant.Env) lockimpl.Locker { return majority{env, idle} },
		}
	}
	if _, err := search(t.Context(), mutex(of(true), b)); err != nil {
		t.Errorf("without extensions the lock is sound: %v", err)
	}
	_, err := Lock(t.Context(), of(true), b)
	wants(t, err, errBroken, "mutual-exclusion violated: client")
	text, err := Lock(t.Context(), of(false), b)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(text, "holds within these bounds") != 2 {
		t.Errorf("want a proof without extensions, and one with them:\n%s", text)
	}
	c := mutex(of(false), b)
	c.Bounds.TimeMS = 1
	if text, err = extended(t.Context(), c, nil); err != nil || !strings.Contains(text, "Not proved: sections in which the lock is extended") {
		t.Errorf("%q, %v; want that it was not proved", text, err)
	}
}

// TestOrdersSentAgain checks that orders are sent again only if a sale promises that this makes no difference.
func TestOrdersSentAgain(t *testing.T) {
	lock, _ := lockimpl.Find("lua-release")
	sale, _ := stockimpl.Find("decr")
	sale.Promises, sale.Flaws = []variant.Property{variant.NoOversell}, nil
	b := reports.Bounds{Clients: 2, Tries: 1, Advances: 1, Crashes: -1, Late: -1, Stalls: -1}
	text, err := Sale(t.Context(), lock, sale, b)
	if err != nil || !strings.Contains(text, "Orders were not sent again") {
		t.Errorf("%s, %v; want that orders were not sent again", text, err)
	}
	sale.Promises = append(sale.Promises, variant.OncePerOrder)
	_, err = Sale(t.Context(), lock, sale, b)
	wants(t, err, errBroken)
}

// TestDeclaredFlaws checks that a search passes a lock whose broken promises are all declared as flaws, and fails one of which only
// some are.
func TestDeclaredFlaws(t *testing.T) {
	t.Parallel()
	v := mineWith(mistakes{anybody: true})
	for _, declared := range []struct {
		property variant.Property
		passes   bool
	}{{variant.MutualExclusion, false}, {variant.OwnerOnlyRelease, false}, {"", true}} {
		v.Flaws = nil
		for _, p := range []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease} {
			if declared.property == "" || declared.property == p {
				v.Flaws = append(v.Flaws, variant.Flaw{Property: p, Fault: variant.Overrun, Why: "a release deletes whatever is there"})
			}
		}
		text, err := Lock(t.Context(), v, reports.Bounds{})
		if (err == nil) != declared.passes || err != nil && !errors.Is(err, errBroken) {
			t.Errorf("declared %v: %v; want it to pass: %t", v.Flaws, err, declared.passes)
		}
		if !strings.Contains(text, "other schedules that break owner-only-release were not sought") && declared.property != variant.MutualExclusion {
			t.Errorf("declared %v: it says\n%s", v.Flaws, text)
		}
	}
}
