package explore

import (
	"context"
	"time"
)

// mostCompared is the number of histories that are executed at most.
const mostCompared = 5000

// comparedFor returns how long they are executed at most, after a search that has taken so long.
func comparedFor(searched time.Duration) time.Duration { return max(searched, time.Second) }

// compare executes merged histories of the clients of a search that has found nothing.
func (x *search) compare(ctx context.Context) {
	now := time.Now()
	end := now.Add(comparedFor(now.Sub(x.began)))
	if x.bounds.TimeMS > 0 {
		// A search that is not over by its time decides nothing.
		if last := x.began.Add(x.most() * 9 / 10); last.Before(end) {
			end = last
		}
	}
	for i, t := range x.tries {
		share := time.Until(end) / time.Duration(len(x.tries)-i)
		limited, cancel := context.WithTimeout(ctx, share)
		c, err := t.Compare(limited, mostCompared, workerCount())
		cancel()
		if err != nil {
			x.fail(err)
			return
		}
		x.compared = x.compared.Add(c)
	}
}
