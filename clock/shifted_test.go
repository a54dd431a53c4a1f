package clock

import (
	"testing"
	"time"
)

// TestShifted checks that a clock that is ahead of another shows a later time, and moves with it.
func TestShifted(t *testing.T) {
	start := time.Date(2026, 11, 27, 23, 59, 0, 0, time.UTC)
	c := NewVirtual(start)
	ahead, behind := Shifted{c, time.Hour}, Shifted{c, -time.Hour}
	c.Advance(2 * time.Minute)
	want := start.Add(2 * time.Minute)
	if a, b := ahead.Now(), behind.Now(); !a.Equal(want.Add(time.Hour)) || !b.Equal(want.Add(-time.Hour)) {
		t.Errorf("at %v, the clock an hour ahead shows %v, and the one an hour behind shows %v", want, a, b)
	}
}
