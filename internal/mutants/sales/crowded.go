package sales

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// crowdedMutants show their flaw when more than a hundred buyers die, or when one is held up around the last piece.
func crowdedMutants() []Sale {
	over, under, once := entry.Breaks(variant.NoOversell), entry.Breaks(variant.NoUndersell), entry.Breaks(variant.OncePerOrder)
	return []Sale{
		{entry.New("flag-set-late", "the buyer of the last piece sets a flag that says that all is sold by a second command, which may come after a refund has cleared it", under, ""),
			selling(func(s *saleSteps) {
				flag := func(s *sale) string { return "Flag:" + s.product }
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					if out, err := s.redis().Exists(ctx, flag(s)).Result(); err != nil || out == 1 {
						if err == nil {
							err = repeatedOr(ctx, s, o, stockimpl.ErrSoldOut)
						}
						return stockimpl.Unsaid, err
					}
					left, err := s.script(ctx, buyLua, o, l)
					if err == nil && left == 0 {
						_ = s.redis().Set(ctx, flag(s), 1, 0).Err() // whoever comes next looks at the stock
					}
					return left, err
				}
				s.refund = entry.Changed(s.refund, `redis.call('DECRBY', KEYS[3], pieces)`, `redis.call('DECRBY', KEYS[3], pieces)
redis.call('DEL', 'Flag:' .. string.sub(KEYS[1], #'Stock:' + 1))`)
			})},
		{entry.New("copy-told-sold-out", "a purchase looks whether its order was counted, and then, by a second command, whether anything is left, so that a copy of the order for the last piece is told that all is sold", entry.Breaks(variant.OncePerOrder, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					if err := repeatedOr(ctx, s, o, nil); err != nil {
						return stockimpl.Unsaid, err
					}
					if left, err := s.redis().Get(ctx, s.of(s.product)[0]).Result(); err == nil && left == "0" {
						return stockimpl.Unsaid, stockimpl.ErrSoldOut
					}
					return s.script(ctx, buyLua, o, l)
				}
			})},
		{entry.New("refused-is-repeated", "a refused order is noted, and if it comes again, it is told that it was counted", entry.Breaks(variant.OncePerOrder, variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(buyLua, `then return {'sold-out', -1} end`, `then redis.call('HSET', KEYS[2], ARGV[1], 'refused:0') return {'sold-out', -1} end`)
			})},
		{entry.New("attempts-add-up", "each attempt of an order adds to its pieces, also one that is refused, and a refund returns them all", entry.Breaks(variant.NoOversell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(buyLua, `if tonumber(left) <`, `redis.call('HINCRBY', KEYS[2] .. ':pieces', ARGV[1], ARGV[2]) if tonumber(left) <`)
				s.refund = entry.Changed(refundLua, `if state ~=`, `pieces = redis.call('HGET', KEYS[2] .. ':pieces', ARGV[1]) if state ~=`)
			})},
		{entry.New("closed-after-third-time", "a product that was sold out three times is not sold any more", under, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(buyLua, `if tonumber(left) <`, `if tonumber(redis.call('GET', KEYS[2] .. ':times') or 0) >= 3 then return {'sold-out', -1} end
if tonumber(left) == tonumber(ARGV[2]) then redis.call('INCR', KEYS[2] .. ':times') end
if tonumber(left) <`)
			})},
		{entry.New("under-way-for-ever", "at most 64 orders may be under way, and one whose buyer died counts for ever", under, ""),
			selling(func(s *saleSteps) {
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					key := "UnderWay:" + s.product
					n, err := s.redis().Incr(ctx, key).Result()
					if err != nil {
						return stockimpl.Unsaid, err
					}
					defer s.redis().Decr(context.WithoutCancel(ctx), key)
					if n > 64 {
						return stockimpl.Unsaid, stockimpl.ErrStale
					}
					return s.script(ctx, buyLua, o, l)
				}
			})},
		{entry.New("purchase-setup-error-kept", "a client sends a PING before its first purchase, and answers every purchase with the error of that", under, ""),
			selling(func(s *saleSteps) {
				var asked sync.Map // the error by client
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					first, found := asked.Load(s)
					if !found {
						first = s.redis().Ping(ctx)
						asked.Store(s, first)
					}
					if err := first.(*redis.StatusCmd).Err(); err != nil {
						return stockimpl.Unsaid, err
					}
					return s.script(ctx, buyLua, o, l)
				}
			})},
		{entry.New("version-of-8-bits", "a purchase reads the stock and writes it if the version is the same, which is counted in 8 bits", entry.Breaks(variant.NoOversell, variant.NoUndersell), ""),
			selling(func(s *saleSteps) { s.buyBy = byVersion })},
		{entry.New("breaker-says-sold-out", "after three failed purchases a client answers its orders as sold out for half a second, without asking the server", under, ""),
			selling(func(s *saleSteps) {
				type breaker struct {
					failed int
					until  time.Time
				}
				var breakers sync.Map // by client
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					any, _ := breakers.LoadOrStore(s, new(breaker))
					b := any.(*breaker)
					if time.Now().Before(b.until) {
						return stockimpl.Unsaid, stockimpl.ErrSoldOut
					}
					left, err := s.script(ctx, buyLua, o, l)
					if err == nil || errors.Is(err, stockimpl.ErrSoldOut) || errors.Is(err, stockimpl.ErrRepeated) {
						b.failed = 0
					} else if b.failed++; b.failed == 3 {
						b.failed, b.until = 0, time.Now().Add(time.Second/2)
					}
					return left, err
				}
			})},
		{entry.New("huge-orders-in-parts", "an order for more than 500 is taken 500 at a time, and what was taken is given back if there is too little", under, ""),
			counting(inParts(500))},
		{entry.New("reaper-drops-the-rest", "of the reservations whose time is over the first two hundred come back, and the others stay set aside for ever", under, ""),
			setAside(entry.Changed(reserveLua, `  redis.call('INCRBY', KEYS[1], redis.call('HGET', KEYS[6], who))
  redis.call('ZREM', KEYS[5], who)
  redis.call('HDEL', KEYS[6], who)`, `  if _ <= 200 then
    redis.call('INCRBY', KEYS[1], redis.call('HGET', KEYS[6], who))
    redis.call('HDEL', KEYS[6], who)
  end
  redis.call('ZREM', KEYS[5], who)`))},
		{entry.New("reconcile-ends-ten", "a call of Reconcile returns the pieces of ten orders at most", entry.Breaks(entry.Contract), ""),
			reconciles(entry.Changed(reconcileLua, `'-inf', now)`, `'-inf', now, 'LIMIT', 0, 10)`))},
		{entry.New("reconcile-counts-none", "a call of Reconcile answers that no order lost its reservation", entry.Breaks(entry.Contract), ""),
			reconciles(entry.Changed(reconcileLua, `return n`, `return 0`))},
		{entry.New("orders-by-32-bits-of-sha1", "an order is known by the first eight digits of the SHA-1 of its number", entry.Breaks(variant.NoUndersell, variant.OncePerOrder), ""),
			selling(func(s *saleSteps) {
				s.order = func(id int64) any {
					sum := sha1.Sum(strconv.AppendInt(nil, id, 10))
					return hex.EncodeToString(sum[:4])
				}
			})},
		{entry.New("stock-in-bytes", "from 256 pieces on the stock is rounded up to a multiple of eight", over, ""),
			selling(func(s *saleSteps) {
				s.buy = entry.Changed(s.buy, `if tonumber(left) < tonumber(ARGV[2]) then`, `local all = tonumber(left) + tonumber(redis.call('GET', KEYS[3]) or '0')
local more = all >= 256 and (-all) % 8 or 0
if tonumber(left) + more < tonumber(ARGV[2]) then`)
			})},
		{entry.New("refund-beside-copy-twice", "a refund looks at the order by one command and gives its pieces back by the next", once, ""),
			selling(func(s *saleSteps) {
				s.refundBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					look := `return {redis.call('HGET', KEYS[2], ARGV[1]) or '', 0}`
					reply, err := s.reserving(ctx, look, o.ID).Slice()
					if err != nil {
						return stockimpl.Unsaid, err
					}
					if text, _ := reply[0].(string); len(text) < 4 || text[:4] != "sold" {
						return s.script(ctx, refundLua, o, l)
					}
					return s.script(ctx, entry.Changed(refundLua, `if state ~= 'sold' then return {'repeated', -1} end`, ``), o, l)
				}
			})},
	}
}

