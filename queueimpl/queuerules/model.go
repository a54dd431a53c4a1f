package queuerules

import (
	"math"
	"slices"
	"time"

	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
)

// A model tells what the answers so far say about one queue: where each task is, and until when. Around each boundary of time there is a
// margin in which either side is right, because queues round times, and some look for what has run out only now and then.

const (
	// fine is the margin of a due time. Queues round it up only.
	fine = 100 * time.Microsecond
	// slack is how late a task may be due, besides what its score says.
	slack = 20 * time.Millisecond
)

// place is where the last entry with an id is.
type place int

const (
	waits   place = iota // it was never delivered
	lent                 // it was delivered, and its claim runs or has run out
	letter               // it was seen among the dead letters
	acked                // its consumer has acknowledged it
	removed              // a dequeue has removed it
	taken                // it was delivered by a queue that removes what it hands out
)

// delivery is one delivery of an entry.
type delivery struct {
	task    queueimpl.Task
	receipt string // of the pop; that of the task may be another after an extend
	client  int
	// end is when the claim may end at the earliest, by what the client was told; last is when it should end at the latest.
	end, last time.Time
}

// entry is what was enqueued under an id.
type entry struct {
	id    string
	at    place
	call  int // the number of the enqueue
	score float64
	// early is when the task may be delivered first, late is when it must be due.
	early, late time.Time
	had         []delivery
}

// newest is the last delivery of an entry that had one.
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
	// most is the number of deliveries that an entry may have, 0 for no limit.
	most    int
	calls   int
	entries map[string]*entry
	// former are the deliveries of entries that others have replaced.
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

// ids are the ids in a fixed order.
func (m *model) ids() (ids []string) {
	for id := range m.entries {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// those are the entries for which is holds, in the order of their ids.
func (m *model) those(is func(*entry) bool) (some []*entry) {
	for _, id := range m.ids() {
		if e := m.entries[id]; is(e) {
			some = append(some, e)
		}
	}
	return some
}

// enter notes a new entry, which replaces the one that its id had.
func (m *model) enter(t queueimpl.Task, now time.Time, after, dueIn time.Duration) {
	if old := m.entries[t.ID]; old != nil {
		m.former[t.ID] = append(m.former[t.ID], old.had...)
	}
	m.entries[t.ID] = &entry{id: t.ID, call: m.calls, score: t.Score, early: now.Add(after - fine), late: now.Add(dueIn + slack)}
}

// delivery returns a delivery of an id, and whether it is the last one of the id's last entry. Age 0 is the latest delivery.
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

// sameScore reports whether a score is the entry's, as far as both are known.
func (e *entry) sameScore(score float64) bool {
	return score == 0 || e.score == 0 || math.Abs(score-e.score) < 1e-6
}

// sooner is an entry that must be handed out before e: it was enqueued by an earlier call, is due earlier, and was never delivered.
func (m *model) sooner(e *entry, now time.Time) *entry {
	for _, id := range m.ids() {
		o := m.entries[id]
		if o.at == waits && o.call < e.call && now.After(o.late) && (o.score < e.score || o.score == 0 && o.late.Before(e.early)) {
			return o
		}
	}
	return nil
}

// next is the entry whose claim ends first, or that is due first, after now. It is nil if there is none.
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
