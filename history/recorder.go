package history

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// Recorder records in a [Log] for one client, or for several that take turns. Only one goroutine at a time may call its
// methods.
type Recorder struct {
	log    *Log
	client int32
	last   time.Duration // the latest reading of Now

	// For a sweep: the operations that are not recorded yet; 0: none. See Water.
	read atomic.Int64 // the reading of Now under way, or not yet used, is this or later
	open atomic.Int64 // of the operations under way, the earliest was called then

	// under are the calls of the operations under way, in the order of their times; those
	// that ended before an earlier one are negative.
	under []time.Duration

	// The client's end of its queue of chunks.
	head *chunk
	n    int // operations in head

	// The sweep's end, guarded by log.sweeping.
	tail  *chunk
	taken int // operations of tail already handed on

	_ [64]byte // keeps two clients' recorders off one cache line
}

// Now returns the time since the start of the run. It is strictly greater than every earlier reading of this recorder:
// if the clock stands still, or ticks too coarsely, it moves on by a nanosecond. Call and Return of every operation
// must be such readings. Call Noted once Begun, Settled or Record has had the reading; until then [Log.Watermark] takes it
// for the return of an operation that is about to be recorded.
func (r *Recorder) Now() time.Duration {
	r.read.Store(int64(r.last + 1))
	r.last = max(r.log.now(), r.last+1)
	return r.last
}

// Begun reports that an operation began at call, a reading of Now. Several may be under way if a recorder serves
// several clients.
func (r *Recorder) Begun(call time.Duration) {
	if r.under = append(r.under, call); len(r.under) == 1 {
		r.open.Store(int64(call))
	}
}

// Settled reports that the operation that began at call is over, and has been recorded.
func (r *Recorder) Settled(call time.Duration) {
	at, _ := slices.BinarySearchFunc(r.under, call, func(c, call time.Duration) int { return cmp.Compare(c.Abs(), call) })
	if at < len(r.under) {
		r.under[at] = -call
	}
	over := 0
	for over < len(r.under) && r.under[over] < 0 {
		over++
	}
	switch {
	case over == 0:
		return
	case over == len(r.under):
		r.under = r.under[:0]
		r.open.Store(0)
		return
	}
	r.under = r.under[over:]
	r.open.Store(int64(r.under[0]))
}

// Noted reports that the log has the operation that began or ended at the last reading of Now.
func (r *Recorder) Noted() { r.read.Store(0) }

// Record keeps a copy of op as an operation of this recorder's client; it sets
// op.Client. It neither blocks nor fails and, once the log has grown to the load between two sweeps, does not allocate.
//
// A Return that is not after its Call is moved to a nanosecond after it: an
// interval may be recorded too wide, which only makes a check weaker, but never
// too narrow.
func (r *Recorder) Record(op *Op) {
	if r.n == len(r.head.ops) {
		r.advance()
	}
	// Copied first, corrected there: a processor is slow to copy memory just written in smaller pieces.
	kept := &r.head.ops[r.n]
	*kept = *op
	kept.Client = r.client
	if op.Return <= op.Call {
		kept.Return = op.Call + 1
		r.last = max(r.last, kept.Return)
	}
	r.n++
	r.head.published.Store(uint32(r.n))
}

// SetClient makes the recorder record for another client from now on, which replaces the first.
func (r *Recorder) SetClient(client int32) { r.client = client }

// advance goes on to a new chunk. If the sweep has not even begun to take the full chunk, the
// client records much between two sweeps, and gets a large chunk.
func (r *Recorder) advance() {
	size := small
	if !r.head.swept.Load() {
		size = large
	}
	next := r.log.chunk(size)
	r.head.next.Store(next) // the sweep may recycle the old one from here on
	r.head, r.n = next, 0
}

// takeInto appends to b the operations that were published since the last sweep.
func (r *Recorder) takeInto(b *batch) error {
	for {
		c := r.tail
		published := int(c.published.Load())
		for r.taken < published {
			n, err := b.add(c.ops[r.taken:published])
			r.taken += n
			c.swept.Store(true)
			if err != nil {
				return err
			}
		}
		if published < len(c.ops) {
			return nil
		}
		next := c.next.Load()
		if next == nil {
			return nil
		}
		r.tail, r.taken = next, 0
		r.log.recycle(c)
	}
}
