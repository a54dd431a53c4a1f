package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/history"
	"oversell/server"
)

// A server is asked how much it has done when the load starts, twice a second, and when
// it has ended: seldom enough that the run does not feel it. A long run keeps so many
// samples at most; when there are more, every second one goes, and it is asked half as
// often.
const (
	gaugeEvery  = 500 * time.Millisecond
	gaugeLimit  = 250 * time.Millisecond // for an answer
	mostSamples = 240
)

// gauge follows how much the servers do.
type gauge struct {
	// usage asks one of them.
	usage   func(ctx context.Context, number int) (server.Usage, error)
	since   func(time.Time) time.Duration
	servers []*gauged
	over    chan struct{}
	working sync.WaitGroup
}

// gauged is one server.
type gauged struct {
	number int
	load   history.ServerLoad
	every  time.Duration
	silent bool // it does not say how much it does
}

// gaugeServers starts to follow the servers that keep data, from the first sample on.
func (r *run) gaugeServers() *gauge {
	g := &gauge{usage: r.target.Usage, since: r.log.Since, over: make(chan struct{})}
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

// end asks a last time, and returns what the servers reported. A server that reported
// nothing is missing.
func (g *gauge) end() (loads []history.ServerLoad) {
	close(g.over)
	g.working.Wait()
	g.ask()
	for _, s := range g.servers {
		if len(s.load.Samples) > 1 {
			loads = append(loads, s.load)
		}
	}
	return loads
}

// ask asks all of them at once.
func (g *gauge) ask() {
	var asking sync.WaitGroup
	for _, s := range g.servers {
		asking.Go(func() { g.sample(s) })
	}
	asking.Wait()
}

// follow asks a server every so often.
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

// sample asks a server once. One that a fault keeps from answering is asked again.
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
	at := g.since(asked.Add(time.Since(asked) / 2))
	s.load.Samples = append(s.load.Samples, history.LoadSample{At: at, CPU: u.CPU, Commands: u.Commands})
	if len(s.load.Samples) >= mostSamples {
		s.thin()
	}
}

// thin keeps every second sample.
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
