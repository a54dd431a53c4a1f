package stockimpl

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

//go:embed ticket_write.lua
var ticketWriteText string

var ticketWriteScript = redis.NewScript(ticketWriteText)

// ticket is the gym example of [variant.TextDispatch]: take a number, and enter if it is above the one on display. The text calls
// this a picture of optimistic locking, but it is not: the number says when a client came, not what it has read. Two
// holders of numbers 1 and 2 may both read 10; 1 writes 9 and is on display; 2 is above 1 and writes 9 over it.
type ticket struct {
	record
	numbers, display string
}

func newTicket(env variant.Env, product string) Sale {
	s := makeTicket(env, product)
	return twoWay{&s}
}

func makeTicket(env variant.Env, product string) ticket {
	s := ticket{record: newRecord(env, product)}
	s.numbers, s.display = s.key("Ticket"), s.key("Display")
	return s
}

// take takes a number, and works out what will be left.
func (s *ticket) take(ctx context.Context, by int64) (number, left int64, err error) {
	if number, err = s.rdb.Incr(ctx, s.numbers).Result(); err != nil {
		return 0, Unsaid, err
	}
	if left, err = read(ctx, s.rdb, s.stock); err != nil {
		return 0, Unsaid, err
	}
	left, err = changed(left, by)
	return number, left, err
}

func (s *ticket) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
	number, left, err := s.take(ctx, by)
	if err != nil {
		return Unsaid, err
	}
	return answer(ticketWriteScript.Run(ctx, s.rdb, []string{s.stock, s.display}, number, left))
}
