package campaign

import (
	"context"

	"oversell/faults"
	"oversell/scenarios"
	"oversell/server"
)

// Possible starts the servers of the plan's runs and asks them whether they can have the
// faults that the runs want; nothing befalls them. An error of class server.ErrUsage says
// which they cannot have; another one that the environment failed.
func Possible(ctx context.Context, p Plan, w Watcher) error {
	s := servers{plan: p, watcher: w, open: map[string]*server.Target{}}
	defer s.close()
	for _, c := range p.Runs {
		if err := s.possible(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// possible asks the server of a run whether it can have the run's faults.
func (s *servers) possible(ctx context.Context, c scenarios.Config) error {
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
