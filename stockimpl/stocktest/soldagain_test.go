package stocktest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// unitSale keeps a set of pieces, and the pieces of each order, which a refund puts back.
type unitSale struct {
	rdb           redis.UniversalClient
	pieces, taken string
	inSteps       bool // a refund reads the pieces, and puts them back by a transaction
}

func units(inSteps bool) stockimpl.Variant {
	return stockimpl.Variant{
		Promises: []variant.Property{variant.NoOversell, variant.NoUndersell, variant.OncePerOrder},
		New: func(env variant.Env, product string) stockimpl.Sale {
			return &unitSale{env.Redis[0], product + "/pieces", product + "/taken", inSteps}
		},
	}
}

func (s *unitSale) Open(ctx context.Context, stock int64) error {
	for n := range stock {
		if err := s.rdb.SAdd(ctx, s.pieces, n).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (s *unitSale) script(ctx context.Context, text string, o stockimpl.Order) (int64, error) {
	code, err := s.rdb.Eval(ctx, text, []string{s.pieces, s.taken}, o.ID, o.Quantity).Int()
	if err != nil {
		return stockimpl.Unsaid, err
	}
	return stockimpl.Unsaid, []error{nil, stockimpl.ErrSoldOut, stockimpl.ErrRepeated, errors.New("never bought")}[code]
}

func (s *unitSale) Buy(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	return s.script(ctx, `
		if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 2 end
		if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[2]) then return 1 end
		redis.call('HSET', KEYS[2], ARGV[1], table.concat(redis.call('SPOP', KEYS[1], ARGV[2]), ','))
		return 0`, o)
}

func (s *unitSale) Refund(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	if !s.inSteps {
		return s.script(ctx, `
			local units = redis.call('HGET', KEYS[2], ARGV[1])
			if not units then return 3 end
			if units == 'back' then return 2 end
			for id in string.gmatch(units, '[^,]+') do redis.call('SADD', KEYS[1], id) end
			redis.call('HSET', KEYS[2], ARGV[1], 'back')
			return 0`, o)
	}
	id := strconv.FormatInt(o.ID, 10)
	units, err := s.rdb.HGet(ctx, s.taken, id).Result()
	if err != nil {
		return stockimpl.Unsaid, err
	}
	if units == "back" {
		return stockimpl.Unsaid, stockimpl.ErrRepeated
	}
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, s.pieces, strings.Split(units, ","))
		p.HSet(ctx, s.taken, id, "back")
		return nil
	})
	return stockimpl.Unsaid, err
}

func (s *unitSale) State(ctx context.Context) (stockimpl.State, error) {
	n, err := s.rdb.SCard(ctx, s.pieces).Result()
	return stockimpl.State{Left: n, Sold: stockimpl.Unsaid}, err
}

// TestSoldAgain checks that a piece which a refund reads, and brings back by a later command, does not come back twice.
func TestSoldAgain(t *testing.T) {
	r := find(t, "a refund held up while its piece is sold again")
	if err := r.check(t.Context(), newBenchOf(newBench(t), units(false))); err != nil {
		t.Errorf("a refund that is one script: the rule accuses it: %v", err)
	}
	if err := r.check(t.Context(), newBenchOf(newBench(t), units(true))); err == nil || !strings.Contains(err.Error(), "no-oversell is broken: all 2 pieces were sold") {
		t.Errorf("a refund that is two commands: the rule says %v; want that pieces were oversold", err)
	}
}
