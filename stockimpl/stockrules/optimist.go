package stockrules

import (
	"errors"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
)

// Clash is a call of a new client of a product with plenty of pieces. Before its n-th command another client buys a piece.
type Clash struct {
	Refund bool // the call is a refund, and otherwise a purchase
	Told   bool // RefuseStale was called
	N      int  // 0: nobody else buys
}

// Clashed is how a clash ended.
type Clashed struct {
	Answer error
	Sent   int   // how many commands the call sent
	Met    bool  // the call sent N commands, and the other client bought
	Took   int64 // the pieces that the call took from the stock according to State, negative if it added some
}

func (c Clash) String() string {
	text := "a purchase"
	if c.Refund {
		text = "a refund"
	}
	if c.Told {
		return text + " of a client whose RefuseStale was called"
	}
	return text + " of a client whose RefuseStale was not called"
}

// took is how many pieces the call takes if it succeeds.
func (c Clash) took() int64 {
	if c.Refund {
		return -1
	}
	return 1
}

// RefusesStale makes calls of a [stockimpl.Optimist], and has another client buy before each of their commands, up to this
// many. A call that begins again if RefuseStale was not called must answer ErrStale, and change nothing, if it was. A call
// beside which nobody else buys must succeed in both cases.
func RefusesStale(commands int, refunds bool, try func(Clash) (Clashed, error)) error {
	for _, refund := range []bool{false, true} {
		if refund && !refunds {
			continue
		}
		if err := refusesStale(commands, refund, try); err != nil {
			return err
		}
	}
	return nil
}

func refusesStale(commands int, refund bool, try func(Clash) (Clashed, error)) error {
	sent := 0
	for _, told := range []bool{true, false} {
		c := Clash{Refund: refund, Told: told}
		got, err := try(c)
		if err != nil {
			return err
		}
		if got.Answer != nil && stockmodel.Declared(got.Answer) {
			return suitetest.Broken(theInterface, "%v, beside which nobody else bought, was answered %s; want success", c, stockmodel.Said(got.Answer))
		}
		if got.Answer != nil {
			return nil // another rule's business
		}
		sent = got.Sent
	}
	for n := 1; n <= commands; n++ {
		if err := clashAt(n, refund, sent, try); err != nil {
			return err
		}
	}
	return nil
}

// clashAt compares a client whose RefuseStale was called with one whose was not; a call sends so many commands if
// nobody else buys.
func clashAt(n int, refund bool, sent int, try func(Clash) (Clashed, error)) error {
	const of = theInterface
	told, plain := Clash{Refund: refund, Told: true, N: n}, Clash{Refund: refund, N: n}
	first, err := try(told) // before the other: the setting must not concern other clients
	if err != nil || !first.Met {
		return err
	}
	second, err := try(plain)
	if err != nil || !second.Met {
		return err
	}
	begunAgain := second.Answer == nil && second.Sent > sent
	switch stale := errors.Is(first.Answer, stockimpl.ErrStale); {
	case errors.Is(second.Answer, stockimpl.ErrStale):
		return suitetest.Broken(of, "%v was answered %s when another client bought before its command %d, with plenty left; such a client begins again until its order is decided", plain, stockmodel.Said(second.Answer), n)
	case begunAgain && !stale:
		return suitetest.Broken(of, "%v was answered %s when another client bought before its command %d; want %q, since without RefuseStale the call begins again: it sends %d commands, and %d if nobody else buys", told, stockmodel.Said(first.Answer), n, stockimpl.ErrStale, second.Sent, sent)
	case stale && first.Took != 0:
		return suitetest.Broken(of, "%v was answered %s when another client bought before its command %d, and according to State it took %d from the stock; want no change", told, stockmodel.Said(first.Answer), n, first.Took)
	case first.Answer == nil && first.Took != told.took():
		return suitetest.Broken(of, "%v was answered with success when another client bought before its command %d, and according to State it took %d from the stock; want %d", told, n, first.Took, told.took())
	case first.Answer != nil && !stale && stockmodel.Declared(first.Answer):
		return suitetest.Broken(of, "%v was answered %s when another client bought before its command %d, with plenty left; want success or %q", told, stockmodel.Said(first.Answer), n, stockimpl.ErrStale)
	}
	return nil
}