// repeatedOr returns ErrRepeated if the order was counted, and otherwise another error.
func repeatedOr(ctx context.Context, s *sale, o stockimpl.Order, other error) error {
	known, err := s.redis().HExists(ctx, s.of(s.product)[1], strconv.FormatInt(o.ID, 10)).Result()
	switch {
	case err != nil:
		return err
	case known:
		return stockimpl.ErrRepeated
	}
	return other
}

// soundCrowded are sound, and keep to less than most.
func soundCrowded() []Sale {
	estimated := selling(func(s *saleSteps) {
		s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.script(ctx, buyLua, o, l)
			return (left + 9) / 10 * 10, err
		}
	})
	estimated.Promises = []variant.Property{variant.NoOversell, variant.NoUndersell, variant.OncePerOrder}
	return []Sale{
		{entry.New("sound-left-rounded", "a purchase says how many are left in tens, and does not promise linearizable", nil, ""), estimated},
		{entry.New("sound-numbers-of-32-bits", "order numbers of more than 32 bits, and products without pieces, are refused before a command is sent", nil, ""),
			selling(func(s *saleSteps) {
				s.open = func(ctx context.Context, s *sale, stock int64) error {
					if stock == 0 {
						return errors.New("no pieces to sell")
					}
					return s.redis().Set(ctx, s.of(s.product)[0], stock, 0).Err()
				}
				s.buyBy = func(ctx context.Context, s *sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					if o.ID < 1 || o.ID >= 1<<32 {
						return stockimpl.Unsaid, errors.New("order numbers have 32 bits")
					}
					return s.script(ctx, buyLua, o, l)
				}
			})},
	}
}

