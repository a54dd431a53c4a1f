package sales

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// trialMutants go wrong when a context ends, when the server is in trouble, when others write again and
// again, or when pieces that were set aside are due.
func trialMutants() []Sale {
	over, under, once := entry.Breaks(variant.NoOversell), entry.Breaks(variant.NoUndersell), entry.Breaks(variant.OncePerOrder)
	return []Sale{
		{entry.New("deadline-sold-out", "a purchase whose deadline has passed is refused as sold out; one that was cancelled is not", under, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, buyLua, o, l)
					if errors.Is(err, context.DeadlineExceeded) {
						err = stockimpl.ErrSoldOut
					}
					return left, err
				}
			})},
		{entry.New("ended-refund-repeated", "a refund whose context has ended is answered as one that came before", entry.Breaks(variant.NoUndersell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) {
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, refundLua, o, l)
					if err != nil && ctx.Err() != nil {
						err = stockimpl.ErrRepeated
					}
					return left, err
				}
			})},
		{entry.New("busy-server-sold-out", "while the server runs another script, or its cluster is not in order, purchases are refused as sold out", under, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, buyLua, o, l)
					if err != nil {
						kind, _, _ := strings.Cut(err.Error(), " ")
						if slices.Contains([]string{"BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"}, kind) {
							err = stockimpl.ErrSoldOut
						}
					}
					return left, err
				}
			})},
		{entry.New("refused-refund-done", "a refund that the server refuses with NOAUTH or NOPERM is answered as done", entry.Breaks(variant.NoUndersell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) {
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, refundLua, o, l)
					if err != nil && strings.HasPrefix(err.Error(), "NO") { // NOAUTH and NOPERM
						return stockimpl.Unsaid, nil
					}
					return left, err
				}
			})},
		{entry.New("state-of-refusal-empty", "where the server refuses to tell what it holds, nothing is said to be there", under, ""),
			selling(func(s *saleSteps) {
				s.state = func(ctx context.Context, s *sale) (stockimpl.State, error) {
					plain := *s
					plain.saleSteps.state = nil
					state, err := plain.State(ctx)
					if reply := redis.Error(nil); errors.As(err, &reply) {
						return stockimpl.State{}, nil
					}
					return state, err
				}
			})},
		{entry.New("sold-out-after-many-conflicts", "a purchase whose transaction failed sixty times is refused as sold out", under, ""),
			counting(func(s *saleSteps) { s.buyBy, s.refundBy = watchTimes(60, -1, stockimpl.ErrSoldOut), underWatch(1) })},
		{entry.New("refund-done-after-conflicts", "a refund whose transaction failed forty times is taken for done", under, ""),
			counting(func(s *saleSteps) { s.buyBy, s.refundBy = underWatch(-1), watchTimes(40, 1, nil) })},
		{entry.New("own-reservation-only", "what a buyer that died had set aside comes back only when its own order is sent again", under, ""),
			setAside(entry.Changed(reserveLua, `  redis.call('INCRBY', KEYS[1], redis.call('HGET', KEYS[6], who))
  redis.call('ZREM', KEYS[5], who)
  redis.call('HDEL', KEYS[6], who)`, `  if string.sub(who, 1, #ARGV[1] + 1) == ARGV[1] .. '/' then
    redis.call('INCRBY', KEYS[1], redis.call('HGET', KEYS[6], who))
    redis.call('ZREM', KEYS[5], who)
    redis.call('HDEL', KEYS[6], who)
  end`))},
		{entry.New("reservation-comes-back-twice", "what was set aside and is due comes back at the next purchase, and at the one after that", over, ""),
			setAside(entry.Changed(reserveLua, `  redis.call('ZREM', KEYS[5], who)
  redis.call('HDEL', KEYS[6], who)`, `  if redis.call('HINCRBY', KEYS[6], who .. '/back', 1) == 2 then
    redis.call('ZREM', KEYS[5], who)
    redis.call('HDEL', KEYS[6], who, who .. '/back')
  end`))},
		{entry.New("reserved-again-by-copy", "a copy of an order that has pieces set aside sets as many aside again, under the same name", under, ""),
			selling(func(s *saleSteps) {
				s.refundBy, s.state = refundReserved, stateReserved
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return reservedAs(ctx, s, o, entry.Changed(reserveLua, `redis.call('HSET', KEYS[6], ARGV[3], ARGV[2])`, `redis.call('HINCRBY', KEYS[6], ARGV[3], ARGV[2])`), entry.Changed(confirmLua, `redis.call('HDEL', KEYS[6], ARGV[3])`, `pieces = ARGV[2]
if redis.call('HINCRBY', KEYS[6], ARGV[3], '-' .. pieces) == 0 then redis.call('HDEL', KEYS[6], ARGV[3]) end`), strconv.FormatInt(o.ID, 10))
				}
			})},
		{entry.New("reserved-again-for-fewer", "an order that has pieces set aside, and is sent again for another quantity, sets that aside as well, under the same name", under, ""),
			selling(func(s *saleSteps) {
				s.refundBy, s.state = refundReserved, stateReserved
				reserve := entry.Changed(reserveLua, `redis.call('DECRBY', KEYS[1], ARGV[2])`, `if redis.call('HGET', KEYS[6], ARGV[3]) == ARGV[2] then return {'ok', -1} end
redis.call('DECRBY', KEYS[1], ARGV[2])`)
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return reservedAs(ctx, s, o, reserve, confirmLua, strconv.FormatInt(o.ID, 10))
				}
			})},
		{entry.New("thousandth-not-counted", "every thousandth purchase is not counted as sold", under, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `if redis.call('INCR', KEYS[4] .. '/purchases') % 1000 ~= 0 then redis.call('INCRBY', KEYS[3], ARGV[2]) end`)
			})},
		{entry.New("reaped-in-two-steps", "what is due is listed by one command and given back by others, without a look whether it is still there", over, ""),
			selling(func(s *saleSteps) {
				s.refundBy, s.state = refundReserved, stateReserved
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					if err := reapInSteps(ctx, s); err != nil {
						return 0, err
					}
					return buyReserved(ctx, s, o, strings.Replace(strings.TrimPrefix(reserveLua, reapLua), `now + 10`, `redis.call('TIME')[1] + 1`, 1))
				}
			})},
		{entry.New("orders-by-the-hour", "orders are kept in a table for each hour of the server's clock, and looked for in this hour's and the last", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1`, `local hour = math.floor(tonumber(redis.call('TIME')[1]) / 3600)
				if redis.call('SISMEMBER', KEYS[4] .. '/' .. hour, ARGV[1]) + redis.call('SISMEMBER', KEYS[4] .. '/' .. (hour - 1), ARGV[1]) > 0`)
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('SADD', KEYS[4] .. '/' .. hour, ARGV[1])
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
	}
}

// limitMutants have a limit that only large numbers, or many orders, reach.
func limitMutants() []Sale {
	over, once := entry.Breaks(variant.NoOversell), entry.Breaks(variant.OncePerOrder)
	return []Sale{
		{entry.New("order-noted-before-sum", "an order is noted and counted, and both are taken back if too few are left; a count that does not fit in 64 bits ends the script in between", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `if tonumber(left) < tonumber(ARGV[2]) then return {'sold-out', -1} end`, ``)
				s.buy = entry.Changed(s.buy, `return {'ok', redis.call('DECRBY', KEYS[1], ARGV[2])}`, `if tonumber(left) < tonumber(ARGV[2]) then
				  redis.call('HDEL', KEYS[2], ARGV[1])
				  redis.call('DECRBY', KEYS[3], ARGV[2])
				  return {'sold-out', -1}
				end
				return {'ok', redis.call('DECRBY', KEYS[1], ARGV[2])}`)
			})},
		{entry.New("refunded-last-hundreds", "the last two hundred orders that were refunded are remembered, and a copy of an earlier one buys again", once, ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `redis.call('DECRBY', KEYS[3], pieces)`, `redis.call('LPUSH', KEYS[4], ARGV[1])
				if redis.call('LLEN', KEYS[4]) > 200 then redis.call('HDEL', KEYS[2], redis.call('RPOP', KEYS[4])) end
				redis.call('DECRBY', KEYS[3], pieces)`)
			})},
		{entry.New("refunds-of-the-last-hundreds", "what an order bought is kept for the last three hundred, and an earlier one cannot be given back", entry.Breaks(variant.NoUndersell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('LPUSH', KEYS[4], ARGV[1])
				if redis.call('LLEN', KEYS[4]) > 300 then redis.call('HSET', KEYS[2], redis.call('RPOP', KEYS[4]), 'old:0') end
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
		{entry.New("refunds-last-hundreds", "that an order was refunded is remembered for the last two hundred refunds, and an earlier one can be had again", entry.Breaks(variant.OncePerOrder, variant.NoOversell), ""),
			selling(func(s *saleSteps) {
				s.refund = entry.Changed(s.refund, `if state ~= 'sold' then return {'repeated', -1} end
redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)`, `if redis.call('ZADD', KEYS[4], 'NX', redis.call('ZCARD', KEYS[4]) + tonumber(redis.call('HGET', KEYS[2], 'gone') or '0'), ARGV[1]) == 0 then return {'repeated', -1} end
				if redis.call('ZCARD', KEYS[4]) > 200 then
				  redis.call('ZREMRANGEBYRANK', KEYS[4], 0, 0)
				  redis.call('HINCRBY', KEYS[2], 'gone', 1)
				end`)
			})},
		{entry.New("last-orders-of-many", "the last thirty thousand orders are remembered", once, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('LPUSH', KEYS[4], ARGV[1])
				if redis.call('LLEN', KEYS[4]) > 30000 then redis.call('HDEL', KEYS[2], redis.call('RPOP', KEYS[4])) end
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
		{entry.New("stock-as-double", "what is left is worked out by the script and written with all its digits, of which a floating-point number holds fifteen", over, ""),
			counting(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					return s.script(ctx, entry.Changed(countLua, `return {'ok', redis.call('DECRBY', KEYS[1], ARGV[2])}`, `left = tonumber(left) - tonumber(ARGV[2])
					redis.call('SET', KEYS[1], string.format('%.0f', left))
					return {'ok', left}`), o, l)
				}
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
					return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
				}
			})},
		{entry.New("names-joined-with-numbers", "an order is kept under the product's name with the order's number behind it", entry.Breaks(variant.NoUndersell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1`, `redis.call('EXISTS', KEYS[2] .. ARGV[1]) == 1`)
				s.buy = entry.Changed(s.buy, `redis.call('INCRBY', KEYS[3], ARGV[2])`, `redis.call('SET', KEYS[2] .. ARGV[1], 1)
				redis.call('INCRBY', KEYS[3], ARGV[2])`)
			})},
		{entry.New("large-orders-in-parts", "an order for more than ten is taken ten at a time, and what was taken is given back if there is too little", entry.Breaks(variant.NoUndersell), ""),
			counting(inParts(10))},
	}
}

