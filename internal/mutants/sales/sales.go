package sales

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// The sound scripts of a sale. KEYS[1] is the stock, KEYS[2] the orders, KEYS[3] the
// count of what is sold, KEYS[4] the newest fencing token; ARGV[1] is the order, ARGV[2]
// its quantity, ARGV[3] the buyer's fencing token. They reply an answer and what is left.
const (
	buyLua = `
local left = redis.call('GET', KEYS[1])
if not left then return {'absent', -1} end
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return {'repeated', -1} end
if tonumber(left) < tonumber(ARGV[2]) then return {'sold-out', -1} end
redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. ARGV[2])
redis.call('INCRBY', KEYS[3], ARGV[2])
return {'ok', redis.call('DECRBY', KEYS[1], ARGV[2])}
`
	refundLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return {'absent', -1} end
local order = redis.call('HGET', KEYS[2], ARGV[1])
if not order then return {'never-bought', -1} end
local state, pieces = string.match(order, '^(%a+):(%d+)$')
if state ~= 'sold' then return {'repeated', -1} end
redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)
redis.call('DECRBY', KEYS[3], pieces)
return {'ok', redis.call('INCRBY', KEYS[1], pieces)}
`
)

// saleSteps are the parts of a sale that mutants change.
type saleSteps struct {
	buy, refund string
	// keys names the four keys of a product.
	keys func(product string) []string
	// order is the id of an order, as the scripts see it.
	order func(id int64) any
	// buyBy and refundBy replace the scripts.
	buyBy, refundBy func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error)
	// open and state replace writing and reading the stock.
	open  func(ctx context.Context, s *sale, stock int64) error
	state func(ctx context.Context, s *sale) (stockimpl.State, error)
	// uncounted says that nothing counts what is sold.
	uncounted bool
}

// sale is one client of a sale made of steps.
type sale struct {
	saleSteps
	env     variant.Env
	product string
	soldOut bool // a memory, for those that use one
}

func (s *sale) redis() redis.UniversalClient { return s.env.Redis[0] }

func (s *sale) of(product string) []string {
	if s.keys != nil {
		return s.keys(product)
	}
	return []string{"Stock:" + product, "Orders:" + product, "Sold:" + product, "Newest:" + product}
}

func (s *sale) script(ctx context.Context, text string, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	var id any = o.ID
	if s.order != nil {
		id = s.order(o.ID)
	}
	reply, err := redis.NewScript(text).Run(ctx, s.redis(), s.of(s.product), id, o.Quantity, l.Fence).Slice()
	if err != nil {
		return stockimpl.Unsaid, err
	}
	return answerOf(reply)
}

// answerOf reads the reply of a script.
func answerOf(reply []any) (int64, error) {
	switch reply[0] {
	case "ok":
		left, _ := reply[1].(int64)
		return left, nil
	case "repeated":
		return stockimpl.Unsaid, stockimpl.ErrRepeated
	case "sold-out":
		return stockimpl.Unsaid, stockimpl.ErrSoldOut
	case "stale":
		return stockimpl.Unsaid, stockimpl.ErrStale
	}
	return stockimpl.Unsaid, fmt.Errorf("the answer is %v", reply[0])
}

// Open implements stockimpl.Sale.
func (s *sale) Open(ctx context.Context, stock int64) error {
	if stock < 0 {
		return fmt.Errorf("open %q: a stock of %d", s.product, stock)
	}
	if s.open != nil {
		return s.open(ctx, s, stock)
	}
	return s.redis().Set(ctx, s.of(s.product)[0], stock, 0).Err()
}

// Buy implements stockimpl.Sale.
func (s *sale) Buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if o.Quantity <= 0 {
		return stockimpl.Unsaid, fmt.Errorf("buy order %d: a quantity of %d", o.ID, o.Quantity)
	}
	if s.buyBy != nil {
		return said(s.buyBy(ctx, s, o, l))
	}
	return said(s.script(ctx, s.buy, o, l))
}

// Refund implements stockimpl.Sale.
func (s *sale) Refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if o.Quantity <= 0 {
		return stockimpl.Unsaid, fmt.Errorf("refund order %d: a quantity of %d", o.ID, o.Quantity)
	}
	if s.refundBy != nil {
		return said(s.refundBy(ctx, s, o, l))
	}
	return said(s.script(ctx, s.refund, o, l))
}

// said returns how many pieces are left, or Unsaid with an error.
func said(left int64, err error) (int64, error) {
	if err != nil {
		return stockimpl.Unsaid, err
	}
	return left, nil
}

// State implements stockimpl.Sale.
func (s *sale) State(ctx context.Context) (stockimpl.State, error) {
	if s.saleSteps.state != nil {
		return s.saleSteps.state(ctx, s)
	}
	keys := s.of(s.product)
	values, err := s.redis().MGet(ctx, keys[0], keys[2]).Result()
	if err != nil {
		return stockimpl.State{}, err
	}
	text, ok := values[0].(string)
	if !ok {
		return stockimpl.State{}, errors.New("the product is not on sale")
	}
	state := stockimpl.State{Sold: stockimpl.Unsaid}
	if state.Left, err = strconv.ParseInt(text, 10, 64); err != nil || s.uncounted {
		return state, err
	}
	sold, _ := values[1].(string)
	state.Sold, _ = strconv.ParseInt(sold, 10, 64)
	return state, nil
}

// selling makes a variant of a sale that knows orders by their id.
func selling(change func(*saleSteps)) stockimpl.Variant {
	s := saleSteps{buy: buyLua, refund: refundLua}
	if change != nil {
		change(&s)
	}
	return stockimpl.Variant{
		Promises: []variant.Property{variant.NoOversell, variant.NoUndersell, variant.OncePerOrder, variant.Linearizable},
		New: func(env variant.Env, product string) stockimpl.Sale {
			return &sale{saleSteps: s, env: env, product: product}
		},
	}
}

// counting makes a variant of a sale that knows nothing but the stock.
func counting(change func(*saleSteps)) stockimpl.Variant {
	v := selling(func(s *saleSteps) {
		s.uncounted = true
		change(s)
	})
	v.Promises = []variant.Property{variant.NoOversell, variant.NoUndersell, variant.Linearizable}
	return v
}

// fenced makes a variant of a sale that refuses old fencing tokens.
func fenced(change func(*saleSteps)) stockimpl.Variant {
	v := selling(func(s *saleSteps) {
		s.buy, s.refund = fenceLua+s.buy, fenceLua+s.refund
		if change != nil {
			change(s)
		}
	})
	v.Promises = append(v.Promises, variant.Fencing)
	v.Needs.Fence = true
	return v
}

const fenceLua = `
local newest = redis.call('GET', KEYS[4]) or '0'
if ` + exactlyOlder + ` then return {'stale', -1} end
redis.call('SET', KEYS[4], ARGV[3])
`

// exactlyOlder compares fencing tokens as texts, since Lua's numbers are not exact.
const exactlyOlder = `(#ARGV[3] < #newest or #ARGV[3] == #newest and ARGV[3] < newest)`

// saleMutants sell pieces that are not there, or refuse to sell pieces that are.
func saleMutants() []Sale {
	over, under, once := entry.Breaks(variant.NoOversell), entry.Breaks(variant.NoUndersell), entry.Breaks(variant.OncePerOrder)
	return []Sale{
		{entry.New("checks-for-one", "the look at the stock is for one piece, whatever is ordered", over, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `tonumber(left) < tonumber(ARGV[2])`, `tonumber(left) < 1`)
			})},
		{entry.New("compares-text", "stock and quantity are compared as texts", entry.Breaks(variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `tonumber(left) < tonumber(ARGV[2])`, `left < ARGV[2]`)
			})},
		{entry.New("keeps-last-piece", "the last piece is never sold", under, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `tonumber(left) < tonumber(ARGV[2])`, `tonumber(left) <= tonumber(ARGV[2])`)
			})},
		{entry.New("order-before-stock", "an order is written down before the look at the stock, so one that is refused counts as bought when it is sent again", entry.Breaks(variant.OncePerOrder, variant.NoOversell, variant.NoUndersell, variant.Linearizable), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `if tonumber(left) <`, `redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. ARGV[2])
				if tonumber(left) <`)
			})},
		{entry.New("order-after-stock", "an order is looked up, paid from the stock and written down by three commands", entry.Breaks(variant.OncePerOrder, variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					if there, err := s.redis().HExists(ctx, s.of(s.product)[1], strconv.FormatInt(o.ID, 10)).Result(); err != nil {
						return 0, err
					} else if there {
						return 0, stockimpl.ErrRepeated
					}
					left, err := s.script(ctx, entry.Changed(entry.Changed(buyLua, `redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. ARGV[2])`, ``), `if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return {'repeated', -1} end`, ``), o, l)
					if err != nil {
						return 0, err
					}
					return left, s.redis().HSet(ctx, s.of(s.product)[1], o.ID, "sold:"+strconv.Itoa(o.Quantity)).Err()
				}
			})},
		{entry.New("orders-forgotten", "the orders are kept for a second after the last one, and one that is sent again later is bought again", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('PEXPIRE', KEYS[2], 1000)
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
		{entry.New("orders-kept-for-a-day", "each order is kept for a day under a key of its own", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1`, `redis.call('EXISTS', KEYS[2] .. '/' .. ARGV[1]) == 1`)
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('SET', KEYS[2] .. '/' .. ARGV[1], 1, 'EX', 86400)
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
		{entry.New("refund-repeats", "a refund does not look whether it was refunded before", entry.Breaks(variant.OncePerOrder, variant.NoUndersell, variant.NoOversell), ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `if state ~= 'sold' then return {'repeated', -1} end`, ``)
			})},
		{entry.New("refund-of-unknown", "a refund of an order that was never bought adds to the stock", entry.Breaks(variant.OncePerOrder, variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `if not order then return {'never-bought', -1} end`, `if not order then order = 'sold:' .. ARGV[2] end`)
			})},
		{entry.New("refund-by-request", "a refund gives back what the refund says, and not what was bought", entry.Breaks(variant.OncePerOrder, variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `redis.call('INCRBY', KEYS[1], pieces)`, `redis.call('INCRBY', KEYS[1], ARGV[2])`)
			})},
		{entry.New("refund-frees-order", "a refund removes the order, so a late copy of the purchase buys again", once, ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)`, `redis.call('HDEL', KEYS[2], ARGV[1])`)
			})},
		{entry.New("reads-then-writes", "the stock is read, and written by a second command", entry.Breaks(variant.NoOversell, variant.NoUndersell, variant.Linearizable), "https://github.com/woocommerce/woocommerce/issues/44273"),
			counting(func(s *saleSteps) { s.buyBy, s.refundBy = readWrite(-1), readWrite(1) })},
		{entry.New("buys-again-on-error", "a purchase whose answer is lost is sent again by the client, and the first one counts, too", entry.Breaks(variant.NoUndersell, variant.NoOversell, variant.OncePerOrder, variant.Linearizable), ""),
			counting(func(s *saleSteps) {
				buy := func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					return s.script(ctx, countLua, o, l)
				}
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := buy(ctx, s, o, l)
					if err != nil && !errors.Is(err, stockimpl.ErrSoldOut) {
						return buy(context.WithoutCancel(ctx), s, o, l)
					}
					return left, err
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
				}
			})},
		{entry.New("decr-and-give-back", "DECRBY comes first, and of what went below zero one piece is given back", entry.Breaks(variant.NoUndersell, variant.NoOversell, variant.Linearizable), ""),
			counting(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					stock := s.of(s.product)[0]
					left, err := s.redis().DecrBy(ctx, stock, int64(o.Quantity)).Result()
					if err != nil || left >= 0 {
						return left, err
					}
					if err := s.redis().Incr(ctx, stock).Err(); err != nil {
						return 0, err
					}
					return 0, stockimpl.ErrSoldOut
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
				}
			})},
		{entry.New("decr-then-look", "DECRBY comes first, and what went below zero is given back, by a buyer who may be held up or die before that", entry.Breaks(variant.NoUndersell, variant.Linearizable), ""),
			counting(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					stock := s.of(s.product)[0]
					left, err := s.redis().DecrBy(ctx, stock, int64(o.Quantity)).Result()
					if err != nil || left >= 0 {
						return left, err
					}
					if err := s.redis().IncrBy(ctx, stock, int64(o.Quantity)).Err(); err != nil {
						return 0, err
					}
					return 0, stockimpl.ErrSoldOut
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
				}
			})},
		{entry.New("sold-out-flag", "a flag says that all is sold; a refund clears it by a second command, which a client that dies never sends", under, ""),
			selling(func(s *saleSteps) {
				flag := func(s *sale) string { return "Flag:" + s.product }
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, entry.Changed(buyLua, `if tonumber(left) <`, `if redis.call('EXISTS', '`+flag(s)+`') == 1 then return {'sold-out', -1} end
if tonumber(left) <`), o, l)
					if err == nil && left == 0 {
						err = s.redis().Set(ctx, flag(s), 1, 0).Err()
					}
					return left, err
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, refundLua, o, l)
					if err == nil {
						err = s.redis().Del(ctx, flag(s)).Err()
					}
					return left, err
				}
			})},
		{entry.New("orders-up-to-ten", "an order for more than ten is refused as if too few were left", under, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `tonumber(left) < tonumber(ARGV[2])`, `tonumber(ARGV[2]) > 10 or tonumber(left) < tonumber(ARGV[2])`)
			})},
		{entry.New("refund-of-two-digits", "of what an order bought, two digits are kept, and a refund gives back no more", entry.Breaks(variant.NoUndersell, variant.OncePerOrder, variant.Linearizable), ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `'^(%a+):(%d+)$'`, `'^(%a+):(%d%d?)'`)
			})},
		{entry.New("stock-as-float", "the stock is written as Lua prints a number, in fourteen digits", entry.Breaks(variant.NoUndersell, variant.NoOversell, variant.Linearizable), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('DECRBY', KEYS[1], ARGV[2])`, `tonumber(left) - ARGV[2]`)
				s.buy = entry.Changed(s.buy, `redis.call('HSET', KEYS[2]`, `redis.call('SET', KEYS[1], tostring(tonumber(left) - ARGV[2]))
redis.call('HSET', KEYS[2]`)
			})},
		{entry.New("fence-looked-at-before", "the buyer's fencing token is compared by a command of its own, and the purchase is another", entry.Breaks(variant.Fencing), ""),
			fenced(func(s *saleSteps) {
				check := func(call string) func(context.Context, *sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
					return func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
						if _, err := s.script(ctx, fenceLua+"return {'ok', 0}", o, l); err != nil {
							return 0, err
						}
						return s.script(ctx, call, o, l)
					}
				}
				s.buyBy, s.refundBy = check(buyLua), check(refundLua)
			})},
		{entry.New("sold-out-remembered", "a client that was refused once refuses by itself ever after, refunds or not", under, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					if s.soldOut {
						return 0, stockimpl.ErrSoldOut
					}
					left, err := s.script(ctx, buyLua, o, l)
					s.soldOut = errors.Is(err, stockimpl.ErrSoldOut)
					return left, err
				}
			})},
		{entry.New("stock-in-quarters", "the stock is split in four by the order's number, and a quarter that is sold out refuses while others have", under, ""),
			counting(inQuarters(1))},
		{entry.New("stock-in-quarters-searched", "the stock is split in four, and a buyer looks at one quarter after the other, while pieces come back to those it has seen", under, ""),
			counting(inQuarters(4))},
		{entry.New("orders-as-floats", "the order's number goes through a floating-point number, so large ones that are near each other are one", entry.Breaks(variant.OncePerOrder, variant.NoUndersell, variant.Linearizable), ""),
			selling(func(s *saleSteps) {
				s.order = func(id int64) any { return strconv.FormatFloat(float64(id), 'e', 14, 64) }
			})},
		{entry.New("orders-of-32-bits", "the order's number is cut to 32 bits", entry.Breaks(variant.OncePerOrder, variant.NoUndersell, variant.Linearizable), ""),
			selling(func(s *saleSteps) { s.order = func(id int64) any { return int32(id) } })},
		{entry.New("sound-suffixed-products", "the keys of a product are its name and a suffix: the suite says which names would share a key", nil, ""),
			selling(func(s *saleSteps) {
				s.keys = func(product string) []string {
					return []string{"Stock:" + product, "Stock:" + product + ":orders", "Stock:" + product + ":sold", "Stock:" + product + ":newest"}
				}
			})},
		{entry.New("fence-as-text", "fencing tokens are compared as texts, so 9 is newer than 10", entry.Breaks(variant.Fencing, variant.NoUndersell), ""),
			fenced(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, exactlyOlder, `ARGV[3] < newest`)
			})},
		{entry.New("fence-in-refund-missing", "a refund is not fenced", entry.Breaks(variant.Fencing), ""),
			fenced(func(s *saleSteps) { s.refund = refundLua })},
		{entry.New("fence-of-refund-not-kept", "a refund with an older fencing token is refused, and one with a newer is not remembered", entry.Breaks(variant.Fencing), ""),
			fenced(func(s *saleSteps) { s.refund = entry.Changed(s.refund, `redis.call('SET', KEYS[4], ARGV[3])`, ``) })},
		{entry.New("fence-kept-for-half-a-second", "the newest fencing token is forgotten after half a second without a purchase", entry.Breaks(variant.Fencing), ""),
			fenced(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('SET', KEYS[4], ARGV[3])`, `redis.call('SET', KEYS[4], ARGV[3], 'PX', 500)`)
			})},
	}
}

