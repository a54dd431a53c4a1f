package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"oversell/reports"
)

// TestCourse checks that the remaining time follows from the expected duration at first, and then from the pace.
func TestCourse(t *testing.T) {
	start := time.Now()
	after := func(d time.Duration) time.Time { return start.Add(d) }
	for _, c := range []struct {
		course course
		at     time.Duration
		want   string
		part   float64
	}{
		{course{noun: "run", n: 20, takes: 40 * time.Second}, 10 * time.Second, "0 of 20 runs done, 10 s, about 30 s left", 0.25},
		{course{noun: "run", n: 20, takes: 40 * time.Second}, time.Minute, "0 of 20 runs done, 60 s", 0.99},
		{course{noun: "run", n: 20, done: 5, takes: 40 * time.Second}, 20 * time.Second, "5 of 20 runs done, 20 s, about 60 s left", 0.25},
		{course{noun: "search", n: 2, done: 1}, 150 * time.Second, "1 of 2 searches done, 2.5 min, about 2.5 min left", 0.5},
		{course{label: "round 2, run 3 of 40"}, 61 * time.Second, "round 2, run 3 of 40, 61 s", 0},
	} {
		c.course.began = start
		if got := c.course.words(after(c.at)); got != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
		if got := c.course.part(after(c.at)); got != c.part {
			t.Errorf("%q: %v; want %v", c.want, got, c.part)
		}
	}
	if got, want := (&course{noun: "claim", n: 26, takes: 156 * time.Second}).announced(), "26 claims: this takes about 2.5 min"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	s := style{width: 59, glyphs: asciiGlyphs}
	if got, want := s.course(&course{noun: "run", n: 4, done: 1, began: start}, after(4*time.Second)), "######....................  1 of 4 runs done, 4 s, about 12 s left"; len(got) > s.width || got[:1] != want[:1] {
		t.Errorf("%q has no bar, or is wider than %d", got, s.width)
	}
}

// TestALineIsDueAfterSilence checks that a line is due after a silence, and only then: every other line ends the
// silence.
func TestALineIsDueAfterSilence(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	start := time.Now()
	p.course = &course{noun: "claim", n: 3, began: start}
	p.onward(start.Add(quiet - time.Second))
	if b.Len() > 0 {
		t.Errorf("too soon: %s", b.String())
	}
	p.onward(start.Add(quiet))
	if got, want := b.String(), "0 of 3 claims done, 15 s\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	p.onward(start.Add(quiet + time.Second))
	if got := bytes.Count(b.Bytes(), []byte("\n")); got != 1 {
		t.Errorf("%d lines:\n%s", got, b.String())
	}
}

// TestWidthOf checks that $COLUMNS sets the width, and that an output that is not a terminal has none.
func TestWidthOf(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for columns, want := range map[string]int{"": 0, "120": 120, "0": 0, "-5": 0, "wide": 0} {
		if got := widthOf(file, columns); got != want {
			t.Errorf("COLUMNS=%s: %d; want %d", columns, got, want)
		}
	}
}

// TestProgressOfRandomSchedules checks that the line about a search counts schedules when it goes on at random, and not
// the states that it no longer counts.
func TestProgressOfRandomSchedules(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.searching(reports.Effort{ElapsedMS: 6e3, Depth: 16, Transitions: 7e6, Random: &reports.RandomEffort{Schedules: 1234}}, 10*time.Second)
	p.Close()
	if got, want := b.String(), "1,234 random schedules so far; ends in at most 4.00 s\n"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
