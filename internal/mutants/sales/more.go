package sales

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// moreSaleMutants need an error reply, a second client, a long time, an unusual number or name, or many
// orders to be seen.
func moreSaleMutants() []Sale {
	over, under, once := entry.Breaks(variant.NoOversell), entry.Breaks(variant.NoUndersell), entry.Breaks(variant.OncePerOrder)
	return []Sale{
		{entry.New("error-reply-sold-out", "an error reply of the server, such as OOM, is taken for sold out", under, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, buyLua, o, l)
					if reply := redis.Error(nil); errors.As(err, &reply) {
						err = stockimpl.ErrSoldOut
					}
					return left, err
				}
			})},
		{entry.New("late-record-frees-refund", "a purchase writes its order once more by a second command, so a refund in between can be had again", entry.Breaks(variant.OncePerOrder, variant.NoOversell), ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, buyLua, o, l)
					if err != nil {
						return left, err
					}
					return left, s.redis().HSet(ctx, s.of(s.product)[1], o.ID, "sold:"+strconv.Itoa(o.Quantity)).Err()
				}
			})},
		{entry.New("background-purchase-stale", "a purchase whose context ends goes on in the background, and is reported as stale", under, ""),
			selling(func(s *saleSteps) { s.buyBy = inBackground })},
		{entry.New("slow-is-sold-out", "a purchase that takes longer than a second is refused as sold out", under, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					own, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					left, err := s.script(own, buyLua, o, l)
					if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
						err = stockimpl.ErrSoldOut
					}
					return left, err
				}
			})},
		{entry.New("sold-out-after-conflicts", "a purchase whose transaction failed five times is refused as sold out", under, ""),
			counting(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (left int64, err error) {
					for range 5 {
						if left, err = watchOnce(ctx, s, -int64(o.Quantity)); !errors.Is(err, redis.TxFailedErr) {
							return left, err
						}
					}
					return 0, stockimpl.ErrSoldOut
				}
				s.refundBy = underWatch(1)
			})},
		{entry.New("commands-while-script-unknown", "while the server does not know the script, a purchase looks and takes by separate commands", entry.Breaks(variant.NoOversell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) { s.buyBy = byCommands })},
		{entry.New("refund-less-uses-up", "a refund of fewer pieces than were bought gives back those, and uses the order up", entry.Breaks(variant.OncePerOrder, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)`, `if tonumber(ARGV[2]) < tonumber(pieces) then pieces = ARGV[2] end
				redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)`)
			})},
		{entry.New("fence-as-double", "fencing tokens are compared as floating-point numbers, so large neighbours are equal", entry.Breaks(variant.Fencing), ""),
			fenced(func(s *saleSteps) { // as the sound one, before its tokens were compared as texts
				s.buy = entry.Changed(s.buy, exactlyOlder, `tonumber(ARGV[3]) < tonumber(newest)`)
				s.refund = entry.Changed(s.refund, exactlyOlder, `tonumber(ARGV[3]) < tonumber(newest)`)
			})},
		{entry.New("orders-of-six-digits", "orders are known by the last six digits of their number", entry.Breaks(variant.OncePerOrder, variant.NoUndersell), ""),
			selling(func(s *saleSteps) { s.order = func(id int64) any { return id % 1_000_000 } })},
		{entry.New("order-zero", "order 0 counts as an order without a number", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1`, `ARGV[1] ~= '0' and redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1`)
			})},
		{entry.New("names-of-128-bytes", "a product's name is cut at 128 bytes", entry.Breaks(variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.keys = func(product string) []string {
					return (&sale{}).of(product[:min(len(product), 128)])
				}
			})},
		{entry.New("product-names-as-numbers", "a product's name that is a number is read as one", entry.Breaks(variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.keys = func(product string) []string { return (&sale{}).of(entry.AsNumber(product)) }
			})},
		{entry.New("last-two-thousand-orders", "the last two thousand orders are remembered", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('LPUSH', KEYS[4], ARGV[1])
				if redis.call('LLEN', KEYS[4]) > 2000 then redis.call('HDEL', KEYS[2], redis.call('RPOP', KEYS[4])) end
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
		{entry.New("refunded-kept-for-two-months", "an order that was refunded is forgotten two months later, and a copy of it buys again", once, ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)`, `redis.call('HDEL', KEYS[2], ARGV[1])
				redis.call('SET', KEYS[2] .. '/refunded/' .. ARGV[1], 1, 'EX', 60 * 86400)`)
				s.refund = entry.Changed(s.refund, `if not order then`, `if redis.call('EXISTS', KEYS[2] .. '/refunded/' .. ARGV[1]) == 1 then return {'repeated', -1} end
				if not order then`)
				s.buy = entry.Changed(s.buy, `redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1`, `redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 or redis.call('EXISTS', KEYS[2] .. '/refunded/' .. ARGV[1]) == 1`)
			})},
		{entry.New("sum-overflows", "what is sold and what is ordered are added in 64 bits, and the sum is compared with the stock", over, ""),
			counting(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					keys := s.of(s.product)
					values, err := s.redis().MGet(ctx, keys[0], keys[2]).Result()
					if err != nil {
						return 0, err
					}
					text, _ := values[0].(string)
					count, _ := values[1].(string)
					left, err := strconv.ParseInt(text, 10, 64)
					if err != nil {
						return 0, errors.New("the product is not on sale")
					}
					sold, _ := strconv.ParseInt(count, 10, 64)
					if sum := sold + int64(o.Quantity); sum > left+sold {
						return 0, stockimpl.ErrSoldOut
					} else if sum > 0 { // the script looks again
						left, err := s.script(ctx, countLua, o, l)
						if err == nil {
							err = s.redis().IncrBy(ctx, keys[2], int64(o.Quantity)).Err()
						}
						return left, err
					}
					return left - int64(o.Quantity), nil
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
				}
			})},
	}
}

// inBackground answers ErrStale when the context ends, and lets the purchase go on.
func inBackground(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	type reply struct {
		left int64
		err  error
	}
	done := make(chan reply, 1)
	go func() {
		left, err := s.script(context.WithoutCancel(ctx), buyLua, o, l)
		done <- reply{left, err}
	}()
	select {
	case r := <-done:
		return r.left, r.err
	case <-ctx.Done():
		return 0, stockimpl.ErrStale
	}
}

// watchOnce adds to the stock in one transaction that fails if somebody wrote in between.
func watchOnce(ctx context.Context, s *sale, by int64) (left int64, err error) {
	stock := s.of(s.product)[0]
	err = s.redis().Watch(ctx, func(tx *redis.Tx) error {
		if left, err = tx.Get(ctx, stock).Int64(); err != nil {
			return err
		}
		if left += by; left < 0 {
			return stockimpl.ErrSoldOut
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, stock, left, 0).Err() })
		return err
	}, stock)
	return left, err
}

// byCommands runs the script if the server knows it, and otherwise commands that do the same.
func byCommands(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	script, keys := redis.NewScript(buyLua), s.of(s.product)
	err := script.EvalSha(ctx, s.redis(), keys, "none", 1<<62, 0).Err()
	if err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.script(ctx, buyLua, o, l)
	}
	left, err := s.redis().Get(ctx, keys[0]).Int64()
	if err != nil {
		return 0, err
	}
	there, err := s.redis().HExists(ctx, keys[1], strconv.FormatInt(o.ID, 10)).Result()
	switch {
	case err != nil:
		return 0, err
	case there:
		return 0, stockimpl.ErrRepeated
	case left < int64(o.Quantity):
		return 0, stockimpl.ErrSoldOut
	}
	if err := script.Load(ctx, s.redis()).Err(); err != nil {
		return 0, err
	}
	_, err = s.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.DecrBy(ctx, keys[0], int64(o.Quantity))
		p.HSet(ctx, keys[1], o.ID, "sold:"+strconv.Itoa(o.Quantity))
		return p.IncrBy(ctx, keys[2], int64(o.Quantity)).Err()
	})
	return left - int64(o.Quantity), err
}

// moreSoundSales are sound in unusual ways.
func moreSoundSales() []Sale {
	return []Sale{
		{entry.New("sound-list-of-pieces", "each piece is an entry of a list, so the stock is at most 200,000", nil, ""),
			selling(func(s *saleSteps) {
				s.open, s.state = openList, stateOfList
				replace := strings.NewReplacer(`redis.call('GET', KEYS[1])`, `redis.call('GET', KEYS[4]) and redis.call('LLEN', KEYS[1])`, `redis.call('EXISTS', KEYS[1])`, `redis.call('EXISTS', KEYS[4])`)
				s.buy = entry.Changed(replace.Replace(s.buy), `return {'ok', redis.call('DECRBY', KEYS[1], ARGV[2])}`, `redis.call('LPOP', KEYS[1], ARGV[2])
				return {'ok', redis.call('LLEN', KEYS[1])}`)
				s.refund = entry.Changed(replace.Replace(s.refund), `return {'ok', redis.call('INCRBY', KEYS[1], pieces)}`, `for i = 1, tonumber(pieces) do redis.call('RPUSH', KEYS[1], 'piece') end
				return {'ok', redis.call('LLEN', KEYS[1])}`)
			})},
		{entry.New("sound-reserved-for-10-s", "pieces are set aside for ten seconds, and then bought", nil, ""),
			setAside(reserveLua)},
		{entry.New("sound-reserved-and-reconciled", "pieces that are set aside come back by a purchase, or when Reconcile is called", nil, ""), reconciles(reconcileLua)},
		{entry.New("sound-number-fixes-quantity", "an order that was refused, and comes again for another quantity, is an error", nil, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `if redis.call('HEXISTS'`, `local first = redis.call('HGET', KEYS[4], ARGV[1])
				if first and first ~= ARGV[2] then return {'another-quantity', -1} end
				redis.call('HSET', KEYS[4], ARGV[1], ARGV[2])
				if redis.call('HEXISTS'`)
			})},
	}
}

func openList(ctx context.Context, s *sale, stock int64) error {
	if stock > 200_000 {
		return fmt.Errorf("open %q: a stock of %d pieces is too large for a list", s.product, stock)
	}
	keys := s.of(s.product)
	_, err := s.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		for range stock {
			p.RPush(ctx, keys[0], "piece")
		}
		return p.Set(ctx, keys[3], 1, 0).Err()
	})
	return err
}

func stateOfList(ctx context.Context, s *sale) (stockimpl.State, error) {
	keys := s.of(s.product)
	reply, err := redis.NewScript(`return {redis.call('LLEN', KEYS[1]), tonumber(redis.call('GET', KEYS[3]) or '0')}`).Run(ctx, s.redis(), keys).Int64Slice()
	if err != nil {
		return stockimpl.State{}, err
	}
	return stockimpl.State{Left: reply[0], Sold: reply[1]}, nil
}

// The scripts of a sale that sets pieces aside. KEYS[5] has the deadline of what is set aside for an
// order, KEYS[6] its pieces. An order is set aside by its number and the nonce of the attempt.
const (
	reapLua = `
local now = tonumber(redis.call('TIME')[1])
for _, who in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now)) do
  redis.call('INCRBY', KEYS[1], redis.call('HGET', KEYS[6], who))
  redis.call('ZREM', KEYS[5], who)
  redis.call('HDEL', KEYS[6], who)
end
`
	reserveLua = reapLua + `
local left = redis.call('GET', KEYS[1])
if not left then return {'absent', -1} end
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return {'repeated', -1} end
if tonumber(left) < tonumber(ARGV[2]) then
  local aside = 0
  for _, pieces in ipairs(redis.call('HVALS', KEYS[6])) do aside = aside + tonumber(pieces) end
  if tonumber(left) + aside < tonumber(ARGV[2]) then return {'sold-out', -1} end
  return {'stale', -1}
end
redis.call('DECRBY', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[5], now + 10, ARGV[3])
redis.call('HSET', KEYS[6], ARGV[3], ARGV[2])
return {'ok', -1}`
	confirmLua = `
local pieces = redis.call('HGET', KEYS[6], ARGV[3])
if not pieces then return {'stale', -1} end
redis.call('HDEL', KEYS[6], ARGV[3])
redis.call('ZREM', KEYS[5], ARGV[3])
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  redis.call('INCRBY', KEYS[1], pieces)
  return {'repeated', -1}
end
redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. pieces)
redis.call('INCRBY', KEYS[3], pieces)
return {'ok', -1}`
)

func (s *sale) reserving(ctx context.Context, text string, args ...any) *redis.Cmd {
	return redis.NewScript(text).Run(ctx, s.redis(), append(s.of(s.product), "Until:"+s.product, "Aside:"+s.product), args...)
}

// setAside makes a variant of a sale that sets pieces aside by a script, and then confirms that they are
// bought.
func setAside(script string) stockimpl.Variant {
	return selling(func(s *saleSteps) {
		s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
			return buyReserved(ctx, s, o, script)
		}
		s.refundBy, s.state = refundReserved, stateReserved
	})
}

// reconcileLua returns what is due, and the number of orders that had it.
var reconcileLua = "local n = 0\n" + entry.Changed(reapLua, `redis.call('ZREM', KEYS[5], who)`, `n = n + redis.call('ZREM', KEYS[5], who)`) + "return n"

// reconciles makes a variant of setAside that returns what is due by a script.
func reconciles(script string) stockimpl.Variant {
	v := setAside(reserveLua)
	n := v.New
	v.New = func(env variant.Env, product string) stockimpl.Sale {
		return reconciling{n(env, product).(*sale), script}
	}
	return v
}

type reconciling struct {
	*sale
	script string
}

// Reconcile implements stockimpl.Reconciler.
func (r reconciling) Reconcile(ctx context.Context) (int64, error) {
	return r.reserving(ctx, r.script).Int64()
}

// buyReserved sets pieces aside and then confirms that they are bought.
func buyReserved(ctx context.Context, s *sale, o stockimpl.Order, script string) (int64, error) {
	return reservedAs(ctx, s, o, script, confirmLua, fmt.Sprint(o.ID, "/", rand.Text()))
}

func refundReserved(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	_, err := s.script(ctx, refundLua, o, l)
	return stockimpl.Unsaid, err
}

func stateReserved(ctx context.Context, s *sale) (stockimpl.State, error) {
	reply, err := s.reserving(ctx, `
local aside = 0
for _, pieces in ipairs(redis.call('HVALS', KEYS[6])) do aside = aside + tonumber(pieces) end
return {tonumber(redis.call('GET', KEYS[1]) or '-1'), aside, tonumber(redis.call('GET', KEYS[3]) or '0')}`).Int64Slice()
	if err != nil {
		return stockimpl.State{}, err
	}
	if reply[0] < 0 {
		return stockimpl.State{}, errors.New("the product is not on sale")
	}
	return stockimpl.State{Left: reply[0], Reserved: reply[1], Sold: reply[2]}, nil
}