// countLua subtracts if enough is left, and knows no orders.
const countLua = `
local left = redis.call('GET', KEYS[1])
if not left then return {'absent', -1} end
if tonumber(left) < tonumber(ARGV[2]) then return {'sold-out', -1} end
return {'ok', redis.call('DECRBY', KEYS[1], ARGV[2])}
`

// readWrite adds sign times the quantity by GET and SET.
func readWrite(sign int64) func(context.Context, *sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
	return func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
		left, err := s.redis().Get(ctx, s.of(s.product)[0]).Int64()
		if err != nil {
			return 0, err
		}
		if left += sign * int64(o.Quantity); left < 0 {
			return 0, stockimpl.ErrSoldOut
		}
		return left, s.redis().Set(ctx, s.of(s.product)[0], left, 0).Err()
	}
}

// soundSales keep what they promise.
func soundSales() []Sale {
	return []Sale{
		{entry.New("sound-lua", "one script decides an order and remembers it", nil, ""), selling(nil)},
		{entry.New("sound-sale-watch", "the stock is read under WATCH and written in a transaction, again until nobody wrote in between", nil, ""),
			counting(func(s *saleSteps) { s.buyBy, s.refundBy = underWatch(-1), underWatch(1) })},
		{entry.New("sound-count", "one script subtracts if enough is left; orders are not known", nil, ""),
			counting(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					return s.script(ctx, countLua, o, l)
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
				}
			})},
		{entry.New("sound-fenced", "the script refuses an older fencing token, in purchases and refunds", nil, ""), fenced(nil)},
		{entry.New("sound-one-table", "one hash holds the stock of all products, and the key of no product carries its name", nil, ""),
			counting(func(s *saleSteps) {
				const table = "stock-of-all-products"
				s.open = func(ctx context.Context, s *sale, stock int64) error {
					return s.redis().HSet(ctx, table, s.product, stock).Err()
				}
				s.state = func(ctx context.Context, s *sale) (stockimpl.State, error) {
					left, err := s.redis().HGet(ctx, table, s.product).Int64()
					return stockimpl.State{Left: left, Sold: stockimpl.Unsaid}, err
				}
				change := func(sign int) func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
						left, err := redis.NewScript(`
local left = redis.call('HGET', KEYS[1], ARGV[1])
if not left then return redis.error_reply('absent') end
if tonumber(left) + tonumber(ARGV[2]) < 0 then return -1 end
return redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])`).Run(ctx, s.redis(), []string{table}, s.product, sign*o.Quantity).Int64()
						if err == nil && left < 0 {
							err = stockimpl.ErrSoldOut
						}
						return left, err
					}
				}
				s.buyBy, s.refundBy = change(-1), change(1)
			})},
		{entry.New("sound-says-nothing", "what is left is never told", nil, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					_, err := s.script(ctx, buyLua, o, l)
					return stockimpl.Unsaid, err
				}
			})},
	}
}

