package history

import "time"

// Water says up to which times the operations that a [Log] has handed over are complete.
// With it, a reader of the file can put operations into completion order while the run goes
// on, and forget those that no later operation can affect. A place in a line ([Join]) and a
// [Fault] are exempt: they are noted after they happened.
type Water struct {
	// Ops counts the operations that had been handed over: the two times speak of those
	// that are not among the first Ops.
	Ops int64
	// Returned: none of them returned before it. It rises.
	Returned time.Duration
	// Called: none of them was called before it. It rises, and stands still during the
	// longest operation under way.
	Called time.Duration
}

// Water returns the state after the last sweep whose operations the sink took; the zero
// value before that. It is safe for concurrent use.
func (l *Log) Water() Water {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.water
}

// raise publishes the water after a sweep. A bound on later operations that held before
// still holds.
func (l *Log) raise(w Water) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.water = Water{Ops: l.batch.taken, Returned: max(w.Returned, l.water.Returned), Called: max(w.Called, l.water.Called)}
}

// lower takes a recorder into account: what it is about to record and what it is in the
// middle of. The client stores the two in the opposite order, so that a moment between
// them is not missed; see [Recorder.Now].
func (w *Water) lower(r *Recorder) {
	if read := r.read.Load(); read != 0 {
		w.Returned, w.Called = min(w.Returned, time.Duration(read)), min(w.Called, time.Duration(read))
	}
	if open := r.open.Load(); open != 0 {
		w.Called = min(w.Called, time.Duration(open))
	}
}
