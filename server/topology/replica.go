package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/internal/phrase"
	"oversell/server/instance"
)

// ReplicaGroup is the shape of a primary with replicas, without sentinels: the program that
// promotes a replica also tells the clients. Here that is this program.
type ReplicaGroup struct {
	t *Group
	// now is the server that serves as the primary.
	now atomic.Pointer[instance.Server]
}

// NewPair returns the shape of the servers of t, of which the first master is the primary.
func NewPair(t *Group) *ReplicaGroup {
	p := &ReplicaGroup{t: t}
	p.now.Store(t.Masters[0])
	return p
}

// Nodes implements Shape.
func (p *ReplicaGroup) Nodes() int { return 1 }

// Options returns the options of a client of the primary at the time it connects. Its connections do not move when
// another server becomes the primary.
func (p *ReplicaGroup) Options(_ int, o instance.ConnOptions) *redis.Options {
	first := p.t.Masters[0]
	opts := first.Options(o)
	opts.Dialer = p.t.Dialer(opts, o, func(_ context.Context, addr string) (string, error) {
		if addr == first.Addr {
			return p.now.Load().Addr, nil
		}
		return addr, nil // a caller's own proxy, say
	})
	return opts
}

// Client implements Shape.
func (p *ReplicaGroup) Client(node int, o instance.ConnOptions) redis.UniversalClient {
	return redis.NewClient(p.Options(node, o))
}

// Connections implements Shape: clients connect only to the primary.
func (p *ReplicaGroup) Connections(n int) (each, all int) { return n, n }

// CanFailOver implements Shape.
func (p *ReplicaGroup) CanFailOver() error {
	if p.t.given {
		return errclass.Usagef("the replicas of %s are not promoted, because nothing would tell its other clients: use --target process or container, or --topology sentinel or cluster", p.t.Masters[0].Addr)
	}
	return nil
}

// Primary implements Shape.
func (p *ReplicaGroup) Primary(context.Context, *instance.Server) (*instance.Server, error) {
	return p.now.Load(), nil
}

// Promote implements Shape. It makes the best replica the primary.
func (p *ReplicaGroup) Promote(ctx context.Context, _ *instance.Server) (*instance.Server, error) {
	var s *instance.Server
	err := instance.Poll(ctx, func(ctx context.Context) (err error) {
		if s, err = p.candidate(ctx); err != nil {
			return err
		}
		if err := s.Visit(ctx, beMaster); err != nil {
			return s.Silent(err)
		}
		p.now.Store(s)
		return nil
	})
	return s, err
}

func beMaster(ctx context.Context, c *redis.Client) error {
	return c.ReplicaOf(ctx, "NO", "ONE").Err()
}

// candidate returns the server, other than the primary, with the most data.
func (p *ReplicaGroup) candidate(ctx context.Context) (*instance.Server, error) {
	var best *instance.Server
	most := -1
	why := errors.New("it has no replica")
	for _, s := range p.t.Servers {
		if s == p.now.Load() {
			continue
		}
		if why = s.Away(); why != nil {
			continue
		}
		in, err := s.Ask(ctx)
		if err != nil {
			why = s.Silent(err)
			continue
		}
		if offset := in.Number("slave_repl_offset"); offset > most {
			best, most = s, offset
		}
	}
	if best == nil {
		return nil, why
	}
	return best, nil
}

// Settle makes the replicas follow the primary.
func (p *ReplicaGroup) Settle(ctx context.Context) error {
	for _, s := range p.t.Servers {
		if err := Place(ctx, p, s); err != nil {
			return err
		}
	}
	return nil
}

// Revive makes a server follow the primary, unless it is the primary. All servers
// start as masters.
func (p *ReplicaGroup) Revive(ctx context.Context, s *instance.Server) error {
	primary := p.now.Load()
	if s == primary {
		return nil
	}
	if err := s.Visit(ctx, lead(primary)); err != nil {
		return s.Silent(err)
	}
	return nil
}

// lead makes another server follow s.
func lead(s *instance.Server) func(ctx context.Context, follower *redis.Client) error {
	return func(ctx context.Context, follower *redis.Client) error {
		host, port, err := net.SplitHostPort(s.Addr)
		if err != nil {
			return err
		}
		return follower.ReplicaOf(ctx, host, port).Err()
	}
}

