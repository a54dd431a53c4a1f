package stockimpl

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

//go:embed ticket_enter.lua
var ticketEnterText string

//go:embed ticket_leave.lua
var ticketLeaveText string

var (
	ticketEnterScript = redis.NewScript(ticketEnterText)
	ticketLeaveScript = redis.NewScript(ticketLeaveText)
)

// machineWait is the longest pause before a waiting client checks again whether the machine is free.
const machineWait = 10 * time.Millisecond

// ticketMachine is the gym of [variant.TextDispatch] with a machine that one client at a time uses: take a number, read the stock,
// wait until the machine is free, enter if the number is above the one on display, write, leave. Excluding others from
// the machine does not correct the flaw, since the stock was read outside: numbers 1 and 2 may both read 10; 1 enters
// and writes 9; 2 waits, enters, because it is above 1, and writes 9 again.
//
// Nothing limits the time at the machine, so a client that dies there keeps it.
type ticketMachine struct {
	ticket
	env     variant.Env
	machine string
}

func newTicketMachine(env variant.Env, product string) Sale {
	s := &ticketMachine{ticket: makeTicket(env, product), env: env}
	s.machine = s.key("Machine")
	return twoWay{s}
}

func (s *ticketMachine) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
	number, left, err := s.take(ctx, by)
	if err != nil {
		return Unsaid, err
	}
	if err := s.enter(ctx, number); err != nil {
		return Unsaid, err
	}
	return answer(ticketLeaveScript.Run(ctx, s.rdb, []string{s.stock, s.display, s.machine}, number, left))
}

// enter waits until the machine is free, and takes it if the number is high enough.
func (s *ticketMachine) enter(ctx context.Context, number int64) error {
	for {
		reply, err := ticketEnterScript.Run(ctx, s.rdb, []string{s.display, s.machine}, number).Text()
		switch {
		case err != nil:
			return err
		case reply == "in":
			return nil
		case reply == "stale":
			return ErrStale
		}
		if err := s.env.Wait(ctx, s.machine, machineWait); err != nil {
			return ErrStale // nothing was written, and nothing will be
		}
	}
}
