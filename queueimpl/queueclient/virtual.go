package queueclient

import (
	"errors"

	"oversell/internal/emulated"
	"oversell/internal/suitetest"
	"oversell/variant"
)

// OnVirtualClock has a check run on the emulation, on a clock that stands far ahead of the real one and that
// only the check moves: a day is over in no time. Code that tells the server the time of the real
// clock cannot be judged there, nor can code that the emulation does not understand: both are tried
// first, with short times. A task that comes too early there is a breach, even if other calls fail.
func (b Bench) OnVirtualClock(short, check func(Bench) error) error {
	at, err := emulated.Judge(func(server *emulated.Server) error {
		on := func(queue string) Bench {
			return Bench{Variant: b.Variant, last: b.last, acked: b.acked, interrupts: b.interrupts, Queue: b.Queue + queue, Pass: server.Clock.Advance, Env: server.Env}
		}
		if err := short(on("-short")); err != nil {
			return &shortly{err}
		}
		return check(on("-long"))
	})
	switch s := new(shortly); {
	case at != "":
		return nil
	case !errors.As(err, &s):
		return err
	case isEarly(s.error):
		return s.error
	}
	return nil // other rules test short times
}

// shortly is the error of a check with short times.
type shortly struct{ error }

// isEarly reports whether something came before its time.
func isEarly(err error) bool {
	b := new(suitetest.Breach)
	return errors.As(err, &b) && (b.Promise == variant.NotEarly || b.Promise == variant.NoDuplicateDelivery)
}
