package explore

import (
	"fmt"

	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/system"
	"oversell/variant"
)

// ConfigOf returns the configuration of a reported search, of shipped variants or of an external
// system, so that its schedule can be replayed.
func ConfigOf(e reports.Exploration) (Config, error) {
	switch {
	case e.Schema != reports.ExplorationSchema:
		return Config{}, fmt.Errorf("%w: the schema of the exploration is %q, not %q", ErrUsage, e.Schema, reports.ExplorationSchema)
	case e.Counterexample == nil:
		return Config{}, fmt.Errorf("%w: the exploration ended as %s: it has no schedule", ErrUsage, e.Verdict)
	}
	c := Config{
		Bounds: e.Bounds, Masters: e.Masters,
		Look: []history.Promise{{Of: e.Counterexample.Of, Property: e.Counterexample.Property}},
		Run:  scenarios.Config{Stock: e.Stock, Quantity: e.Quantity, TTL: reports.FromMS(e.TTLMS), Hold: reports.FromMS(e.HoldMS)},
	}
	c.Run.QueueOptions.Visibility = reports.FromMS(e.VisibilityMS)
	system, err := systemOf(e)
	if err != nil {
		return c, err
	}
	c.System = system
	known := true
	if c.Run.Scenario, known = scenarios.Find(e.Scenario); !known {
		return c, unknownName("scenario", e.Scenario)
	}
	if system != nil && system.Object == variant.Lock {
		c.Run.Lock = system.Lock()
	} else if e.Lock != "" {
		if c.Run.Lock, known = lockimpl.Find(e.Lock); !known {
			return c, unknownName("lock", e.Lock)
		}
	}
	if system != nil && system.Object == variant.Sale {
		c.Run.Sale = system.Sale()
	} else if e.Sale != "" {
		if c.Run.Sale, known = stockimpl.Find(e.Sale); !known {
			return c, unknownName("sale", e.Sale)
		}
	}
	if e.Queue != "" {
		if c.Run.Queue, known = queueimpl.Find(e.Queue); !known {
			return c, unknownName("queue", e.Queue)
		}
	}
	if e.IDs != "" {
		if c.Run.IDs, known = idimpl.Find(e.IDs); !known {
			return c, unknownName("generator", e.IDs)
		}
	}
	return c, c.Complete()
}

// systemOf reads the system that was explored; nil if there was none.
func systemOf(e reports.Exploration) (*system.System, error) {
	if e.System == "" {
		return nil, nil
	}
	s, err := system.Read(e.System)
	if err != nil {
		return nil, fmt.Errorf("%w: the system of the exploration: %w", ErrUsage, err)
	}
	return s, nil
}

func unknownName(what, name string) error {
	return fmt.Errorf("%w: there is no %s %q here", ErrUsage, what, name)
}
