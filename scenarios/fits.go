package scenarios

import (
	"slices"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/server"
	"oversell/variant"
)

// fits refuses a fault that cannot have an effect in this run. ends is the requested end of the run; 0: when its
// work is done.
func (c *Config) fits(ends time.Duration) error {
	for _, f := range c.Faults {
		for _, check := range []func(faults.Fault) error{c.inTime(ends), c.checkFaultClient, c.checkFaultOperation, c.checkFaultServers} {
			if err := check(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// inTime refuses a fault that would fire after the end of the run.
func (c *Config) inTime(ends time.Duration) func(faults.Fault) error {
	return func(f faults.Fault) error {
		switch {
		case ends == 0:
		case f.When.At >= ends:
			return f.Errorf(faults.TakesAt, "fires at %v, and the run ends after %v (--duration)", f.When.At, ends)
		case f.Lateness() >= ends:
			return f.Errorf(faults.TakesAmount, "has the command executed %v later, and the run ends after %v (--duration)", f.Lateness(), ends)
		}
		return nil
	}
}

// checkFaultClient refuses a fault of a client that does not exist.
func (c *Config) checkFaultClient(f faults.Fault) error {
	w := f.Where
	locks := c.Lock.New != nil
	switch {
	case w.Client > c.Clients:
		return f.Errorf(faults.TakesClient, "names client %d, but the clients are client 1 to client %d", w.Client, c.Clients)
	case w.State == faults.Holding && !locks:
		return f.Errorf(faults.TakesState, "hits a holder of a lock, and this run takes none")
	case w.State == faults.Waiting && !c.keepsLock():
		return f.Errorf(faults.TakesState, "hits a waiter for a lock, and no client of this run waits")
	case w.State == faults.Holding && slices.Contains([]string{history.Acquire.String(), history.Release.String()}, w.During),
		w.State == faults.Waiting && slices.Contains([]string{history.Release.String(), history.Extend.String()}, w.During):
		return f.Errorf(faults.TakesDuring, "does not go with %q: no %s is in that operation", w.State, w.State)
	}
	return nil
}

// checkFaultOperation refuses a fault of operations and commands that do not occur.
func (c *Config) checkFaultOperation(f faults.Fault) error {
	w := f.Where
	switch {
	case w.During != "" && !slices.ContainsFunc(c.operations(), func(k history.Kind) bool { return k.String() == w.During }):
		return f.Errorf(faults.TakesDuring, "fires in %s, and in this run of %s no client does that", w.During, c.Scenario.Name)
	case w.State == faults.Holding && f.NeedsCommand() && !c.commandsInSections() && (!c.Lock.Renews || f.OfThread()):
		return f.Errorf(faults.TakesState, "fires at commands of the lock's holder, and in this run of %s a holder sends none", c.Scenario.Name)
	}
	return nil
}

// checkFaultServers refuses a fault of servers that hold no data of this run.
func (c *Config) checkFaultServers(f faults.Fault) error {
	if f.Kind.HealLast && !f.When.ForGood {
		for _, s := range c.Subjects() {
			if s.Needs.ServerClock {
				return f.Errorf(faults.TakesFor, "sets the clock right while clients are at work, and %s %s stores times of that clock, which would be wrong from then on: leave out \"for\"", s.Of, s.Name)
			}
		}
	}
	onServers := f.Kind.Level == faults.OnServer || f.NeedsCommand() || f.Kind.Level == faults.OnWire
	switch {
	case f.Kind.OfLock && !c.oneLock():
		return f.Errorf(faults.TakesCommand, "hits the key of the one lock of all clients, and this run of %s has none", c.Scenario.Name)
	case onServers && !c.keepsLock() && !c.inRedis():
		return f.Errorf(faults.TakesCommand, "fires at Redis, and this run of %s keeps nothing there", c.Scenario.Name)
	}
	return nil
}

// FitServers refuses faults that name a server that does not exist, or that serves no
// client.
func (c Config) FitServers(all []server.Member) error {
	for _, f := range c.Faults {
		if err := f.FitsServers(all, c.Faults, c.mastersUsed()); err != nil {
			return err
		}
	}
	return nil
}

// mastersUsed returns how many of independent masters the clients use; 0: all.
func (c Config) mastersUsed() int {
	if slices.ContainsFunc(c.Subjects(), func(s Subject) bool { return s.Needs.Masters > 1 || s.Needs.AllMasters }) {
		return 0
	}
	return 1
}

// keepsLock reports whether the run has a lock that is stored on a server.
func (c Config) keepsLock() bool { return c.Lock.New != nil && len(c.Lock.Promises) > 0 }

// oneLock reports whether all clients use the same lock. In a dispatch there is one lock per task.
func (c Config) oneLock() bool { return c.keepsLock() && !c.Scenario.Uses(variant.Dispatch) }

// inRedis reports whether anything besides the lock is stored in Redis.
func (c Config) inRedis() bool {
	return slices.ContainsFunc(c.Subjects(), func(s Subject) bool { return s.Of != variant.Lock && !s.Needs.SQL })
}

// commandsInSections reports whether a client sends commands while it holds the lock.
func (c Config) commandsInSections() bool { return c.inRedis() || c.extends() }

// extends reports whether sections are long enough, compared with the lease, to extend the lock.
func (c Config) extends() bool {
	return slices.Contains(c.Scenario.Operations, history.Extend) && c.Hold > c.TTL/2
}

// operations returns the operations that clients of this run may carry out.
func (c Config) operations() []history.Kind {
	return slices.DeleteFunc(slices.Clone(c.Scenario.Operations), func(k history.Kind) bool {
		switch k {
		case history.Acquire, history.Release:
			return !c.keepsLock()
		case history.Extend:
			return !c.extends()
		case history.Refund:
			return c.Refund == 0
		}
		return false
	})
}