// SetDetection implements Shape: there are no sentinels to tell.
func (p *ReplicaGroup) SetDetection(context.Context, Detection) error { return nil }

// CheckHealth implements Shape.
func (p *ReplicaGroup) CheckHealth(ctx context.Context) error {
	answers, err := p.t.InfoAll(ctx)
	if err != nil {
		return err
	}
	primary := p.now.Load()
	for i, s := range p.t.Servers {
		if s != primary && answers[i]["role"] == "master" && !p.t.given {
			if err := p.Revive(ctx, s); err != nil {
				return err
			}
		}
	}
	return p.t.follow(ctx, primary, p.t.Servers, answers)
}

// follow reports what is wrong with a group in which primary should be the master and all others that were not killed
// its replicas. It ignores servers of other roles.
func (t *Group) follow(ctx context.Context, primary *instance.Server, group []*instance.Server, answers []instance.Info) error {
	if primary.Killed.Load() {
		return primary.KilledError()
	}
	leader := answers[primary.Number-1]
	if leader["role"] != "master" {
		return fmt.Errorf("server %d on %s is to serve as a master, but its role is %s", primary.Number, primary.Addr, leader["role"])
	}
	if !t.given && hasDeafReplica(leader) {
		return reconnectReplicas(ctx, primary)
	}
	followers := 0
	for _, s := range group {
		in := answers[s.Number-1]
		if s == primary || s.Role == instance.Sentinel || in == nil {
			continue
		}
		followers++
		if err := follows(ctx, s, primary, in, leader.Number("master_repl_offset")); err != nil {
			return err
		}
	}
	if n := len(connectedReplicas(leader)); n < followers {
		return fmt.Errorf("server %d on %s sends to %d of %s", primary.Number, primary.Addr, n, phrase.Count(followers, "replica"))
	}
	return nil
}

// hasDeafReplica reports whether a replica follows a master by the protocol from before Redis 2.8, in which neither
// knows how much the other has. That happens if the replica could not ask for a partial copy but could then ask for a
// full one. The master then does not know its port.
func hasDeafReplica(master instance.Info) bool {
	for i := range master.Number("connected_slaves") {
		if strings.Contains(master[fmt.Sprintf("slave%d", i)], ",port=0,") {
			return true
		}
	}
	return false
}

// reconnectReplicas makes the replicas of a master connect again.
func reconnectReplicas(ctx context.Context, s *instance.Server) error {
	err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.ClientKillByFilter(ctx, "type", "replica").Err()
	})
	if err != nil {
		return s.Silent(err)
	}
	return fmt.Errorf("server %d on %s had a replica that could not tell how much it has received", s.Number, s.Addr)
}

// follows reports why a server is not a replica of primary that has received everything that the primary had written
// when it was asked.
func follows(ctx context.Context, s, primary *instance.Server, in instance.Info, written int) error {
	of := net.JoinHostPort(in["master_host"], in["master_port"])
	switch {
	case in["role"] == "master":
		return fmt.Errorf("server %d on %s serves as a master besides server %d", s.Number, s.Addr, primary.Number)
	case !SameAddr(of, primary.Addr):
		return fmt.Errorf("server %d on %s is a replica of %s, not of server %d on %s", s.Number, s.Addr, of, primary.Number, primary.Addr)
	case in["master_link_status"] != "up" || in["master_sync_in_progress"] != "0":
		return fmt.Errorf("server %d on %s is not connected to its master, server %d", s.Number, s.Addr, primary.Number)
	}
	if in.Number("slave_repl_offset") >= written {
		return nil
	}
	in, err := s.Ask(ctx) // it may have been asked a little before its master
	if err != nil {
		return s.Silent(err)
	}
	if lag := written - in.Number("slave_repl_offset"); lag > 0 {
		return fmt.Errorf("server %d on %s is %d bytes behind its master, server %d", s.Number, s.Addr, lag, primary.Number)
	}
	return nil
}

// SameAddr compares addresses of servers. A server may know another one by a different host name, but then with the
// same port.
func SameAddr(a, b string) bool {
	if a == b {
		return true
	}
	_, portA, _ := net.SplitHostPort(a)
	_, portB, _ := net.SplitHostPort(b)
	return portA == portB && portA != ""
}
