package queuerules

import (
	"math"
	"slices"
	"time"

	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
)

// A model holds what is known about one queue from the answers so far: whether each task waits, is claimed or is gone, and until when.
// Queues round times, and some end claims only now and then. So shortly before and after a claim ends or a task becomes due, the model
// accepts both answers.

const (
	// fine is how much earlier than its due time a task may be delivered.
	fine = 100 * time.Microsecond
	// slack is how much later than its score says a task may become due.
	slack = 20 * time.Millisecond
)

// place is the state of the last entry with an id.
type place int

const (
	waits   place = iota // it was never delivered
	lent                 // it was delivered, and its claim runs or has run out
	letter               // it was seen among the dead letters
	acked                // its consumer has acknowledged it
	removed              // a dequeue has removed it
	taken                // it was delivered by a queue that removes what it hands out
)

// delivery is one delivery of a task to a client.
type delivery struct {
	task    queueimpl.Task
	receipt string // as the pop returned it; an extend may return another one
	client  int
	// The claim must not end before end, the time that the client was told, and should have ended by last.
	end, last time.Time
}

// entry is a task that was enqueued.
type entry struct {
	id    string
	at    place
	call  int // the number of the enqueue
	score float64
	// The task must not be delivered before early, and a pop must find it from late on.
	early, late time.Time
	had         []delivery
}

// newest returns the last delivery. There must be one.
func (e *entry) newest() *delivery { return &e.had[len(e.had)-1] }

// held reports whether a claim on the task certainly runs.
func (e *entry) held(now time.Time) bool {
	return e.at == lent && now.Before(e.newest().end.Add(-queueclient.Grain))
}

// over reports whether the claim on the task has certainly run out.
func (e *entry) over(now time.Time) bool {
	return e.at == lent && now.After(e.newest().last.Add(queueclient.Lateness))
}

// here reports whether the queue has the entry, though perhaps as a dead letter.
func (e *entry) here() bool { return e != nil && e.at <= letter }

// model is the model of one queue.
type model struct {
	name string
	// most is Options.MaxAttempts.
	most    int
	calls   int
	entries map[string]*entry
	// former holds the deliveries of earlier entries with the same id.
	former map[string][]delivery
}

func newModel(name string, most int) *model {
	return &model{name: name, most: most, entries: map[string]*entry{}, former: map[string][]delivery{}}
}

// spent reports whether the task has had all its deliveries.
func (m *model) spent(e *entry) bool { return m.most > 0 && len(e.had) >= m.most }

// available reports whether a pop must find the task.
func (m *model) available(e *entry, now time.Time) bool {
	return e.at == waits && now.After(e.late) || e.over(now) && !m.spent(e)
}

// ids returns the ids of all entries, sorted.
func (m *model) ids() (ids []string) {
	for id := range m.entries {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// those returns the entries for which is returns true, sorted by id.
func (m *model) those(is func(*entry) bool) (some []*entry) {
	for _, id := range m.ids() {
		if e := m.entries[id]; is(e) {
			some = append(some, e)
		}
	}
	return some
}

// enter adds an entry. It replaces an earlier one with the same id.
func (m *model) enter(t queueimpl.Task, now time.Time, after, dueIn time.Duration) {
	if old := m.entries[t.ID]; old != nil {
		m.former[t.ID] = append(m.former[t.ID], old.had...)
	}
	m.entries[t.ID] = &entry{id: t.ID, call: m.calls, score: t.Score, early: now.Add(after - fine), late: now.Add(dueIn + slack)}
}

// delivery returns the delivery of an id before which there were age later ones, and whether it is the last delivery of the present
// entry.
func (m *model) delivery(id string, age int) (_ *delivery, last bool) {
	e := m.entries[id]
	if e == nil {
		return nil, false
	}
	if age < len(e.had) {
		return &e.had[len(e.had)-1-age], age == 0
	}
	former := m.former[id]
	if age -= len(e.had); age < len(former) {
		return &former[len(former)-1-age], false
	}
	return nil, false
}

// sameScore reports whether a score may be the entry's. A score of 0 is unknown.
func (e *entry) sameScore(score float64) bool {
	return score == 0 || e.score == 0 || math.Abs(score-e.score) < 1e-6
}

// sooner returns an entry that must be delivered before e, or nil: it was enqueued by an earlier call, is due earlier, and was never
// delivered.
func (m *model) sooner(e *entry, now time.Time) *entry {
	for _, id := range m.ids() {
		o := m.entries[id]
		if o.at == waits && o.call < e.call && now.After(o.late) && (o.score < e.score || o.score == 0 && o.late.Before(e.early)) {
			return o
		}
	}
	return nil
}

// next returns the first entry after now to become due, or whose claim ends; nil if there is none.
func (m *model) next(now time.Time) (first *entry) {
	var at time.Time
	for _, id := range m.ids() {
		e := m.entries[id]
		var end time.Time
		switch e.at {
		case waits:
			end = e.early
		case lent:
			end = e.newest().end.Add(-queueclient.Grain)
		}
		if end.Add(-fine).After(now) && (first == nil || end.Before(at)) {
			first, at = e, end
		}
	}
	return first
}
