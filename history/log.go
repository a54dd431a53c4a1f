package history

import (
	"context"
	"sync"
	"time"

	"oversell/clock"
)

// Log collects the records of all clients of one run. It is safe for concurrent use.
type Log struct {
	clock clock.Clock // nil: the machine's
	start time.Time

	mu        sync.Mutex // guards the next three fields
	recorders []*Recorder
	free      [chunkSizes][]*chunk
	water     Watermark

	sweeping sync.Mutex // held during a sweep; guards batch and the recorders' tails
	batch    batch
}

// NewLog returns the log of a run that starts, or started, at start, a reading
// of time.Now.
func NewLog(start time.Time) *Log { return NewLogOn(clock.Real{}, start) }

// NewLogOn is NewLog with the clock that recorders read, for runs in virtual
// time.
func NewLogOn(c clock.Clock, start time.Time) *Log {
	if c == (clock.Real{}) {
		c = nil
	}
	return &Log{clock: c, start: start}
}

// Start returns when the run began: the zero of all times in its operations.
func (l *Log) Start() time.Time { return l.start }

// Since converts a reading of the run's clock, such as the end of a lease, to the time since the start of the run. The
// zero time, which means no such moment, becomes 0.
func (l *Log) Since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(l.start)
}

// now returns the present time since the start of the run.
func (l *Log) now() time.Duration {
	if l.clock == nil {
		return time.Since(l.start) // one cheap reading; Now would take two
	}
	return l.clock.Now().Sub(l.start)
}

// Recorder returns a new recorder for a client. It takes about 2 KB.
func (l *Log) Recorder(client int32) *Recorder {
	first := l.chunk(small)
	r := &Recorder{log: l, client: client, head: first, tail: first}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorders = append(l.recorders, r)
	return r
}

// Drain makes one sweep: it passes everything recorded before the call, and not passed on before, to sink in slices of
// at most 4096 operations. The operations of one client come in the order of recording; those of different clients in
// no particular order. sink must not keep the slice.
//
// If sink fails, Drain returns its error at once. Nothing is lost: the failed slice and all following operations stay
// in memory, where recording goes on, and the next Drain passes them on.
func (l *Log) Drain(sink func([]Op) error) error {
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	l.batch.sink = sink
	if err := l.batch.flush(); err != nil { // the operations that an earlier sink refused
		return err
	}
	now := l.now() // before the recorders are listed: a later recorder records later calls
	level := Watermark{Returned: now, Called: now}
	for _, r := range l.all() {
		level.lower(r) // before its operations are taken
		if err := r.takeInto(&l.batch); err != nil {
			return err
		}
	}
	if err := l.batch.flush(); err != nil {
		return err
	}
	l.raise(level)
	return nil
}

// DrainEvery calls Drain every d (at least a millisecond) until ctx is done,
// and then once more, so that everything recorded before ctx was cancelled has been passed on when it returns nil. If
// the sink fails, it returns the error at once: the caller must then stop the run, because records stay in memory.
func (l *Log) DrainEvery(ctx context.Context, d time.Duration, sink func([]Op) error) error {
	tick := time.NewTicker(max(d, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.Drain(sink)
		case <-tick.C:
			if err := l.Drain(sink); err != nil {
				return err
			}
		}
	}
}

// all returns the recorders of this moment. The slice is only appended to.
func (l *Log) all() []*Recorder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recorders
}

// chunk returns an empty chunk, recycled if possible.
func (l *Log) chunk(s chunkSize) *chunk {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.free[s]
	if len(free) == 0 {
		return newChunk(s)
	}
	c := free[len(free)-1]
	l.free[s] = free[:len(free)-1]
	return c
}

func (l *Log) recycle(c *chunk) {
	c.reset()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free[c.size] = append(l.free[c.size], c)
}

// batch gathers the few operations of each of many clients into larger slices for the sink. Operations stay in it until
// the sink has taken them.
type batch struct {
	ops   []Op
	sink  func([]Op) error
	taken int64 // operations that sinks took
}

// add takes as many operations as fit, and flushes when full.
func (b *batch) add(ops []Op) (int, error) {
	n := min(len(ops), maxFrameOps-len(b.ops))
	b.ops = append(b.ops, ops[:n]...)
	if len(b.ops) < maxFrameOps {
		return n, nil
	}
	return n, b.flush()
}

func (b *batch) flush() error {
	if len(b.ops) == 0 {
		return nil
	}
	if err := b.sink(b.ops); err != nil {
		return err
	}
	b.taken += int64(len(b.ops))
	b.ops = b.ops[:0]
	return nil
}
