package lockrules

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"oversell/internal/interrupt"
	"oversell/wire"
)

// ConnectionLost are cases in which commands of a call get no answer, and the client one of several errors, which say nothing about the
// lock: the server has executed the commands, or it has not.
var ConnectionLost = func() (cases []Case) {
	for _, e := range interrupt.Losses {
		for _, executed := range []bool{true, false} {
			action, how := interrupt.LoseRequest, "not executed"
			if executed {
				action, how = interrupt.LoseReply, "executed"
			}
			for n := 1; n <= 2 && (n == 1 || e.Err == io.EOF); n++ {
				what := fmt.Sprintf("of which command %d and the next ones were %s, and not answered, since %s (%q),", n, how, e.What, e.Err)
				for _, c := range calls(func(b Bench) (*failing, error) {
					if b.Masters > 1 && (n > 1 || e.Err != io.EOF) {
						return nil, nil // each client has many connections
					}
					return silenced(b, what, e.Err, action, n)
				}) {
					c.Name += fmt.Sprintf(", %s, command %d %s", e.What, n, how)
					cases = append(cases, c)
				}
			}
		}
	}
	for _, verb := range []wire.Verb{wire.DropReply, wire.ResetAfter, wire.DropRequest} {
		for _, c := range calls(func(b Bench) (*failing, error) {
			if b.Masters > 1 && verb != wire.DropReply {
				return nil, nil
			}
			return cutShort(b, verb)
		}) {
			c.Name += fmt.Sprintf(", whose connection suffers %s", verb)
			cases = append(cases, c)
		}
	}
	return cases
}()

// silences is how many commands of a call get no answer. Later ones do, so that a call that is repeated comes to an end.
const silences = 6

// cutShort returns a client whose connection ends at each of the first commands of a call, also if its Redis client is its own.
func cutShort(b Bench, verb wire.Verb) (*failing, error) {
	c, err := b.practised()
	if err != nil {
		return nil, err
	}
	sent := 0
	return &failing{c, func(call func(context.Context)) bool {
		c.Plan(func(nth int, _ wire.Command) wire.Action {
			if nth >= 1 && nth <= silences {
				return wire.Action{Verb: verb}
			}
			return wire.Action{}
		})
		call(b.Ctx)
		sent = c.Sent()
		c.Plan(nil)
		return sent > 0
	}, fmt.Sprintf("each command of which suffered %s", verb), nil, func() bool { return sent <= silences }}, nil
}

// silenced returns a client of which commands of a call get no answer, from the n-th on.
func silenced(b Bench, what string, err error, action interrupt.Action, n int) (*failing, error) {
	var unheard atomic.Bool
	f, failed := intercepted(b, what, func(line *interrupt.Interceptor) {
		line.Errors(err, err)
		line.Plan(func(nth int) interrupt.Action {
			silent := nth < n+silences
			unheard.Store(silent)
			if nth >= n && silent {
				return action
			}
			return interrupt.Pass
		})
	})
	if failed != nil {
		return nil, failed
	}
	f.unheard = unheard.Load
	return f, nil
}
