package explore

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
)

// ConfigOf is the search that an exploration of shipped variants tells of, so that
// its schedule can be driven again.
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
		Run:  scenarios.Config{Stock: e.Stock, Quantity: e.Quantity, TTL: duration(e.TTLMS), Hold: duration(e.HoldMS)},
	}
	c.Run.QueueOptions.Visibility = duration(e.VisibilityMS)
	known := true
	if c.Run.Scenario, known = scenarios.Find(e.Scenario); !known {
		return c, unknownName("scenario", e.Scenario)
	}
	if e.Lock != "" {
		if c.Run.Lock, known = lockimpl.Find(e.Lock); !known {
			return c, unknownName("lock", e.Lock)
		}
	}
	if e.Sale != "" {
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

func unknownName(what, name string) error {
	return fmt.Errorf("%w: there is no %s %q here", ErrUsage, what, name)
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
