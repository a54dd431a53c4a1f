package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/history"
	"oversell/server"
)

// The load of a server is sampled when the load starts, twice a second, and at the end: seldom enough not to affect
// the run. The number of samples is limited; beyond the limit, every second sample is dropped and the interval
// doubles.
const (
	gaugeEvery  = 500 * time.Millisecond
	gaugeLimit  = 250 * time.Millisecond // for a reply
	mostSamples = 240
)

// gauge samples the load of the servers.
type gauge struct {
	// usage samples one server.
	usage   func(ctx context.Context, number int) (server.Usage, error)
	since   func(time.Time) time.Duration
	servers []*gauged
	// killed says that faults of the run end servers and start them again.
	killed  bool
	over    chan struct{}
	working sync.WaitGroup
}

// gauged is one server.
type gauged struct {
	number int
	load   history.ServerLoad
	every  time.Duration
	silent bool   // it does not report its load
	life   string // see server.Usage
	anew   bool   // its life changed: it was restarted
}

// gaugeServers starts sampling the servers that hold data, with a first sample.
func (r *run) gaugeServers() *gauge {
	g := &gauge{usage: r.target.Usage, since: r.log.Since, killed: restarts(r.config.Faults), over: make(chan struct{})}
	for _, m := range r.target.Servers() {
		if m.Role != server.Sentinel {
			g.servers = append(g.servers, &gauged{number: m.Number, load: history.ServerLoad{Server: fmt.Sprintf("server %d", m.Number)}, every: gaugeEvery})
		}
	}
	g.ask()
	for _, s := range g.servers {
		g.working.Go(func() { g.follow(s) })
	}
	return g
}

// end takes a last sample, and returns what the servers reported, and a sentence about the first of them that was
// restarted, though not by the faults of the run. A server that reported nothing is missing.
func (g *gauge) end() (loads []history.ServerLoad, restarted string) {
	close(g.over)
	g.working.Wait()
	g.ask()
	for _, s := range g.servers {
		if len(s.load.Samples) > 1 {
			loads = append(loads, s.load)
		}
		if s.anew && !g.killed && restarted == "" {
			restarted = "the server was restarted during the run"
			if len(g.servers) > 1 {
				restarted = s.load.Server + " was restarted during the run"
			}
		}
	}
	return loads, restarted
}

// ask samples all servers concurrently.
func (g *gauge) ask() {
	var asking sync.WaitGroup
	for _, s := range g.servers {
		asking.Go(func() { g.sample(s) })
	}
	asking.Wait()
}

// follow samples a server periodically.
func (g *gauge) follow(s *gauged) {
	for !s.silent {
		select {
		case <-g.over:
			return
		case <-time.After(s.every):
			g.sample(s)
		}
	}
}

// sample samples a server once. If a fault prevents the reply, the next sample tries again.
func (g *gauge) sample(s *gauged) {
	if s.silent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), gaugeLimit)
	defer cancel()
	asked := time.Now()
	u, err := g.usage(ctx, s.number)
	if err != nil {
		s.silent = errors.Is(err, server.ErrUsage)
		return
	}
	if s.life != "" && u.Life != "" && s.life != u.Life {
		s.anew = true
	}
	s.life = cmp.Or(u.Life, s.life)
	at := g.since(asked.Add(time.Since(asked) / 2))
	s.load.Samples = append(s.load.Samples, history.LoadSample{At: at, CPU: u.CPU, Commands: u.Commands})
	if len(s.load.Samples) >= mostSamples {
		s.thin()
	}
}

// thin drops every second sample.
func (s *gauged) thin() {
	kept := s.load.Samples[:0]
	for i, x := range s.load.Samples {
		if i%2 == 0 {
			kept = append(kept, x)
		}
	}
	s.load.Samples = kept
	s.every *= 2
}
