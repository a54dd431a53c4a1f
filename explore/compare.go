package explore

import (
	"context"
	"time"
)

// mostCompared is the most histories that compare executes for one role.
const mostCompared = 5000

// comparedFor returns how long compare may take after a search that took this long.
func comparedFor(searched time.Duration) time.Duration { return max(searched, time.Second) }

// compare executes merged histories of the clients after a search that found nothing.
func (x *search) compare(ctx context.Context) {
	now := time.Now()
	end := now.Add(comparedFor(now.Sub(x.began)))
	if x.bounds.TimeMS > 0 {
		// A search that ran out of time decides nothing.
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