// inParts has orders taken some pieces at a time.
func inParts(size int) func(*saleSteps) {
	return func(s *saleSteps) {
		take := func(ctx context.Context, s *sale, pieces int, l lockimpl.Lock) (int64, error) {
			return s.script(ctx, countLua, stockimpl.Order{Quantity: pieces}, l)
		}
		s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (left int64, err error) {
			for took := 0; took < o.Quantity; took += size {
				if left, err = take(ctx, s, min(size, o.Quantity-took), l); err != nil {
					if took > 0 && errors.Is(err, stockimpl.ErrSoldOut) {
						_ = s.redis().IncrBy(ctx, s.of(s.product)[0], int64(took)).Err()
					}
					return 0, err
				}
			}
			return left, nil
		}
		s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
			return s.redis().IncrBy(ctx, s.of(s.product)[0], int64(o.Quantity)).Result()
		}
	}
}

// soundInTrials are sound where the others of this file are not.
func soundInTrials() []Sale {
	return []Sale{
		{entry.New("sound-sends-again", "a purchase whose answer is lost is sent again under its number, and the answer that it was counted before is passed on", nil, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.script(ctx, buyLua, o, l)
					for tries := 0; tries < 2 && err != nil && ctx.Err() == nil && !errors.Is(err, stockimpl.ErrSoldOut) && !errors.Is(err, stockimpl.ErrRepeated); tries++ {
						left, err = s.script(ctx, buyLua, o, l)
					}
					return left, err
				}
			})},
		{entry.New("sound-reserved-for-a-week", "pieces are set aside for a week, and then bought", nil, ""),
			setAside(entry.Changed(reserveLua, `now + 10`, `now + 7 * 86400`))},
	}
}

