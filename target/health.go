package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// The servers are asked whether all is well every firstPoll, and then less and less
// often: each question is a connection of its own, and machines that track
// connections have room for so many.
const (
	firstPoll = 3 * time.Millisecond
	lastPoll  = 30 * time.Millisecond
)

// poll tries until it succeeds or ctx ends.
func poll(ctx context.Context, try func(context.Context) error) error {
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		// Under ctx, the last attempt would tell of the end of ctx and of nothing
		// else. It has its own, short timeouts.
		err := try(context.WithoutCancel(ctx))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// roll asks every server that was not killed how it is, all at once. The answers
// are in the order of the servers, and nil for those that were killed.
func (t *Target) roll(ctx context.Context) ([]info, error) {
	answers, errs := make([]info, len(t.servers)), make([]error, len(t.servers))
	var wg sync.WaitGroup
	for i, s := range t.servers {
		if s.killed.Load() {
			continue
		}
		if errs[i] = s.away(); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			if answers[i], errs[i] = s.ask(ctx); errs[i] != nil {
				errs[i] = s.silent(errs[i])
			}
		})
	}
	wg.Wait()
	return answers, cmp.Or(errs...)
}

// isGone says that a server was killed.
func (s *server) isGone() error {
	return fmt.Errorf("server %d on %s was killed and not started again", s.Number, s.Addr)
}

// away says that a server was killed or frozen, nil if it was not.
func (s *server) away() error {
	switch {
	case s.killed.Load():
		return s.isGone()
	case s.frozen.Load():
		return fmt.Errorf("server %d on %s is frozen", s.Number, s.Addr)
	}
	return nil
}

// silent says that a server does not answer.
func (s *server) silent(err error) error {
	if away := s.away(); away != nil {
		return away // meanwhile
	}
	number, network := syscall.Errno(0), net.Error(nil)
	switch {
	case errors.As(err, &number):
		err = number
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("it takes longer than %v", talkTimeout)
	}
	return fmt.Errorf("server %d on %s does not answer: %w", s.Number, s.Addr, err)
}