func underWatch(sign int64) func(context.Context, *sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
	return func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (left int64, err error) {
		stock := s.of(s.product)[0]
		for {
			err := s.redis().Watch(ctx, func(tx *redis.Tx) error {
				if left, err = tx.Get(ctx, stock).Int64(); err != nil {
					return err
				}
				if left += sign * int64(o.Quantity); left < 0 {
					return stockimpl.ErrSoldOut
				}
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, stock, left, 0).Err() })
				return err
			}, stock)
			if !errors.Is(err, redis.TxFailedErr) {
				return left, err
			}
			if err := s.env.Clock.Sleep(ctx, time.Millisecond); err != nil {
				return 0, err
			}
		}
	}
}

// inQuarters splits the stock among four keys. An order tries at most this many of them, starting
// with the one of its number.
func inQuarters(most int64) func(*saleSteps) {
	quarter := func(s *sale, id int64) string {
		return s.of(s.product)[0] + "/" + strconv.FormatInt((id%4+4)%4, 10)
	}
	return func(s *saleSteps) {
		s.open = func(ctx context.Context, s *sale, stock int64) error {
			for i := range int64(4) {
				if err := s.redis().Set(ctx, quarter(s, i), (stock+i)/4, 0).Err(); err != nil {
					return err
				}
			}
			return nil
		}
		s.state = func(ctx context.Context, s *sale) (state stockimpl.State, _ error) {
			state.Sold = stockimpl.Unsaid
			for i := range int64(4) {
				n, err := s.redis().Get(ctx, quarter(s, i)).Int64()
				if err != nil {
					return state, err
				}
				state.Left += n
			}
			return state, nil
		}
		s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (_ int64, err error) {
			at := *s
			for i := range most {
				at.keys = func(string) []string { return []string{quarter(s, o.ID%4+i), "", "", ""} }
				if _, err = at.script(ctx, countLua, o, l); !errors.Is(err, stockimpl.ErrSoldOut) {
					break
				}
			}
			return stockimpl.Unsaid, err
		}
		s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
			return stockimpl.Unsaid, s.redis().IncrBy(ctx, quarter(s, o.ID), int64(o.Quantity)).Err()
		}
	}
}
