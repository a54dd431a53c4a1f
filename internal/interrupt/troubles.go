package interrupt

import (
	"context"
	"fmt"
	"time"
)

// Trouble is a way in which calls of a client fail, or end early. Afterwards the client goes on.
type Trouble struct {
	What string
	// First says that the first call that the client ever makes is one of them.
	First bool
	// Makes makes such calls, one after the other. intN draws a number from 0 to n-1. Makes reports whether any call met the
	// trouble: the calls of a client that sends nothing through the Interceptor do not meet one that acts on commands.
	Makes func(ctx context.Context, line *Interceptor, intN func(n int) int, call func(context.Context)) (met bool)
}

// InARow is how many calls fail one after the other: more than a client may take for an accident.
const InARow = 5

// Troubles are errors, lost answers, and contexts that end: of several calls in a row, and of the first call of a client.
var Troubles = func() (all []Trouble) {
	for _, first := range []bool{false, true} {
		n, which := Calls(first)
		many := "many in a row"
		if first {
			many = which + " and many more"
		}
		all = append(all,
			Trouble{which + ", to which the server answers that " + Refusals[0].What, first, refused(n)},
			Trouble{which + ", without an answer", first, lost(n)},
			Trouble{many + ", whose contexts end at any time", first, endsAnyTime})
	}
	return all
}()

// Calls returns how many calls fail, and describes them: InARow calls, or the first one of a client.
func Calls(first bool) (n int, which string) {
	if first {
		return 1, "the first of a client"
	}
	return InARow, fmt.Sprintf("%d in a row", InARow)
}

func refused(n int) func(context.Context, *Interceptor, func(int) int, func(context.Context)) bool {
	return func(ctx context.Context, line *Interceptor, _ func(int) int, call func(context.Context)) (met bool) {
		for range n {
			Outage{Answer: Refusals[0].Err, Nth: 1}.On(line)
			call(ctx)
			met = met || line.Sent() > 0
		}
		line.Plan(nil)
		return met
	}
}

func lost(n int) func(context.Context, *Interceptor, func(int) int, func(context.Context)) bool {
	return func(ctx context.Context, line *Interceptor, _ func(int) int, call func(context.Context)) bool {
		line.Plan(func(int) Action { return LoseReply })
		for range n {
			call(ctx)
		}
		met := line.Sent() > 0
		line.Plan(nil)
		return met
	}
}

// endsAnyTime ends the contexts of many calls, at first almost at once and in the end when most calls have returned.
func endsAnyTime(ctx context.Context, _ *Interceptor, intN func(int) int, call func(context.Context)) (met bool) {
	const calls, most = 150, 300 * time.Millisecond
	longest := 400 * time.Microsecond
	for n, start := 0, time.Now(); n < calls && time.Since(start) < most; n++ {
		own, cancel := context.WithCancel(ctx)
		ends := time.AfterFunc(time.Duration(intN(int(longest))), cancel)
		began := time.Now()
		call(own)
		if own.Err() == nil {
			longest = max(longest, 2*time.Since(began)) // a call takes longer
		}
		met = met || own.Err() != nil
		ends.Stop()
		cancel()
	}
	return met
}
