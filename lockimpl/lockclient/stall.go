package lockclient

import (
	"sync"

	"oversell/wire"
)

// Stall is a client that is held up before it sends a command.
type Stall struct {
	c       *Client
	reached chan struct{} // closed when the client stands there
	resume  chan struct{}
	done    chan struct{} // closed when the call has returned
}

// Stalled starts a call of the client and stops it before its n-th command. It returns nil, after the call has
// returned, if the call sends fewer than n commands. before, if given, is the action on the command before that one.
func (c *Client) Stalled(n int, call func(), before ...wire.Action) *Stall {
	return c.stalled(func(nth int, _ wire.Command) bool { return nth == n }, func(nth int) wire.Action {
		if len(before) > 0 && nth == n-1 && nth > 0 { // 0 is within a transaction
			return before[0]
		}
		return wire.Action{}
	}, call)
}

// StalledWhen is Stalled before the commands that stands reports, which is called with one command at a time.
func (c *Client) StalledWhen(stands func(wire.Command) bool, call func()) *Stall {
	var mu sync.Mutex
	return c.stalled(func(_ int, cmd wire.Command) bool {
		mu.Lock()
		defer mu.Unlock()
		return stands(cmd)
	}, func(int) wire.Action { return wire.Action{} }, call)
}

func (c *Client) stalled(stands func(nth int, cmd wire.Command) bool, act func(nth int) wire.Action, call func()) *Stall {
	s := &Stall{c: c, reached: make(chan struct{}), resume: make(chan struct{}), done: make(chan struct{})}
	var once sync.Once
	c.Plan(func(nth int, cmd wire.Command) wire.Action {
		if stands(nth, cmd) {
			once.Do(func() { close(s.reached) })
			select {
			case <-s.resume:
			case <-c.world.Ctx.Done():
			}
		}
		return act(nth)
	})
	go func() { call(); close(s.done) }()
	select {
	case <-s.reached:
		return s
	case <-s.done:
		c.Plan(nil)
		return nil
	case <-c.world.Ctx.Done():
		return nil
	}
}

// GoOn lets the client go on, and waits until its call has returned.
func (s *Stall) GoOn() {
	close(s.resume)
	s.c.Plan(nil)
	select {
	case <-s.done:
	case <-s.c.world.Ctx.Done():
	}
}
