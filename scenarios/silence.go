package scenarios

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"oversell/faults"
	"oversell/history"
)

// silence notes which kinds of operations are still answered. A refusal is an answer. Its methods are safe for
// concurrent use.
type silence struct {
	of [32]struct {
		answered atomic.Int64 // the last answer, since the start of the run
		failed   atomic.Int64 // the errors since then
	}
}

// tick is the resolution of silence: fewer writes of memory that all clients share.
const tick = time.Millisecond

// answered notes an answer.
func (s *silence) answered(op *history.Op) {
	k := &s.of[op.Kind]
	if op.Return > time.Duration(k.answered.Load())+tick {
		k.answered.Store(int64(op.Return))
	}
	if k.failed.Load() > 0 {
		k.failed.Store(0)
	}
}

// failed notes an operation that ended in an error.
func (s *silence) failed(op *history.Op) { s.of[op.Kind].failed.Add(1) }

// A kind of operation is no longer answered at the end of a load if the last ten operations of that kind ended in an
// error (with fewer than ten clients, as many as there are clients, but at least two), and no answer came for a second
// or for a tenth of the load, whichever is shorter.
const (
	fewestErrors  = 10
	longSilence   = time.Second
	partOfSilence = 10
)

// told returns a sentence about a kind of operation that was no longer answered at the end of a load from began to
// ended; "" if there is none.
func (s *silence) told(began, ended time.Duration, clients int) string {
	for kind := range s.of {
		k := &s.of[kind]
		last := max(began, time.Duration(k.answered.Load()))
		errors := k.failed.Load()
		if quiet := ended - last; errors >= int64(min(fewestErrors, max(2, clients))) && quiet >= min(longSilence, (ended-began)/partOfSilence) {
			return fmt.Sprintf("no %s was answered in the last %v: %s in a row ended in an error", history.Kind(kind), quiet.Round(time.Millisecond), humanize.Comma(errors))
		}
	}
	return ""
}

// silent returns a sentence if operations were no longer answered at the end of the load, and "" otherwise. It does not
// judge a run with faults of clients or of single commands, which cause errors until its end.
func (r *run) silent(ended time.Duration) string {
	for _, f := range r.config.Faults {
		if f.Kind.Inject == nil && !f.Kind.Cuts {
			return ""
		}
	}
	if _, told := r.unrecovered.Load().(string); told {
		return "" // it says so, too
	}
	return r.silence.told(r.began, ended, r.config.Clients)
}

// restarts reports whether faults start servers again.
func restarts(fs []faults.Fault) bool {
	return slices.ContainsFunc(fs, func(f faults.Fault) bool { return f.Kind.Restarts })
}
