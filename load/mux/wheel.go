package mux

import (
	"math/bits"
	"time"
)

// A wheel has levels of slots: one slot of level 0 is a tick, and one slot of each higher level is a full turn of
// the level below. Setting and cancelling a timer takes a few nanoseconds, however many timers there are.
const (
	tickBits  = 16 // a tick is 65.5 µs
	slotBits  = 8
	slots     = 1 << slotBits
	levels    = 4 // 3 days
	furthest  = 1<<(levels*slotBits) - 1
	slotsMask = slots - 1
)

// timer is one wake-up of a coroutine. It is set in at most one wheel.
type timer struct {
	next, prev *timer // nil: not set
	due        int64  // tick
	level      uint8
	slot       uint8
	co         *coroutine
}

// set reports whether the timer is in a wheel.
func (t *timer) set() bool { return t.next != nil }

// wheel holds timers by the tick at which they are due.
type wheel struct {
	now   int64 // tick up to which timers have fired
	heads [levels][slots]timer
	full  [levels][slots / 64]uint64 // which slots hold timers
	count int
}

// ticks returns the first tick not before at.
func ticks(at time.Duration) int64 { return (int64(at) + 1<<tickBits - 1) >> tickBits }

// add sets t to fire at a time, and never earlier.
func (w *wheel) add(t *timer, at time.Duration) {
	t.due = max(ticks(at), w.now+1)
	w.put(t)
	w.count++
}

func (w *wheel) put(t *timer) {
	ahead := t.due - w.now
	if ahead > furthest {
		ahead = furthest // it is added again when its slot comes
	}
	level := max(0, bits.Len64(uint64(ahead))-1) / slotBits
	slot := (w.now + ahead) >> (level * slotBits) & slotsMask
	h := &w.heads[level][slot]
	if h.next == nil {
		h.next, h.prev = h, h
	}
	t.level, t.slot = uint8(level), uint8(slot)
	t.prev, t.next = h.prev, h
	h.prev.next, h.prev = t, t
	w.full[level][slot/64] |= 1 << (slot % 64)
}

// remove cancels t, if it is set.
func (w *wheel) remove(t *timer) {
	if t.set() {
		w.unlink(t)
		w.count--
	}
}

func (w *wheel) unlink(t *timer) {
	t.prev.next, t.next.prev = t.next, t.prev
	t.next, t.prev = nil, nil
	if h := &w.heads[t.level][t.slot]; h.next == h {
		w.full[t.level][t.slot/64] &^= 1 << (t.slot % 64)
	}
}

// advance fires every timer due at a time or before.
func (w *wheel) advance(to time.Duration, fire func(*timer)) {
	last := int64(to) >> tickBits
	for w.now < last {
		if w.count == 0 {
			w.now = last
			return
		}
		w.now++
		for level := 1; level < levels && w.now&(1<<(level*slotBits)-1) == 0; level++ {
			w.each(level, int(w.now>>(level*slotBits)&slotsMask), w.put)
		}
		w.each(0, int(w.now&slotsMask), func(t *timer) {
			w.count--
			fire(t)
		})
	}
}

// each removes every timer from a slot and passes it to f.
func (w *wheel) each(level, slot int, f func(*timer)) {
	if w.full[level][slot/64]&(1<<(slot%64)) == 0 {
		return
	}
	h := &w.heads[level][slot]
	for n := h.next; n != h; n = h.next {
		w.unlink(n)
		f(n)
	}
}

// next returns a time before which no timer is due; ok is false if none is set.
func (w *wheel) next() (at time.Duration, ok bool) {
	if w.count == 0 {
		return 0, false
	}
	first := int64(-1)
	for level := range levels {
		if slot, any := w.nextSlot(level); any && (first < 0 || slot < first) {
			first = slot
		}
	}
	return time.Duration(first << tickBits), true
}

// nextSlot returns the tick at which the next occupied slot of a level begins.
func (w *wheel) nextSlot(level int) (tick int64, any bool) {
	shift := level * slotBits
	present := w.now >> shift
	for ahead := int64(1); ahead <= slots; {
		slot := int((present + ahead) & slotsMask)
		if rest := w.full[level][slot/64] >> (slot % 64); rest != 0 {
			return (present + ahead + int64(bits.TrailingZeros64(rest))) << shift, true
		}
		ahead += int64(64 - slot%64)
	}
	return 0, false
}
