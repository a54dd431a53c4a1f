package history

import "time"

// Watermark says up to which times the operations that a [Log] has passed on are complete. With it, a reader of the file
// can put operations into completion order during the run, and forget those that no later operation can affect. A place
// in a line ([Join]) and a [Fault] are exempt: they are recorded after they happened.
type Watermark struct {
	// Ops counts the operations that had been passed on: the two times concern those after the first Ops.
	Ops int64
	// Returned: none of them returned before it. It rises.
	Returned time.Duration
	// Called: none of them was called before it. It rises, and stands still during the longest operation under way.
	Called time.Duration
}

// Watermark returns the state after the last sweep whose operations the sink took; the zero
// value before that. It is safe for concurrent use.
func (l *Log) Watermark() Watermark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.water
}

// raise publishes the water after a sweep. An earlier bound on later operations still holds.
func (l *Log) raise(w Watermark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.water = Watermark{Ops: l.batch.taken, Returned: max(w.Returned, l.water.Returned), Called: max(w.Called, l.water.Called)}
}

// lower takes a recorder into account: the operation that it is about to record and those under way. The client stores
// the two in the opposite order, so that a moment between them is not missed; see [Recorder.Now].
func (w *Watermark) lower(r *Recorder) {
	if read := r.read.Load(); read != 0 {
		w.Returned, w.Called = min(w.Returned, time.Duration(read)), min(w.Called, time.Duration(read))
	}
	if open := r.open.Load(); open != 0 {
		w.Called = min(w.Called, time.Duration(open))
	}
}
