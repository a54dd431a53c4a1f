package campaign

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/faults"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/load"
	"oversell/load/arrival"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/scenarios"
	"oversell/server"
	"oversell/stockimpl"
	"oversell/variant"
)

// commandLine returns the command line that repeats the run of a history. Flags with default values are left out,
// except the variants. A history does not record the address of a server or database that was given; the command has a
// placeholder for it. Nor does it record that servers kept an append-only file; the command leaves that out. For a
// history from another program, or with a scenario or variants that are not shipped, the command is empty.
func commandLine(h history.Header) string {
	if !repeatable(h) {
		return ""
	}
	defaults := completed(h, h.TTL)
	c := command{words: []string{"oversell", "run"}}
	o := &Options{}
	c.flags = pflag.NewFlagSet("run", pflag.ContinueOnError)
	o.Bind(c.flags)

	c.text("scenario", h.Scenario)
	for _, of := range variant.Objects {
		c.text(string(of), h.Variant(of))
	}
	c.server(h)
	emulated := h.Target == string(server.Embedded) // the emulation has defaults of its own
	c.size("clients", int64(h.Clients), emulated)
	if h.Sale != "" {
		c.size("stock", h.Stock, emulated)
		c.number("quantity", int64(h.Quantity))
		if h.Resend != defaults.Resend {
			c.words = append(c.words, "--resend", strconv.FormatFloat(h.Resend, 'g', -1, 64))
		}
		c.share("refund", h.Refund)
		c.flag("refuse-stale", h.RefuseStale)
	}
	if h.Queue != "" {
		if h.Delay != defaults.Delay { // a delay of 0 may have been given
			c.words = append(c.words, "--delay", h.Delay.String())
		}
		if h.Repeat != defaults.Repeat {
			c.words = append(c.words, "--repeat", strconv.FormatFloat(h.Repeat, 'g', -1, 64))
		}
		c.flag("overwrite", h.Overwrite)
		c.number("batch", int64(max(h.Batch, 1)))
		c.share("withdraw", h.Withdraw)
		c.share("peek", h.Peek)
		c.time("visibility", h.Visibility, defaults.QueueOptions.Visibility)
		c.number("attempts", int64(h.Attempts))
	}
	c.share("die", h.Die)
	if h.Abandon != defaults.Abandon {
		c.words = append(c.words, "--abandon", strconv.Itoa(h.Abandon))
	}
	c.time("ttl", h.TTL, completed(h, 0).TTL)
	c.time("wait", h.Wait, 0)
	c.time("retry", h.Retry, defaults.Retry)
	c.time("hold", h.Hold, defaults.Hold)
	c.time("timeout", h.Timeout, 0)
	c.text("waiting", h.Waiting)
	c.number("pool", int64(h.Pool))
	if rate, err := arrival.ParseStages(h.Rate); err == nil {
		c.words = append(c.words, "--stages", rate.String())
	} else {
		c.text("rate", h.Rate)
	}
	if h.Arrival != string(arrival.Constant) {
		c.text("arrival", h.Arrival)
	}
	if h.Engine == load.Coroutines {
		c.text("engine", h.Engine)
		c.words = append(c.words, "--rtt", h.RTT.String())
	}
	c.time("duration", h.Duration, defaults.Duration)
	if h.Ops != defaults.Ops {
		c.number("ops", h.Ops)
	}
	for _, f := range h.Faults {
		c.words = append(c.words, "--fault", phrase.ShellWord(f))
	}
	c.words = append(c.words, "--seed", strconv.FormatUint(h.Seed, 10))
	return strings.Join(c.words, " ")
}

// repeatable reports whether everything that the header names can be run.
func repeatable(h history.Header) bool {
	if _, known := scenarios.Find(h.Scenario); !known || h.Clients < 1 {
		return false
	}
	for _, of := range variant.Objects {
		if name := h.Variant(of); name != "" && !shipped(of, name) {
			return false
		}
	}
	return true
}

// completed returns the default configuration of a run with these variants and this lease (0: the scenario's
// default).
func completed(h history.Header, ttl time.Duration) scenarios.Config {
	c := scenarios.Config{Clients: h.Clients, Waiting: load.Waiting(h.Waiting), TTL: ttl, Wait: h.Wait, Stock: h.Stock, Quantity: h.Quantity, Die: h.Die}
	var known bool
	if c.Scenario, known = scenarios.Find(h.Scenario); !known {
		return c
	}
	for _, v := range lockimpl.Variants {
		if v.Name == h.Lock {
			c.Lock = v
		}
	}
	for _, v := range stockimpl.Variants {
		if v.Name == h.Sale {
			c.Sale = v
		}
	}
	for _, v := range queueimpl.Variants {
		if v.Name == h.Queue {
			c.Queue = v
		}
	}
	for _, sentence := range h.Faults {
		if f, err := faults.Parse(sentence); err == nil {
			c.Faults = append(c.Faults, f)
		}
	}
	if c.Rate, _ = arrival.ParseStages(h.Rate); c.Rate == nil {
		c.Rate, _ = arrival.ParseRate(h.Rate)
	}
	masters := 1
	if n, ok := strings.CutPrefix(h.Topology, "masters:"); ok {
		masters, _ = strconv.Atoi(n)
	}
	_ = c.Complete(masters) // values that do not fit are not defaults
	return c
}

// command builds a command line.
type command struct {
	flags *pflag.FlagSet
	words []string
}

// add adds a flag unless it has its default value.
func (c *command) add(name, value string) {
	if f := c.flags.Lookup(name); f != nil && (f.DefValue == value || f.DefValue == "0" && value == "0s") {
		return
	}
	c.words = append(c.words, "--"+name, phrase.ShellWord(value))
}

func (c *command) text(name, value string) {
	if value != "" {
		c.add(name, value)
	}
}

// flag adds a flag without a value if it is set.
func (c *command) flag(name string, set bool) {
	if set {
		c.words = append(c.words, "--"+name)
	}
}

func (c *command) number(name string, n int64) { c.add(name, strconv.FormatInt(n, 10)) }

// size adds a number unless it is the default; with always, in any case.
func (c *command) size(name string, n int64, always bool) {
	if always {
		c.words = append(c.words, "--"+name, strconv.FormatInt(n, 10))
		return
	}
	c.number(name, n)
}

func (c *command) share(name string, p float64) {
	c.add(name, strconv.FormatFloat(p, 'g', -1, 64))
}

// time adds a duration unless it is the scenario's default.
func (c *command) time(name string, d, byItself time.Duration) {
	if d != byItself {
		c.add(name, d.String())
	}
}

// server adds the flags for the target.
func (c *command) server(h history.Header) {
	switch server.Kind(h.Target) {
	case server.Address:
		c.words = append(c.words, "--target", "redis://HOST:PORT")
	default:
		c.text("target", h.Target)
	}
	if h.Topology != "single" {
		c.text("topology", h.Topology)
	}
	if kind, _, _ := strings.Cut(h.SQL, " "); kind != "" && kind != "sqlite" {
		c.words = append(c.words, "--sql", kind+"://USER:PASSWORD@HOST/DATABASE")
	}
}
