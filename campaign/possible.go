package campaign

import (
	"context"

	"oversell/faults"
	"oversell/scenarios"
)

// CheckFaults starts the servers of the plan's runs and checks whether they support the faults; it injects none. An
// error of class server.ErrUsage names a fault that they do not support; any other error is an environment error.
func CheckFaults(ctx context.Context, p Plan, w Watcher) error {
	s := NewServers(p, w)
	defer s.Close()
	for _, c := range p.Runs {
		if err := s.Possible(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// CheckFaults checks whether the server of a run supports the run's faults.
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
