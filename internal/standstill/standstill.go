// Package standstill notices when a machine or its Redis servers stand still for a while, so that a test with limits of
// time does not blame the code under test. A server on which a script goes on, and which therefore answers BUSY, stands still.
package standstill

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// every is the pause between two looks.
const every = 20 * time.Millisecond

// Probe pings some servers every 20 ms. It is safe for concurrent use.
type Probe struct {
	cancel  context.CancelFunc
	mu      sync.Mutex
	last    time.Time // when the last look had ended
	longest time.Duration
}

// Begin starts a probe of the servers of some clients; without clients, it watches the machine. End ends it, and does
// not close the clients.
func Begin(clients []redis.UniversalClient) *Probe {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Probe{cancel: cancel, last: time.Now()}
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			answered := true
			for _, c := range clients {
				answered = !busy(c.Ping(ctx).Err()) && answered // else only the time until it returns matters
			}
			if w.Longest(); answered {
				w.looked()
			}
		}
	}()
	return w
}

// busy reports whether a server refuses commands while a script goes on.
func busy(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "BUSY ") }

func (w *Probe) looked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
}

// Longest returns the longest time from one look to the next, the one that is under way included.
func (w *Probe) Longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = max(w.longest, time.Since(w.last))
	return w.longest
}

// End ends the probe. A look that is under way may go on for as long as its client waits for an answer.
func (w *Probe) End() { w.cancel() }

// Limit is how long a standstill must be for a failure to be doubted.
const Limit = time.Second

// Outcome is the result of a test, and the longest standstill while it went on.
type Outcome struct {
	Err   error
	Still time.Duration
}

// Doubtful reports whether the standstill may be the reason for the result, if that is a failure.
func (o Outcome) Doubtful() bool { return o.Still >= Limit }

// While watches the servers of some clients while try goes on.
func While(clients []redis.UniversalClient, try func() error) Outcome {
	w := Begin(clients)
	defer w.End()
	err := try()
	return Outcome{err, w.Longest()}
}
