package campaign

import (
	"context"

	"oversell/faults"
	"oversell/scenarios"
)

// Possible starts the servers of the plan's runs and asks them whether they can have the
// faults that the runs want; nothing befalls them. An error of class server.ErrUsage says
// which they cannot have; another one that the environment failed.
func Possible(ctx context.Context, p Plan, w Watcher) error {
	s := NewServers(p, w)
	defer s.Close()
	for _, c := range p.Runs {
		if err := s.Possible(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// Possible asks the server of a run whether it can have the run's faults.
func (s *Servers) Possible(ctx context.Context, c scenarios.Config) error {
	if len(c.Faults) == 0 {
		return nil
	}
	t, err := s.redis(ctx, c)
	if err != nil {
		return err
	}
	in, err := faults.New(ctx, faults.Options{Faults: c.Faults, Target: t})
	if err != nil {
		return err
	}
	return in.Close()
}
