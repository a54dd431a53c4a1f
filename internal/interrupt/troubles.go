package interrupt

import (
	"context"
	"fmt"
	"time"
)

// Trouble is what happens to calls of a client that then goes on.
type Trouble struct {
	What string
	// First says that it happens to the first call of a client.
	First bool
	// Makes makes calls that meet it. intN draws a number below n.
	Makes func(ctx context.Context, line *Interceptor, intN func(n int) int, call func(context.Context))
}

// InARow is how many calls fail one after the other: more than a client may take for an accident.
const InARow = 5

// Troubles are errors and lost answers, of several calls in a row or of the first call of a client, and contexts that end.
var Troubles = func() (all []Trouble) {
	for _, first := range []bool{false, true} {
		n, which := InARow, fmt.Sprintf("%d in a row", InARow)
		if first {
			n, which = 1, "the first of a client"
		}
		all = append(all,
			Trouble{which + ", to which the server answers that " + Refusals[0].What, first, refused(n)},
			Trouble{which + ", without an answer", first, lost(n)},
			Trouble{"many, whose contexts end at any time", first, EndsAnyTime})
	}
	return all
}()

func refused(n int) func(context.Context, *Interceptor, func(int) int, func(context.Context)) {
	return func(ctx context.Context, line *Interceptor, _ func(int) int, call func(context.Context)) {
		for range n {
			Outage{Answer: Refusals[0].Err, Nth: 1}.On(line)
			call(ctx)
		}
		line.Plan(nil)
	}
}

func lost(n int) func(context.Context, *Interceptor, func(int) int, func(context.Context)) {
	return func(ctx context.Context, line *Interceptor, _ func(int) int, call func(context.Context)) {
		line.Plan(func(int) Action { return LoseReply })
		for range n {
			call(ctx)
		}
		line.Plan(nil)
	}
}

// EndsAnyTime ends the contexts of many calls, at first almost at once and in the end when most calls have returned.
func EndsAnyTime(ctx context.Context, _ *Interceptor, intN func(int) int, call func(context.Context)) {
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
		ends.Stop()
		cancel()
	}
}
