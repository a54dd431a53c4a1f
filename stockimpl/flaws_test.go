package stockimpl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

const (
	soldOut  = stockimpl.Unsaid // what a refused client is told about the number left
	unsaid   = stockimpl.Unsaid
	transact = "multi set exec"
)

// uncounted returns the state of a sale that counts only its stock.
func uncounted(left int64) stockimpl.State {
	return stockimpl.State{Left: left, Sold: stockimpl.Unsaid}
}

// TestLostUpdate plays this schedule: one piece, and two buyers that both read before either writes.
func TestLostUpdate(t *testing.T) {
	addr := startRedis(t)
	t.Run("plain sells the one piece twice", func(t *testing.T) {
		s := newStage(t, addr, "plain", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "get")
		s.step(b, "get")
		s.step(a, "set")
		s.step(b, "set")
		s.ends(a, nil, 0)
		s.ends(b, nil, 0)
		s.holds(uncounted(0))
	})
	t.Run("plain undoes a refund", func(t *testing.T) {
		s := newStage(t, addr, "plain", 2)
		s.answers(buying(1, 1, 1), nil, 1)
		a, b := s.start("a", buying(2, 1, 2)), s.start("b", refunding(1, 1, 3))
		s.step(a, "get")
		s.step(b, "get")
		s.step(b, "set")
		s.step(a, "set")
		s.ends(b, nil, 2)
		s.ends(a, nil, 0)
		s.holds(uncounted(0)) // one of two pieces was sold, and none is left
	})
	t.Run("a late write undoes what plain sold since", func(t *testing.T) {
		s := newStage(t, addr, "plain", 3)
		a := s.start("a", buying(1, 1, 1))
		s.step(a, "get")
		s.answers(buying(2, 1, 2), nil, 2)
		s.answers(buying(3, 1, 3), nil, 1)
		s.step(a, "set")
		s.ends(a, nil, 2)
		s.holds(uncounted(2)) // three were sold, and two are left
	})
	t.Run("watch notices", func(t *testing.T) {
		s := newStage(t, addr, "watch", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "watch")
		s.step(a, "get")
		s.step(b, "watch")
		s.step(b, "get")
		s.step(a, transact)
		s.step(b, transact) // the transaction fails
		s.step(b, "watch")
		s.step(b, "get")
		s.step(b, "unwatch")
		s.ends(a, nil, 0)
		s.ends(b, stockimpl.ErrSoldOut, soldOut)
		s.holds(uncounted(0))
	})
	t.Run("lua has no gap", func(t *testing.T) {
		s := newStage(t, addr, "lua", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.ends(a, nil, 0)
		s.ends(b, stockimpl.ErrSoldOut, soldOut)
		s.holds(stockimpl.State{Sold: 1})
	})
	t.Run("reserve tells the second to try again", func(t *testing.T) {
		s := newStage(t, addr, "reserve", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.ends(b, stockimpl.ErrStale, unsaid) // not "sold out": the piece may come back
		s.step(a, "evalsha")
		s.ends(a, nil, 0)
		s.answers(buying(2, 1, 2), stockimpl.ErrSoldOut, soldOut)
		s.holds(stockimpl.State{Sold: 1})
	})
}

// TestFencingTheWriteAlone plays this schedule: two buyers with the fencing tokens 1 and 2 both read before either writes.
func TestFencingTheWriteAlone(t *testing.T) {
	addr := startRedis(t)
	t.Run("fenced-write: the older writes first", func(t *testing.T) {
		s := newStage(t, addr, "fenced-write", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "get")
		s.step(b, "get")
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.ends(a, nil, 0)
		s.ends(b, nil, 0) // two pieces were sold, and there was one
		s.holds(uncounted(0))
	})
	t.Run("fenced-write: the newer writes first", func(t *testing.T) {
		s := newStage(t, addr, "fenced-write", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "get")
		s.step(b, "get")
		s.step(b, "evalsha")
		s.step(a, "evalsha")
		s.ends(b, nil, 0)
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.holds(uncounted(0))
	})
	t.Run("fenced: the older writes first", func(t *testing.T) {
		s := newStage(t, addr, "fenced", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.step(a, "evalsha") // refused, because b has read
		s.step(b, "evalsha")
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.ends(b, nil, 0)
		s.holds(uncounted(0))
	})
	t.Run("fenced: the newer writes first", func(t *testing.T) {
		s := newStage(t, addr, "fenced", 1)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.step(b, "evalsha")
		s.step(a, "evalsha")
		s.ends(b, nil, 0)
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.holds(uncounted(0))
	})
	t.Run("fenced: an old holder that reads late", func(t *testing.T) {
		s := newStage(t, addr, "fenced", 2)
		a, b := s.start("a", buying(1, 1, 1)), s.start("b", buying(2, 1, 2))
		s.step(b, "evalsha")
		s.step(a, "evalsha")
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.step(b, "evalsha")
		s.ends(b, nil, 1)
		s.holds(uncounted(1))
	})
}

// TestTicket plays this schedule: two buyers take the numbers 1 and 2, both read, then both write.
func TestTicket(t *testing.T) {
	addr := startRedis(t)
	begin := func(t *testing.T) (s *stage, a, b *buyer) {
		s = newStage(t, addr, "ticket", 1)
		a, b = s.start("a", buying(1, 1, 0)), s.start("b", buying(2, 1, 0))
		for _, c := range []*buyer{a, b} {
			s.step(c, "incr")
		}
		for _, c := range []*buyer{a, b} {
			s.step(c, "get")
		}
		return s, a, b
	}
	t.Run("in the order of their numbers both get in", func(t *testing.T) {
		s, a, b := begin(t)
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.ends(a, nil, 0)
		s.ends(b, nil, 0) // two pieces were sold, and there was one
		s.holds(uncounted(0))
	})
	t.Run("in the other order the lower is refused", func(t *testing.T) {
		s, a, b := begin(t)
		s.step(b, "evalsha")
		s.step(a, "evalsha")
		s.ends(b, nil, 0)
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.holds(uncounted(0))
	})
}

// TestTicketMachine plays the schedule of TestTicket with a machine that only one buyer can use at a time.
func TestTicketMachine(t *testing.T) {
	addr := startRedis(t)
	begin := func(t *testing.T) (s *stage, a, b *buyer) {
		s = newStage(t, addr, "ticket-machine", 1)
		a, b = s.start("a", buying(1, 1, 0)), s.start("b", buying(2, 1, 0))
		for _, c := range []*buyer{a, b} {
			s.step(c, "incr")
		}
		for _, c := range []*buyer{a, b} {
			s.step(c, "get")
		}
		return s, a, b
	}
	t.Run("who waits for the machine writes what it read before", func(t *testing.T) {
		s, a, b := begin(t)
		s.step(a, "evalsha") // enters
		s.step(b, "evalsha") // finds it occupied,
		s.step(b, "evalsha") // and again
		s.step(a, "evalsha") // leaves
		s.ends(a, nil, 0)
		s.step(b, "evalsha")
		s.step(b, "evalsha")
		s.ends(b, nil, 0) // two pieces were sold, and there was one
		s.holds(uncounted(0))
	})
	t.Run("a number below the one on display is refused", func(t *testing.T) {
		s, a, b := begin(t)
		s.step(b, "evalsha")
		s.step(b, "evalsha")
		s.step(a, "evalsha")
		s.ends(b, nil, 0)
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.holds(uncounted(0))
	})
	t.Run("who dies at the machine keeps it", func(t *testing.T) {
		s, a, b := begin(t)
		s.step(a, "evalsha")
		a.Crash()
		for range 3 {
			s.step(b, "evalsha")
		}
		if b.Next() != "evalsha" {
			t.Errorf("client b stands before %q; it must still wait", b.Next())
		}
		s.holds(uncounted(1))
	})
}

func TestWatchRefusesWhatIsStaleIfToldTo(t *testing.T) {
	addr := startRedis(t)
	s := newStage(t, addr, "watch", 2)
	a := s.start("a", func(ctx context.Context, sale stockimpl.Sale) (int64, error) {
		sale.(stockimpl.Optimist).RefuseStale()
		return buying(1, 1, 0)(ctx, sale)
	})
	s.step(a, "watch")
	s.step(a, "get")
	s.answers(buying(2, 1, 0), nil, 1)
	for a.Next() != "" {
		a.Step()
	}
	s.ends(a, stockimpl.ErrStale, unsaid)
	s.holds(uncounted(1))
}

// TestOptimisticIsWhatItSays checks that Variant.Optimistic says whether a sale implements stockimpl.Optimist: whether it
// can refuse a stale order.
func TestOptimisticIsWhatItSays(t *testing.T) {
	for _, v := range stockimpl.Variants {
		env := variant.Env{Redis: []redis.UniversalClient{nil}}
		if _, is := v.New(env, "phone").(stockimpl.Optimist); is != v.Optimistic {
			t.Errorf("%s: Optimistic is %v, and its sale says %v", v.Name, v.Optimistic, is)
		}
	}
}

// TestDoubleOrder plays schedules of two copies of one order at the same time.
func TestDoubleOrder(t *testing.T) {
	addr := startRedis(t)
	t.Run("check-then-act sells both", func(t *testing.T) {
		s := newStage(t, addr, "check-then-act", 5)
		a, b := s.start("a", buying(7, 1, 0)), s.start("b", buying(7, 1, 0))
		s.step(a, "hexists")
		s.step(b, "hexists")
		s.step(a, "decrby")
		s.step(b, "decrby")
		s.step(a, "hset")
		s.step(b, "hset")
		s.ends(a, nil, 4)
		s.ends(b, nil, 3)
		s.holds(uncounted(3))
	})
	t.Run("check-then-act sells again after a crash", func(t *testing.T) {
		s := newStage(t, addr, "check-then-act", 5)
		a := s.start("a", buying(7, 1, 0))
		s.step(a, "hexists")
		s.step(a, "decrby") // and is never heard of again
		s.answers(buying(7, 1, 0), nil, 3)
		s.holds(uncounted(3))
	})
	for _, name := range []string{"plain", "watch", "decr", "ticket", "ticket-machine", "fenced-write", "fenced"} {
		t.Run(name+" knows no orders", func(t *testing.T) {
			s := newStage(t, addr, name, 5)
			s.answers(buying(7, 1, 1), nil, 4)
			s.answers(buying(7, 1, 2), nil, 3)
			s.holds(uncounted(3))
		})
	}
	t.Run("lua sells one", func(t *testing.T) {
		s := newStage(t, addr, "lua", 5)
		a, b := s.start("a", buying(7, 1, 0)), s.start("b", buying(7, 1, 0))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.ends(a, nil, 4)
		s.ends(b, stockimpl.ErrRepeated, unsaid)
		s.holds(stockimpl.State{Left: 4, Sold: 1})
	})
	t.Run("reserve sells one", func(t *testing.T) {
		s := newStage(t, addr, "reserve", 5)
		a, b := s.start("a", buying(7, 1, 0)), s.start("b", buying(7, 1, 0))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.holds(stockimpl.State{Left: 4, Reserved: 1})
		s.step(b, "evalsha")
		s.step(a, "evalsha")
		s.ends(b, nil, 4)
		s.ends(a, stockimpl.ErrRepeated, unsaid)
		s.holds(stockimpl.State{Left: 4, Sold: 1})
	})
}

// TestWrongRefusal plays schedules with one piece, of which buyer a wants two and buyer b one.
func TestWrongRefusal(t *testing.T) {
	addr := startRedis(t)
	t.Run("decr refuses both", func(t *testing.T) {
		s := newStage(t, addr, "decr", 1)
		a, b := s.start("a", buying(1, 2, 0)), s.start("b", buying(2, 1, 0))
		s.step(a, "decrby")
		s.step(b, "decrby")
		s.step(a, "incrby")
		s.step(b, "incrby")
		s.ends(a, stockimpl.ErrSoldOut, soldOut)
		s.ends(b, stockimpl.ErrSoldOut, soldOut)
		s.holds(uncounted(1))
	})
	t.Run("decr refuses everybody after a crash", func(t *testing.T) {
		s := newStage(t, addr, "decr", 1)
		a := s.start("a", buying(1, 2, 0))
		s.step(a, "decrby") // and is never heard of again
		s.answers(buying(2, 1, 0), stockimpl.ErrSoldOut, soldOut)
		s.holds(uncounted(-1))
	})
	t.Run("decr refuses what a refund brought back", func(t *testing.T) {
		s := newStage(t, addr, "decr", 1)
		s.answers(buying(1, 1, 0), nil, 0)
		b := s.start("b", buying(2, 1, 0))
		s.step(b, "decrby")
		s.answers(refunding(1, 1, 0), nil, 0)
		s.answers(buying(3, 1, 0), stockimpl.ErrSoldOut, soldOut)
		s.step(b, "incrby")
		s.ends(b, stockimpl.ErrSoldOut, soldOut)
		s.holds(uncounted(1))
	})
	t.Run("check-then-act refuses both", func(t *testing.T) {
		s := newStage(t, addr, "check-then-act", 1)
		a, b := s.start("a", buying(1, 2, 0)), s.start("b", buying(2, 1, 0))
		s.step(a, "hexists")
		s.step(b, "hexists")
		s.step(a, "decrby")
		s.step(b, "decrby")
		s.step(a, "incrby")
		s.step(b, "incrby")
		s.ends(b, stockimpl.ErrSoldOut, soldOut)
		s.holds(uncounted(1))
	})
	t.Run("lua refuses the one that wants too much", func(t *testing.T) {
		s := newStage(t, addr, "lua", 1)
		a, b := s.start("a", buying(1, 2, 0)), s.start("b", buying(2, 1, 0))
		s.step(a, "evalsha")
		s.step(b, "evalsha")
		s.ends(a, stockimpl.ErrSoldOut, soldOut)
		s.ends(b, nil, 0)
	})
	t.Run("watch refuses the one that wants too much", func(t *testing.T) {
		s := newStage(t, addr, "watch", 1)
		a, b := s.start("a", buying(1, 2, 0)), s.start("b", buying(2, 1, 0))
		s.step(a, "watch")
		s.step(b, "watch")
		s.step(a, "get")
		s.step(b, "get")
		s.step(a, "unwatch")
		s.step(b, transact)
		s.ends(a, stockimpl.ErrSoldOut, soldOut)
		s.ends(b, nil, 0)
	})
}

// TestReservationRunsOut plays schedules in which a buyer never confirms its reservation, on a clock that the test moves.
func TestReservationRunsOut(t *testing.T) {
	begin := func(t *testing.T, stock int64) (*stage, func(time.Duration)) {
		m := startMini(t)
		now := time.Unix(1_700_000_000, 0)
		m.SetTime(now)
		return newStage(t, m.Addr(), "reserve", stock), func(d time.Duration) {
			now = now.Add(d)
			m.SetTime(now)
		}
	}
	const almost = stockimpl.ReservedFor - time.Millisecond

	t.Run("a crash between reserving and confirming loses nothing", func(t *testing.T) {
		s, pass := begin(t, 1)
		a := s.start("a", buying(1, 1, 0))
		s.step(a, "evalsha") // and is never heard of again
		s.holds(stockimpl.State{Reserved: 1})
		pass(almost)
		s.answers(buying(2, 1, 0), stockimpl.ErrStale, unsaid)
		pass(time.Millisecond)
		s.answers(buying(2, 1, 0), nil, 0)
		s.holds(stockimpl.State{Sold: 1})
	})
	t.Run("a confirmation that comes late sells nothing", func(t *testing.T) {
		s, pass := begin(t, 1)
		a := s.start("a", buying(1, 1, 0))
		s.step(a, "evalsha")
		pass(stockimpl.ReservedFor)
		s.step(a, "evalsha")
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.holds(stockimpl.State{Left: 1})
		s.answers(buying(1, 1, 0), nil, 0) // the id is free again
	})
	t.Run("a confirmation after the piece went to another sells nothing", func(t *testing.T) {
		s, pass := begin(t, 1)
		a := s.start("a", buying(1, 1, 0))
		s.step(a, "evalsha")
		pass(stockimpl.ReservedFor)
		s.answers(buying(2, 1, 0), nil, 0)
		s.step(a, "evalsha")
		s.ends(a, stockimpl.ErrStale, unsaid)
		s.holds(stockimpl.State{Sold: 1})
	})
	t.Run("what is confirmed stays sold past the deadline", func(t *testing.T) {
		s, pass := begin(t, 2)
		s.answers(buying(1, 1, 0), nil, 1)
		pass(2 * stockimpl.ReservedFor)
		s.answers(buying(2, 1, 0), nil, 0)
		s.holds(stockimpl.State{Sold: 2})
		s.answers(buying(1, 1, 0), stockimpl.ErrRepeated, unsaid)
	})
	t.Run("the order sent again keeps its pieces", func(t *testing.T) {
		s, pass := begin(t, 3)
		a := s.start("a", buying(1, 2, 0))
		s.step(a, "evalsha")
		pass(almost)
		b := s.start("b", buying(1, 2, 0))
		s.step(b, "evalsha") // gets a new deadline
		pass(almost)
		s.holds(stockimpl.State{Left: 1, Reserved: 2})
		s.step(b, "evalsha")
		s.ends(b, nil, 1)
		s.holds(stockimpl.State{Left: 1, Sold: 2})
	})
	t.Run("a reservation cannot be refunded", func(t *testing.T) {
		s, _ := begin(t, 3)
		a := s.start("a", buying(1, 2, 0))
		s.step(a, "evalsha")
		if _, err := refunding(1, 2, 0)(t.Context(), s.plain); err == nil {
			t.Error("an order that was never confirmed was refunded")
		}
		s.holds(stockimpl.State{Left: 1, Reserved: 2})
	})
	t.Run("sold out is said only when it is true for good", func(t *testing.T) {
		s, _ := begin(t, 2)
		a := s.start("a", buying(1, 1, 0))
		s.step(a, "evalsha")
		s.answers(buying(2, 2, 0), stockimpl.ErrStale, unsaid)
		s.answers(buying(3, 3, 0), stockimpl.ErrSoldOut, soldOut)
		s.answers(buying(4, 1, 0), nil, 1) // a reserved piece is not sold
	})
	t.Run("reconcile returns any number", func(t *testing.T) {
		const reservations = 40 // more than one run of a script ends
		s, pass := begin(t, reservations)
		for id := range int64(reservations) {
			s.step(s.start("a", buying(id, 1, 0)), "evalsha")
		}
		pass(stockimpl.ReservedFor)
		n, err := s.plain.(stockimpl.Reconciler).Reconcile(t.Context())
		if n != reservations || err != nil {
			t.Errorf("reconcile ended %d reservations, %v; want %d", n, err, reservations)
		}
		s.holds(stockimpl.State{Left: reservations})
	})
}

// TestBeyondDoubles checks a stock that is larger than a Lua number holds exactly: the pieces sold, the pieces said to be
// left, and the last piece must be right. The sale "reserve" does not say how many are left of so large a stock.
func TestBeyondDoubles(t *testing.T) {
	const stock = 1<<53 + 4
	addr := startRedis(t)
	for _, v := range stockimpl.Variants {
		if v.Needs.SQL {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			s := v.New(world(t, addr), newProduct())
			if err := s.Open(t.Context(), stock); err != nil {
				t.Fatal(err)
			}
			fence := int64(0)
			buy := func(pieces int) (int64, error) {
				fence++
				return s.Buy(t.Context(), stockimpl.Order{ID: fence, Quantity: pieces}, lockimpl.Lock{Key: "order", Fence: fence})
			}
			for n := int64(1); n <= 3; n++ {
				left, err := buy(1)
				if err != nil || left != stock-n && (v.Name != "reserve" || left != stockimpl.Unsaid) {
					t.Errorf("purchase %d of 1 was answered %d, %v; want %d left", n, left, err, int64(stock)-n)
				}
			}
			if _, err := buy(stock - 2); !errors.Is(err, stockimpl.ErrSoldOut) && (v.Name != "reserve" || !errors.Is(err, stockimpl.ErrStale)) {
				t.Errorf("an order for one more than is left was answered %v", err)
			}
			if got, err := s.State(t.Context()); err != nil || got.Left != stock-3 {
				t.Errorf("the server holds %+v, %v; want %d left", got, err, int64(stock)-3)
			}
			if _, err := buy(stock - 3); err != nil {
				t.Errorf("an order for all that is left was answered %v", err)
			}
		})
	}
}
