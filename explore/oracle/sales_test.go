package oracle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/explore"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// sale is a way to sell, with a verdict found by reasoning. In look and breaks, v is no-oversell, u no-undersell, and
// 1 once-per-order.
type sale struct {
	item   int
	name   string
	lock   string
	bounds string
	stock  int64
	// look lists the promises to check, and breaks those of them that the sale breaks.
	look, breaks string
	buy          func(o *order) bool
}

// order is one purchase under way.
type order struct {
	*try
	id string
}

type shop struct {
	env variant.Env
	buy func(*order) bool
}

const (
	stockKey = "Stock:things"
	soldKey  = "Sold:things"
)

func (s *shop) begin(ctx context.Context) *try {
	return &try{locker: &locker{env: s.env}, ctx: ctx, r: s.env.Redis[0], key: stockKey}
}

func (s *shop) Open(ctx context.Context, stock int64) error {
	_, err := s.begin(ctx).run(func(t *try) bool { return t.do("set", stockKey, stock) != nil })
	return err
}

// errRepeated ends a part whose order was counted before.
var errRepeated = failure{stockimpl.ErrRepeated}

func (s *shop) Buy(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	ok, err := s.begin(ctx).run(func(t *try) bool { return s.buy(&order{t, fmt.Sprint(o.ID)}) })
	if err == nil && !ok {
		err = stockimpl.ErrSoldOut
	}
	return stockimpl.Unsaid, err
}

func (*shop) Refund(context.Context, stockimpl.Order, lockimpl.Lock) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (s *shop) State(ctx context.Context) (stockimpl.State, error) {
	var left int64
	_, err := s.begin(ctx).run(func(t *try) bool {
		_, err := fmt.Sscan(t.text("get", stockKey), &left)
		return err == nil
	})
	return stockimpl.State{Left: left, Sold: stockimpl.Unsaid}, err
}

func (t *try) left() (n int64) {
	_, _ = fmt.Sscan(t.text("get", stockKey), &n)
	return n
}

// readWrite takes a piece with GET, then SET of one less.
func readWrite(o *order) bool {
	left := o.left()
	if left <= 0 {
		return false
	}
	o.do("set", stockKey, left-1)
	return true
}

const (
	takeOne      = `local n = tonumber(redis.call('get', KEYS[1])) if n > 0 then redis.call('decr', KEYS[1]) return 1 end return 0`
	takeTooMany  = `local n = tonumber(redis.call('get', KEYS[1])) if n >= 0 then redis.call('decr', KEYS[1]) return 1 end return 0`
	takeOnce     = `if redis.call('sismember', 'Orders', ARGV[1]) == 1 then return 2 end local n = tonumber(redis.call('get', KEYS[1])) if n > 0 then redis.call('decr', KEYS[1]) redis.call('sadd', 'Orders', ARGV[1]) return 1 end return 0`
	rememberOnly = `redis.call('sadd', 'Orders', ARGV[1]) local n = tonumber(redis.call('get', KEYS[1])) if n > 0 then redis.call('decr', KEYS[1]) return 1 end return 0`
)

func (o *order) run1(source string) int64 {
	n, err := redis.NewScript(source).Run(o.ctx, o.r, []string{stockKey}, o.id).Int64()
	if err != nil {
		panic(failure{err})
	}
	return n
}

// once takes one piece with a script that remembers the orders.
func once(o *order) bool {
	n := o.run1(takeOnce)
	if n == 2 {
		panic(errRepeated)
	}
	return n == 1
}

func optimistic(o *order) bool {
	for {
		enough := true
		if o.watched(func(tx *redis.Tx) [][]any {
			var left int64
			_, _ = fmt.Sscan(textOf(on(o.ctx, tx, "get", stockKey)), &left)
			if enough = left > 0; !enough {
				return nil
			}
			return [][]any{{"set", stockKey, left - 1}}
		}) {
			return true
		}
		if !enough {
			return false
		}
	}
}

// noted returns a buy function that refuses an order whose id was seen in the last seconds seconds.
func noted(seconds int, buy func(*order) bool) func(*order) bool {
	return func(o *order) bool {
		if !o.yes("set", "Seen:"+o.id, 1, "nx", "ex", seconds) {
			panic(errRepeated)
		}
		return buy(o)
	}
}

func scripted(o *order) bool { return o.run1(takeOne) == 1 }

