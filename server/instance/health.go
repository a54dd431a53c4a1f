package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// Poll tries until it succeeds or ctx ends.
func Poll(ctx context.Context, try func(context.Context) error) error {
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

// IsGone says that a server was killed.
func (s *Server) IsGone() error {
	return fmt.Errorf("server %d on %s was killed and not started again", s.Number, s.Addr)
}

// Away says that a server was killed or frozen, nil if it was not.
func (s *Server) Away() error {
	switch {
	case s.Killed.Load():
		return s.IsGone()
	case s.Frozen.Load():
		return fmt.Errorf("server %d on %s is frozen", s.Number, s.Addr)
	}
	return nil
}

// Silent says that a server does not answer.
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
