package history

import "time"

// Recorder is one client's way into a [Log]. All its methods belong to one
// goroutine, the client's.
type Recorder struct {
	log    *Log
	client int32
	last   time.Duration // the latest reading of Now

	// The client's end of its queue of chunks.
	head *chunk
	n    int // operations in head

	// The sweep's end, guarded by log.sweeping.
	tail  *chunk
	taken int // operations of tail already handed on

	_ [64]byte // keeps two clients' recorders off one cache line
}

// Now is the time since the start of the run. It is strictly greater than every
// earlier reading of this recorder: where the clock stands still, or ticks too
// coarsely, it moves on by a nanosecond. Call and Return of every operation are
// to be such readings.
func (r *Recorder) Now() time.Duration {
	r.last = max(r.log.now(), r.last+1)
	return r.last
}

// Record keeps a copy of op as an operation of this recorder's client; it sets
// op.Client. It neither blocks nor fails and, once the log has grown to what
// the load needs between two sweeps, allocates nothing.
//
// A Return that is not after its Call is moved to a nanosecond after it: an
// interval may be recorded too wide, which only makes a check weaker, but never
// too narrow.
func (r *Recorder) Record(op *Op) {
	if r.n == len(r.head.ops) {
		r.advance()
	}
	// Copied first, corrected there: a processor is slow to copy what it has
	// just written to in smaller pieces.
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

// As has the recorder record for another client from now on: one that takes the
// place of the first.
func (r *Recorder) As(client int32) { r.client = client }

// advance goes on to a new chunk. A client whose full chunk the sweep has not
// even begun to take records much between two sweeps, and gets a large one.
func (r *Recorder) advance() {
	size := small
	if !r.head.swept.Load() {
		size = large
	}
	next := r.log.chunk(size)
	r.head.next.Store(next) // the sweep may recycle the old one from here on
	r.head, r.n = next, 0
}

// takeInto hands on what was published since the last sweep.
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