// checkedFirst checks whether the order is noted, takes a piece, and notes the order: three commands.
func checkedFirst(o *order) bool {
	if o.yes("sismember", "Orders", o.id) {
		panic(errRepeated)
	}
	if !scripted(o) {
		return false
	}
	o.do("sadd", "Orders", o.id)
	return true
}

func decrFirst(o *order) bool {
	if o.number("decr", stockKey) >= 0 {
		return true
	}
	o.do("incr", stockKey)
	return false
}

// downwards is a script that refuses an order whose number is above that of the last one.
const downwards = `local last = redis.call('get', 'Last') if last and tonumber(ARGV[1]) > tonumber(last) then return 0 end redis.call('set', 'Last', ARGV[1]) ` + takeOne

// striped returns a buy function that sends GET and SET under a lock. Orders share a lock if their numbers have the same
// remainder.
func striped(by int64) func(*order) bool {
	return func(o *order) bool {
		var id int64
		_, _ = fmt.Sscan(o.id, &id)
		stripe := fmt.Sprint("Stripe:", id%by)
		if !o.yes("setnx", stripe, 1) {
			panic(failure{stockimpl.ErrStale})
		}
		sold := readWrite(o)
		o.do("del", stripe)
		return sold
	}
}

// registered returns a buy function that notes the order and then takes a piece without checking how many are left. It
// refuses if the order is the only one noted, or yields to another.
func registered(yields func(mine, other int64) bool) func(*order) bool {
	return func(o *order) bool {
		o.do("zadd", "Registered", 0, o.id)
		all, _ := o.do("zrange", "Registered", 0, -1).([]any)
		if len(all) < 2 {
			panic(failure{stockimpl.ErrStale})
		}
		var mine int64
		_, _ = fmt.Sscan(o.id, &mine)
		for _, a := range all {
			var other int64
			if _, _ = fmt.Sscan(fmt.Sprint(a), &other); yields(mine, other) {
				return false
			}
		}
		return o.number("decr", stockKey) >= -1
	}
}

var sales = []sale{
	{12, "GET, SET", "none", "t1", 1, "v", "v", readWrite},
	{12, "GET, SET, two pieces", "none", "t2", 2, "v", "v", readWrite},
	{12, "GET, SET under a lock", "lua-release", "t1", 1, "vu", "", readWrite},
	{12, "GET, SET under a lock, two pieces", "lua-release", "t2", 2, "vu", "", readWrite},
	{12, "GET, SET under a lock, and time", "lua-release", "t1 a1 s1", 1, "v", "v", readWrite},
	{12, "a script", "none", "t2", 1, "vu", "", scripted},
	{12, "a script, two pieces", "none", "t2", 2, "vu", "", scripted},
	{12, "a script, a lost message", "none", "t1 l1", 1, "v", "", scripted},
	{12, "a script, a late message", "none", "t1 d1", 1, "v", "", scripted},
	{12, "a script that takes one too many", "none", "t1", 1, "v", "v", func(o *order) bool { return o.run1(takeTooMany) == 1 }},
	{12, "a script that takes one too many, two pieces", "none", "t2", 2, "v", "v", func(o *order) bool { return o.run1(takeTooMany) == 1 }},
	{12, "GET, DECR", "none", "t1", 1, "v", "v", func(o *order) bool {
		if o.left() <= 0 {
			return false
		}
		o.do("decr", stockKey)
		return true
	}},
	{12, "DECR, INCR if it was too much", "none", "t1", 1, "vu", "", decrFirst},
	{12, "a script, sent again", "none", "t1 l1 r1", 2, "1", "1", scripted},
	{12, "a script that knows the orders, sent again", "none", "t1 l1 r1", 2, "1v", "", once},
	{12, "a script that knows the orders, sent again late", "none", "t1 d1 r1", 2, "1v", "", once},
	{12, "a script that notes the orders and never looks", "none", "t1 l1 r1", 2, "1", "1", func(o *order) bool { return o.run1(rememberOnly) == 1 }},
	{12, "orders noted in another command, sent again", "none", "t1 l1 r1", 2, "1", "1", checkedFirst},
	{12, "orders noted in another command", "none", "t1", 2, "1v", "", checkedFirst},
	{12, "orders remembered for a second, sent again", "none", "t1 l1 r1 a1 s1", 2, "1", "1", func(o *order) bool {
		if o.yes("exists", "Done:"+o.id) {
			panic(errRepeated)
		}
		if o.run1(takeOne) == 0 {
			return false
		}
		o.do("set", "Done:"+o.id, 1, "ex", 1)
		return true
	}},
	{11, "WATCH", "none", "t1", 1, "vu", "", optimistic},
	{11, "WATCH, two pieces", "none", "t2", 2, "vu", "", optimistic},
	{11, "WATCH, a late message", "none", "t1 d1", 1, "v", "", optimistic},
	{11, "WATCH, a late message, and again", "none", "t2 d1", 2, "v", "", optimistic},
	{11, "WATCH, a lost message", "none", "t1 l1", 1, "v", "", optimistic},
	{8, "noted for a day", "none", "t1", 1, "vu", "", noted(86400, scripted)},
	{8, "noted for a day, under a lock, and time", "lua-release", "t1 a1 s1", 1, "v", "", noted(86400, scripted)},
	{8, "noted for a day, GET, SET", "none", "t1", 1, "v", "v", noted(86400, readWrite)},
	{3, "a script that refuses an order above the last", "none", "t1", 2, "u", "u", func(o *order) bool { return o.run1(downwards) == 1 }},
	{3, "a client that refuses an order below the highest", "none", "t1", 2, "u", "u", func(o *order) bool {
		highest, id := int64(0), int64(0)
		_, _ = fmt.Sscan(o.text("get", "Highest"), &highest)
		_, _ = fmt.Sscan(o.id, &id)
		if id < highest {
			return false
		}
		o.do("set", "Highest", o.id)
		return scripted(o)
	}},
	{3, "a lock for each stripe of orders, of seven", "none", "t1", 1, "v", "v", striped(7)},
	{3, "a lock for each stripe of orders, of one", "none", "t1", 1, "v", "", striped(1)},
	{3, "the highest of those that are registered", "none", "t1", 1, "v", "", registered(func(mine, other int64) bool { return other > mine })},
	{3, "the lowest of those that are registered", "none", "t1", 1, "v", "", registered(func(mine, other int64) bool { return other < mine })},
	{3, "any of those that are registered", "none", "t1", 1, "v", "v", registered(func(_, _ int64) bool { return false })},
	{1, "sold until a moment, GET, SET", "none", "t1", 1, "v", "v", func(o *order) bool {
		o.now()
		return readWrite(o)
	}},
}