// versionedWrite writes the stock and the order if the version is as it was read.
var versionedWrite = redis.NewScript(`
	if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 2 end
	if (redis.call('GET', KEYS[4]) or '0') ~= ARGV[4] then return 0 end
	redis.call('SET', KEYS[4], (ARGV[4] + 1) % 256)
	redis.call('SET', KEYS[1], ARGV[3])
	redis.call('INCRBY', KEYS[3], ARGV[2])
	redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. ARGV[2])
	return 1`)

// byVersion buys by a version of 8 bits.
func byVersion(ctx context.Context, s *sale, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	keys := s.of(s.product)
	for {
		read, err := s.redis().MGet(ctx, keys[0], keys[3]).Result()
		if err != nil {
			return stockimpl.Unsaid, err
		}
		text, _ := read[0].(string)
		left, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return stockimpl.Unsaid, stockimpl.ErrSoldOut // it was never opened
		}
		version, _ := read[1].(string)
		if left < int64(o.Quantity) {
			if there, err := s.redis().HExists(ctx, keys[1], strconv.FormatInt(o.ID, 10)).Result(); there || err != nil {
				return stockimpl.Unsaid, cmp.Or(err, stockimpl.ErrRepeated)
			}
			return left, stockimpl.ErrSoldOut
		}
		switch wrote, err := versionedWrite.Run(ctx, s.redis(), keys, o.ID, o.Quantity, left-int64(o.Quantity), cmp.Or(version, "0")).Int(); {
		case err != nil:
			return stockimpl.Unsaid, err
		case wrote == 2:
			return stockimpl.Unsaid, stockimpl.ErrRepeated
		case wrote == 1:
			return left - int64(o.Quantity), nil
		}
	}
}
