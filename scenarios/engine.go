package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/faults"
	"oversell/internal/errclass"
	"oversell/internal/limits"
	"oversell/load"
)

// DefaultRTT is the default virtual round-trip time of the engine mux.
const DefaultRTT = time.Millisecond

// ErrClusterMux refuses a cluster.
var ErrClusterMux = errclass.Usagef("--topology cluster cannot be used with --engine mux, whose pipelines lead to one server each: use --engine goroutine, or another --topology")

// engineFits fills in the engine, and refuses settings that it does not support.
func (c *Config) engineFits() error {
	c.Engine = cmp.Or(c.Engine, load.Goroutines)
	switch {
	case !slices.Contains(load.Engines, c.Engine):
		return fmt.Errorf("--engine %q is not known: it is one of %s", c.Engine, strings.Join(load.Engines, ", "))
	case c.Engine == load.Goroutines && c.RTT != 0:
		return fmt.Errorf("--rtt needs --engine mux: goroutines have real round trips, on connections of their own")
	case c.Engine == load.Goroutines:
		return nil
	}
	c.RTT = orNone(cmp.Or(c.RTT, DefaultRTT))
	if err := limits.Run.Check("rtt", float64(c.RTT)); err != nil {
		return err
	}
	return c.multiplexes()
}

// multiplexes refuses settings that the engine mux does not support.
func (c *Config) multiplexes() error {
	const instead = "use --engine goroutine"
	switch {
	case c.Pool > 0:
		return fmt.Errorf("--pool cannot be used with --engine mux, whose clients share its pipelines: leave it out")
	case c.Waiting == load.PubSub:
		return fmt.Errorf("--waiting pubsub cannot be used with --engine mux, whose clients cannot wait for a subscription: use --waiting poll, or %s", instead)
	case c.NeedsSQL():
		return unmet("scenario %s keeps its state in SQL, whose driver blocks: --engine mux cannot run it; %s", c.Scenario.Name, instead)
	}
	for _, f := range c.Faults {
		w := f.Where
		if f.Kind.Level != faults.OnWire {
			continue
		}
		const shared = "hits the connection of a client by what %s, and with --engine mux clients share theirs; " + instead
		switch {
		case w.Client != 0:
			return f.Errorf(faults.TakesClient, shared, "its number is")
		case w.State != "":
			return f.Errorf(faults.TakesState, shared, "it holds or waits for")
		case w.During != "":
			return f.Errorf(faults.TakesDuring, shared, "it is doing")
		}
	}
	return nil
}
