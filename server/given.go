package server

import (
	"context"
	"fmt"
	"net"
	"strings"

	"oversell/internal/errclass"
	"oversell/server/instance"
	"oversell/server/topology"
)

// openGiven opens running servers, repairs or refuses the leftovers of killed runs there, and starts a guard.
func openGiven(ctx context.Context, p plan) (*Target, error) {
	t, err := openAddresses(ctx, p)
	if err != nil {
		return nil, err
	}
	t.group.LocalOnly = !p.AllowRemote
	err = t.leftovers(ctx, p.Mend)
	for i := 0; err == nil && i < len(t.group.Masters); i++ {
		err = checkAgain(ctx, t.group.Masters[i])
	}
	if err == nil {
		err = t.guarded(ctx, p)
	}
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

func openAddresses(ctx context.Context, p plan) (*Target, error) {
	switch p.shape {
	case topology.Replicated:
		return openFound(topology.FindPair(ctx, p.endpoints[0], p.AllowRemote))
	case topology.Guarded:
		return openFound(topology.FindWatched(ctx, p.endpoints, p.master, p.AllowRemote))
	case topology.Clustered:
		return openFound(topology.FindCluster(ctx, p.endpoints, p.AllowRemote))
	}
	answers := make([]instance.Info, len(p.endpoints))
	servers, err := instance.OpenAll(len(p.endpoints), func(i int) (*instance.Server, error) {
		e := p.endpoints[i]
		in, err := instance.Probe(ctx, e)
		if err != nil {
			return nil, err
		}
		answers[i] = in
		if orphan(in) {
			return e.Server(in, Master), nil // see openGiven
		}
		return e.Server(in, Master), instance.CheckMaster(e.Addr, in)
	})
	if err != nil {
		return nil, err
	}
	if err := allDifferent(p.endpoints, answers); err != nil {
		return nil, err
	}
	t := newTarget(Address, topology.NewGroup(servers, true))
	t.shape = &standalone{t}
	t.Why = fmt.Sprintf("%s answers at the given address %s", instance.Named(t.ServerVersion), t.Addrs[0])
	if len(servers) > 1 {
		t.Why = fmt.Sprintf("%s answers at the %d given addresses %s", instance.Named(t.ServerVersion), len(servers), strings.Join(t.Addrs, ", "))
	}
	if t.ServerVersion == "unknown" {
		t.Caveat = "the server does not report its version and role, so it is assumed to be a master"
	}
	return t, nil
}

// openFound makes a target from a topology that was found.
func openFound(f topology.Found, err error) (*Target, error) {
	if err != nil {
		return nil, err
	}
	t := newTarget(Address, f.Group)
	t.shape = f.Shape
	t.Why = f.Why
	return t, nil
}

// allDifferent returns an error if two endpoints are the same server: a lock that needs a majority
// of independent masters would count it twice.
func allDifferent(endpoints []instance.Endpoint, answers []instance.Info) error {
	seen := map[string]string{}
	for i, in := range answers {
		id := in["run_id"]
		if id == "" {
			continue
		}
		if first, ok := seen[id]; ok {
			return errclass.Usagef("%s and %s are the same server: independent masters must be different servers", first, endpoints[i].Addr)
		}
		seen[id] = endpoints[i].Addr
	}
	return nil
}

// orphan reports whether a server is a replica of [Nobody], like one that was made read-only.
func orphan(in instance.Info) bool {
	return in["role"] == "slave" && net.JoinHostPort(in["master_host"], in["master_port"]) == Nobody
}

// checkAgain refuses a master that is read-only.
func checkAgain(ctx context.Context, s *instance.Server) error {
	in, err := instance.Probe(ctx, s.Endpoint())
	if err == nil && orphan(in) {
		err = instance.CheckMaster(s.Addr, in)
	}
	return err
}
