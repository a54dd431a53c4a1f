package explore

import (
	"context"
	"sync"
	"time"

	"oversell/system"
)

// overdueEvery is how often the processes of a search whose time is up are ended, until the search notices.
const overdueEvery = 50 * time.Millisecond

// guard ends the processes of a system from the end of ctx or this moment on, so that no single execution
// keeps the search from its end. Their failures after that are not errors: see search.fail. It goes on until stop is
// called.
func (x *search) guard(ctx context.Context, s *system.System, from time.Time) (stop func()) {
	if s == nil {
		return func() {}
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if !from.IsZero() {
		limited, cancel = context.WithDeadline(ctx, from)
	}
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer cancel()
		select {
		case <-over:
			return
		case <-limited.Done():
		}
		x.overdue.Store(true)
		x.stopped(ctx) // notes why
		for {
			s.CloseSearches()
			select {
			case <-over:
				return
			case <-time.After(overdueEvery):
			}
		}
	})
	return sync.OnceFunc(func() { close(over); running.Wait() })
}
