package explore

import (
	"context"
	"time"

	"oversell/explore/table"
	"oversell/reports"
)

// mostFollowed is how often a search is repeated with the instants that were found: each time further ones may show.
const mostFollowed = 4

// followedFor is how long looks at the clock are followed after a search without a time limit, or
// as long as the search took if that is longer. With a limit, a sixth of the time for the search of
// all schedules takes the place of followedFor, and the end is when nine tenths of that time are
// over.
const followedFor = 10 * time.Second

// endedEmpty reports whether the search has ended, and found nothing.
func (x *search) endedEmpty() bool {
	return x.best() == nil && x.again() == nil && x.err == nil && x.cut.Load() == nil
}

// follow repeats a search that found nothing as long as it shows instants from which on clients behave differently after
// commands. If the last of these searches cannot be finished, whole is false, and the effort is that before.
func (x *search) follow(ctx context.Context, start state, progress func(reports.Effort)) (before reports.Effort, whole bool) {
	for repeated := 0; x.endedEmpty(); repeated++ {
		now := time.Now()
		end := now.Add(max(now.Sub(x.began), followedFor))
		if x.bounds.TimeMS > 0 {
			end = now.Add(max(now.Sub(x.began), x.most()/6))
			if last := x.began.Add(x.most() * 9 / 10); last.Before(end) {
				end = last
			}
		}
		found := false
		for i, t := range x.tries {
			more, all := t.Follow(now.Add(end.Sub(now) * time.Duration(i+1) / time.Duration(len(x.tries))))
			found, x.unfollowed = found || more, x.unfollowed || !all
		}
		if !found {
			return before, true
		}
		if repeated == mostFollowed {
			x.unfollowed = true
			return before, true
		}
		before = x.counted(x.reached)
		x.visited = table.Visited{}
		if x.run(ctx, start, progress); x.cut.Load() != nil && len(x.found) == 0 && x.err == nil {
			x.cut.Store(nil)
			x.unfollowed = true
			return before, false
		}
	}
	return before, true
}

// A search that found nothing executes the clients' code again, to notice what it does seldom: see repeat. repeatedFor is the least
// time for that.
const (
	leastRepeated = 500
	mostRepeated  = 2_000
	repeatedFor   = 50 * time.Millisecond
)

// repeat executes the code of the clients again after a search that found nothing, until there were mostRepeated executions, or
// leastRepeated and repeatedFor, or a tenth of the time that the search took, is over.
func (x *search) repeat(ctx context.Context) {
	if !x.endedEmpty() {
		return
	}
	until := time.Now().Add(max(repeatedFor, time.Since(x.began)/10))
	for _, t := range x.tries {
		if err := t.Repeat(ctx, leastRepeated, mostRepeated, until); err != nil {
			x.fail(err)
			return
		}
	}
}
