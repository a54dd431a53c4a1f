package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// The servers are polled every firstPoll, and then less and less often: each poll is a connection of its own, and
// connection tracking has a limit.
const (
	firstPoll = 3 * time.Millisecond
	lastPoll  = 30 * time.Millisecond
)

// Poll tries until it succeeds or ctx ends.
func Poll(ctx context.Context, try func(context.Context) error) error {
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		// Under ctx, the last attempt would only report the end of ctx. It has its own, short timeouts.
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

// KilledError returns the error that a server was killed.
func (s *Server) KilledError() error {
	return fmt.Errorf("server %d on %s was killed and not started again", s.Number, s.Addr)
}

// Away returns an error if a server was killed or frozen.
func (s *Server) Away() error {
	switch {
	case s.Killed.Load():
		return s.KilledError()
	case s.Frozen.Load():
		return fmt.Errorf("server %d on %s is frozen", s.Number, s.Addr)
	}
	return nil
}

// Silent returns the error that a server does not answer.
func (s *Server) Silent(err error) error {
	if away := s.Away(); away != nil {
		return away // meanwhile
	}
	number, network := syscall.Errno(0), net.Error(nil)
	switch {
	case errors.As(err, &number):
		err = number
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("it takes longer than %v", TalkTimeout)
	}
	return fmt.Errorf("server %d on %s does not answer: %w", s.Number, s.Addr, err)
}