var saleLetters = map[byte]variant.Property{'v': variant.NoOversell, 'u': variant.NoUndersell, '1': variant.OncePerOrder}

func TestSales(t *testing.T) {
	t.Parallel()
	seckill, _ := scenarios.Find("seckill")
	for i := range sales {
		s := &sales[i]
		t.Run(fmt.Sprintf("%d %s", s.item, s.name), func(t *testing.T) {
			t.Parallel()
			lock, _ := lockimpl.Find(s.lock)
			v := stockimpl.Variant{
				Name:     "written down",
				Promises: []variant.Property{variant.NoOversell, variant.NoUndersell, variant.OncePerOrder},
				New:      func(env variant.Env, _ string) stockimpl.Sale { return &shop{env, s.buy} },
			}
			b, _ := boundsOf(s.bounds)
			for _, l := range []byte(s.look) {
				want := reports.Pass
				if strings.IndexByte(s.breaks, l) >= 0 {
					want = reports.Violated
				}
				for _, plain := range []bool{false, true} {
					r, err := explore.Run(t.Context(), explore.Config{
						Run: scenarios.Config{Scenario: seckill, Lock: lock, Sale: v, Stock: s.stock}, Bounds: b, Plain: plain,
						Look: []history.Promise{{Of: variant.Sale, Property: saleLetters[l]}},
					})
					judge(t, r, err, plain, want, saleLetters[l], s.bounds)
				}
			}
		})
	}
}

// judge compares the result of a search with the verdict found by reasoning.
func judge(t *testing.T, r reports.Exploration, err error, plain bool, want string, look any, bounds string) {
	t.Helper()
	switch {
	case err != nil:
		t.Logf("INCONCLUSIVE plain %t: %v", plain, err)
	case r.Verdict == reports.Inconclusive:
		t.Logf("INCONCLUSIVE plain %t: %s", plain, r.Why)
	case r.Verdict != want:
		t.Errorf("plain %t: %s, want %s: %s, looking for %v within %s", plain, r.Verdict, want, r.Why, look, bounds)
	}
}
