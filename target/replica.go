package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// pair is the shape of a primary with replicas and nobody who looks after them:
// whoever promotes a replica tells the clients, too. Here that is this program.
type pair struct {
	t *Target
	// now is the server that serves as the primary.
	now atomic.Pointer[server]
}

func newPair(t *Target) *pair {
	p := &pair{t: t}
	p.now.Store(t.masters[0])
	return p
}

func (p *pair) nodes() int { return 1 }

// options are those of a client to whoever is the primary when it connects. Its
// connections stay where they are when another one becomes the primary.
func (p *pair) options(_ int, o ConnOptions) *redis.Options {
	first := p.t.masters[0]
	opts := first.options(o)
	opts.Dialer = p.t.dialer(opts, o, func(_ context.Context, addr string) (string, error) {
		if addr == first.Addr {
			return p.now.Load().Addr, nil
		}
		return addr, nil // a caller's own proxy, say
	})
	return opts
}

func (p *pair) client(node int, o ConnOptions) redis.UniversalClient {
	return redis.NewClient(p.options(node, o))
}

func (p *pair) connections(n int) (each, all int) { return n, n }

func (p *pair) canFailOver() error {
	if p.t.Kind == Address {
		return usagef("the replicas of %s are not promoted, because nothing would tell its other clients: use --target process or container, or --topology sentinel or cluster", p.t.Addrs[0])
	}
	return nil
}

func (p *pair) primary(context.Context, *server) (*server, error) { return p.now.Load(), nil }

func (p *pair) promote(ctx context.Context, _ *server) (*server, error) {
	var s *server
	err := poll(ctx, func(ctx context.Context) (err error) {
		if s, err = p.candidate(ctx); err != nil {
			return err
		}
		if err := s.visit(ctx, beMaster); err != nil {
			return s.silent(err)
		}
		p.now.Store(s)
		return nil
	})
	return s, err
}

func beMaster(ctx context.Context, c *redis.Client) error {
	return c.ReplicaOf(ctx, "NO", "ONE").Err()
}

// candidate is the server, other than the primary, that knows most.
func (p *pair) candidate(ctx context.Context) (*server, error) {
	var best *server
	most := -1
	why := errors.New("it has no replica")
	for _, s := range p.t.servers {
		if s == p.now.Load() {
			continue
		}
		if why = s.away(); why != nil {
			continue
		}
		in, err := s.ask(ctx)
		if err != nil {
			why = s.silent(err)
			continue
		}
		if offset := in.number("slave_repl_offset"); offset > most {
			best, most = s, offset
		}
	}
	if best == nil {
		return nil, why
	}
	return best, nil
}

// settle makes the replicas follow the primary.
func (p *pair) settle(ctx context.Context) error {
	for _, s := range p.t.servers {
		if err := p.t.place(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// revive makes a server follow the primary, unless it is the primary. All servers
// start as masters.
func (p *pair) revive(ctx context.Context, s *server) error {
	primary := p.now.Load()
	if s == primary {
		return nil
	}
	if err := s.visit(ctx, primary.lead); err != nil {
		return s.silent(err)
	}
	return nil
}

// lead makes another server follow s.
func (s *server) lead(ctx context.Context, follower *redis.Client) error {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	return follower.ReplicaOf(ctx, host, port).Err()
}

func (p *pair) become(context.Context, mood) error { return nil }

func (p *pair) missing(ctx context.Context) error {
	answers, err := p.t.roll(ctx)
	if err != nil {
		return err
	}
	primary := p.now.Load()
	for i, s := range p.t.servers {
		if s != primary && answers[i]["role"] == "master" && p.t.Kind != Address {
			if err := p.revive(ctx, s); err != nil {
				return err
			}
		}
	}
	return p.t.follow(ctx, primary, p.t.servers, answers)
}

// follow says what is wrong with a group of which primary should be the master and
// all others that were not killed its replicas. Servers of other roles are none of
// its business.
func (t *Target) follow(ctx context.Context, primary *server, group []*server, answers []info) error {
	if primary.killed.Load() {
		return primary.isGone()
	}
	leader := answers[primary.Number-1]
	if leader["role"] != "master" {
		return fmt.Errorf("server %d on %s is to serve as a master, but its role is %s", primary.Number, primary.Addr, leader["role"])
	}
	if t.Kind != Address && hasDeafReplica(leader) {
		return primary.reconnectReplicas(ctx)
	}
	followers := 0
	for _, s := range group {
		in := answers[s.Number-1]
		if s == primary || s.Role == Sentinel || in == nil {
			continue
		}
		followers++
		if err := s.follows(ctx, primary, in, leader.number("master_repl_offset")); err != nil {
			return err
		}
	}
	if n := len(connectedReplicas(leader)); n < followers {
		return fmt.Errorf("server %d on %s sends to %d of %s", primary.Number, primary.Addr, n, count(followers, "replica"))
	}
	return nil
}

// hasDeafReplica tells whether a replica follows a master by the protocol from
// before Redis 2.8, in which neither knows how much the other has. That happens
// when the replica was kept from asking for a partial copy and then let in when it
// asked for a full one. The master does not know its port then.
func hasDeafReplica(master info) bool {
	for i := range master.number("connected_slaves") {
		if strings.Contains(master[fmt.Sprintf("slave%d", i)], ",port=0,") {
			return true
		}
	}
	return false
}

// reconnectReplicas has the replicas of a master ask again.
func (s *server) reconnectReplicas(ctx context.Context) error {
	err := s.visit(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.ClientKillByFilter(ctx, "type", "replica").Err()
	})
	if err != nil {
		return s.silent(err)
	}
	return fmt.Errorf("server %d on %s had a replica that could not tell how much it has received", s.Number, s.Addr)
}

// follows says what keeps a server from being a replica of primary that has
// received all of what the primary had written when it was asked.
func (s *server) follows(ctx context.Context, primary *server, in info, written int) error {
	of := net.JoinHostPort(in["master_host"], in["master_port"])
	switch {
	case in["role"] == "master":
		return fmt.Errorf("server %d on %s serves as a master besides server %d", s.Number, s.Addr, primary.Number)
	case !sameAddr(of, primary.Addr):
		return fmt.Errorf("server %d on %s is a replica of %s, not of server %d on %s", s.Number, s.Addr, of, primary.Number, primary.Addr)
	case in["master_link_status"] != "up" || in["master_sync_in_progress"] != "0":
		return fmt.Errorf("server %d on %s is not connected to its master, server %d", s.Number, s.Addr, primary.Number)
	}
	if in.number("slave_repl_offset") >= written {
		return nil
	}
	in, err := s.ask(ctx) // it may have been asked a little before its master
	if err != nil {
		return s.silent(err)
	}
	if lag := written - in.number("slave_repl_offset"); lag > 0 {
		return fmt.Errorf("server %d on %s is %d bytes behind its master, server %d", s.Number, s.Addr, lag, primary.Number)
	}
	return nil
}

// sameAddr compares addresses of servers. A server may know another one by
// another name than we do, but then it is on its port.
func sameAddr(a, b string) bool {
	if a == b {
		return true
	}
	_, portA, _ := net.SplitHostPort(a)
	_, portB, _ := net.SplitHostPort(b)
	return portA == portB && portA != ""
}
