package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oversell/clock"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// A sale may refuse calls that come too often, such as a copy of an order that is under way, with an error of its own. That
// leaves the outcome open, and must pass within a second. A rule that judges the outcome of a call first makes the call
// again until it has another answer. A rule that accepts every error, or that is about the first answer, does not.

// tooOften is for how long a sale may refuse calls because too many came.
const tooOften = 1100 * time.Millisecond

// waits are how long the suite waits each time before it makes a call again. Some refusals end soon. A sale may count the
// calls that it refused, so none comes in the last wait.
var waits = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond, tooOften}

// ownError reports whether an error is one of the sale's own, and not of a context that is over.
func ownError(ctx context.Context, err error) bool {
	return !declared(err) && !errors.Is(err, errors.ErrUnsupported) && ctx.Err() == nil
}

// asksAgain reports whether a call may be made again because of its answer: it says nothing of the effect, which the sale
// promises to have once.
func (b bench) asksAgain(ctx context.Context, err error) bool {
	return ownError(ctx, err) && b.promises(variant.OncePerOrder)
}

// lasting is an error of the sale's own that did not pass.
type lasting struct{ error }

func (l *lasting) Unwrap() error { return l.error }

// ownRepeat wraps ErrRepeated if the same client's earlier call ended in an error of the sale's own: that earlier call may
// have had the effect.
type ownRepeat struct{ error }

func (i *ownRepeat) Unwrap() error { return i.error }

// maybeItself reports whether the client that was answered so may have had the effect.
func maybeItself(err error) bool { return errors.As(err, new(*ownRepeat)) }

// unlessItself returns nil in place of ErrRepeated if no other client sends the same: then it was the client itself.
func unlessItself(err error) error {
	if maybeItself(err) {
		return nil
	}
	return err
}

// settle returns what a call was answered, and makes it again while that is an error of the sale's own that may pass. It
// reports whether it did.
func (b bench) settle(ctx context.Context, got answered, call func() (int64, error)) (answered, bool) {
	if !b.asksAgain(ctx, got.err) {
		return got, false
	}
	for _, wait := range waits {
		if (clock.Real{}).Sleep(ctx, wait+rand.N(wait/4)) != nil { // not all at once
			return got, true
		}
		got.left, got.err = call()
		if errors.Is(got.err, stockimpl.ErrRepeated) {
			got.err = &ownRepeat{got.err}
		}
		if !b.asksAgain(ctx, got.err) {
			return got, true
		}
	}
	got.err = &lasting{got.err}
	return got, true
}

// settled makes a call, and returns its answer when it has settled.
func (b bench) settled(ctx context.Context, call func() (int64, error)) (int64, error) {
	left, err := call()
	got, _ := b.settle(ctx, answered{left, err}, call)
	return got.left, got.err
}

// insist makes a call until its answer has settled and is not stale.
func (b bench) insist(ctx context.Context, call func() (int64, error)) (int64, error) {
	for start, open := time.Now(), false; ; {
		left, err := call()
		got, asked := b.settle(ctx, answered{left, err}, call)
		open = open || asked
		switch {
		case open && errors.Is(got.err, stockimpl.ErrRepeated):
			return got.left, &ownRepeat{got.err}
		case !errors.Is(got.err, stockimpl.ErrStale):
			return got.left, got.err
		case ctx.Err() != nil:
			b.limits.ended(ctx, start)
			return got.left, context.Cause(ctx)
		}
	}
}

// staleFor is for how long an order is sent again because it was stale, though no other client
// does anything: the reservation of a buyer on a busy machine may have ended before it was confirmed.
const staleFor = time.Second

// again repeats a call while it is stale, unless that is what is expected, and until its answer has settled.
func (y *buyer) again(ctx context.Context, want error, call func() (int64, error)) (int64, error) {
	left, err := call()
	return y.againAfter(ctx, want, answered{left, err}, call)
}

// againAfter is again for a call that was answered once.
func (y *buyer) againAfter(ctx context.Context, want error, got answered, call func() (int64, error)) (int64, error) {
	for start, open := time.Now(), false; ; got.left, got.err = call() {
		var asked bool
		got, asked = y.b.settle(ctx, got, call)
		open = open || asked
		switch {
		case open && want == nil && errors.Is(got.err, stockimpl.ErrRepeated): // a call before had the effect
			return stockimpl.Unsaid, nil
		case !errors.Is(got.err, stockimpl.ErrStale) || errors.Is(want, stockimpl.ErrStale) || time.Since(start) > staleFor || (clock.Real{}).Sleep(ctx, time.Millisecond) != nil:
			return got.left, got.err
		}
	}
}

// say quotes an answer.
func say(err error) string {
	if errors.As(err, new(*lasting)) {
		return fmt.Sprintf("%q, and so again and again for more than a second", err)
	}
	return stockmodel.Said(err)
}

// declared tells whether an error says what the outcome is.
func declared(err error) bool { return stockmodel.Declared(err) }
