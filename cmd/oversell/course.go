package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"oversell/internal/phrase"
)

// course is the progress of a command that makes several runs, searches or measurements.
type course struct {
	noun    string
	n, done int
	began   time.Time
	takes   time.Duration // expected duration of the whole; 0: unknown
	label   string        // the current item, if it says more than done and n
	said    time.Time     // when the last line was written
}

// quiet is the interval between progress lines when the output is not a terminal.
const quiet = 15 * time.Second

// announced describes the amount of work and its expected duration before the start.
func (c *course) announced() string {
	s := phrase.Count(c.n, c.noun)
	if c.takes > 0 {
		s += ": this takes about " + roughly(c.takes)
	}
	return s
}

// part returns the completed share, from 0 to 1.
func (c *course) part(now time.Time) float64 {
	switch {
	case c.n > 0 && c.done > 0:
		return float64(c.done) / float64(c.n)
	case c.takes > 0:
		return min(now.Sub(c.began).Seconds()/c.takes.Seconds(), 0.99)
	}
	return 0
}

// words describes the progress and the remaining time: at the pace so far or, while nothing is done, as expected.
func (c *course) words(now time.Time) string {
	elapsed := now.Sub(c.began)
	s := c.label
	if c.n > 0 {
		s = strings.TrimPrefix(s+fmt.Sprintf(", %d of %s done", c.done, phrase.Count(c.n, c.noun)), ", ")
	}
	s = strings.TrimPrefix(s+", "+roughly(elapsed), ", ")
	left := c.takes - elapsed
	if c.done > 0 {
		left = time.Duration(float64(elapsed) / float64(c.done) * float64(c.n-c.done))
	}
	if left > time.Second {
		s += ", about " + roughly(left) + " left"
	}
	return s
}

// due reports whether a progress line is due when the output is not a terminal.
func (c *course) due(now time.Time) bool {
	since := c.said
	if since.Before(c.began) {
		since = c.began
	}
	return now.Sub(since) >= quiet
}

// roughly rounds a duration to the second, or from two minutes on to half a minute.
func roughly(d time.Duration) string {
	if d >= 2*time.Minute {
		return fmt.Sprintf("%g min", d.Round(30*time.Second).Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// course draws the line that shows overall progress.
func (s style) course(c *course, now time.Time) string {
	return s.gauge(c.part(now), c.words(now), s.width)
}

// gauge puts a bar before a text if there is room for one.
func (s style) gauge(part float64, text string, room int) string {
	width := min(room-uniseg.StringWidth(text)-2, mostBar)
	if width < leastBar {
		return text
	}
	full := int(max(0, min(part, 1)) * float64(width))
	return strings.Repeat(s.full, full) + strings.Repeat(s.empty, width-full) + "  " + text
}