// watchTimes changes the stock under WATCH, up to so many times, and then answers with an error, or nil.
func watchTimes(times int, sign int64, then error) func(context.Context, *sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
	return func(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (left int64, err error) {
		for range times {
			if left, err = watchOnce(ctx, s, sign*int64(o.Quantity)); !errors.Is(err, redis.TxFailedErr) {
				return left, err
			}
		}
		return stockimpl.Unsaid, then
	}
}

// reservedAs sets pieces aside under a name, and confirms that they are bought.
func reservedAs(ctx context.Context, s *sale, o stockimpl.Order, reserve, confirm, name string) (int64, error) {
	for _, text := range []string{reserve, confirm} {
		reply, err := s.reserving(ctx, text, o.ID, o.Quantity, name).Slice()
		if err != nil {
			return 0, err
		}
		if _, err := answerOf(reply); err != nil {
			return 0, err
		}
	}
	return stockimpl.Unsaid, nil
}

// reapInSteps gives back what is due, by commands of its own.
func reapInSteps(ctx context.Context, s *sale) error {
	now, err := s.redis().Time(ctx).Result()
	if err != nil {
		return err
	}
	due, err := s.redis().ZRangeByScore(ctx, "Until:"+s.product, &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.Unix(), 10)}).Result()
	if err != nil {
		return err
	}
	for _, who := range due {
		pieces, err := s.redis().HGet(ctx, "Aside:"+s.product, who).Int64()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := s.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.IncrBy(ctx, s.of(s.product)[0], pieces)
			p.ZRem(ctx, "Until:"+s.product, who)
			p.HDel(ctx, "Aside:"+s.product, who)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
