package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
	"oversell/server/topology"
)

// Ability is an action that is possible on the servers of a target.
type Ability string

// The abilities.
const (
	// CanStop: servers can be killed, frozen and started again, because they are ours.
	CanStop Ability = "stop"
	// CanLose: the servers' data may be lost, because they are ours.
	CanLose Ability = "lose"
	// CanFailOver: there is a replica to promote.
	CanFailOver Ability = "fail over"
	// CanJump: the clock of a server can be moved.
	CanJump Ability = "jump"
	// CanAdminister: administrative commands are understood and allowed.
	CanAdminister Ability = "administer"
)

// Can returns nil if the target has the ability; otherwise an error of class [ErrUsage] says why not and which target
// has it.
func (t *Target) Can(ctx context.Context, a Ability) error {
	switch a {
	case CanStop:
		return t.canStop()
	case CanLose:
		return t.canLose()
	case CanFailOver:
		err := t.shape.CanFailOver()
		if _, ok := t.shape.(*topology.SentinelGroup); ok && err == nil && t.Kind == Address && len(t.group.Data()) > 2 {
			err = t.canAdminister(ctx) // to choose a master again; see Depose
		}
		return err
	case CanJump:
		return t.canJump()
	case CanAdminister:
		return t.canAdminister(ctx)
	}
	return errclass.Usagef("unknown ability %q", a)
}

func (t *Target) canStop() error {
	switch t.Kind {
	case Embedded:
		return errclass.Usagef("the in-memory emulation cannot be killed or frozen: that needs a server of its own, --target process or container")
	case Address:
		return errclass.Usagef("the server at %s cannot be killed or frozen: that needs a server that oversell started, --target process or container", t.Addrs[0])
	}
	return nil
}

func (t *Target) canLose() error {
	if t.Kind == Address {
		return errclass.Usagef("this fault loses the data of the server at %s, so it needs a server that oversell started: --target process or container", t.Addrs[0])
	}
	return t.canStop()
}

func (t *Target) canJump() error {
	if t.clocks {
		return nil
	}
	if t.Kind == Process {
		return errclass.Usagef("the clocks of these servers cannot be moved, because they were started without preparing for it (Spec.Clocks)")
	}
	return errclass.Usagef("the clock of a server of kind %s cannot be moved: that needs --target process", t.Kind)
}

// Servers lists every server of the target, sentinels included.
func (t *Target) Servers() []Member {
	all := make([]Member, len(t.group.Servers))
	for i, s := range t.group.Servers {
		all[i] = s.Member
	}
	return all
}

// Admin returns a client of one server for administrative commands and for reading its state. It is connected to the
// server itself, past every proxy, and is closed with the target. It panics if there is no such server.
func (t *Target) Admin(number int) *redis.Client { return t.group.Servers[number-1].Admin }

// Kill ends a server as kill -9 does and waits until it is gone. The target does
// not count as ended by that. It needs [CanStop].
func (t *Target) Kill(number int) error { return t.act(number, (*instance.Server).Kill) }

// Start starts a killed server again on its port, and waits until it answers and has loaded its data; with empty it
// forgets its data. It does not wait for replicas to catch up: see AwaitHealthy. It needs [CanStop].
//
// A server without an append-only file ([Spec.Persist]) always comes back empty. It takes up its place: on a replica
// topology it follows the present primary, on a cluster it remains the same node, and on a sentinel topology it comes
// back in its first role, and the sentinels make it follow their primary.
func (t *Target) Start(ctx context.Context, number int, empty bool) error {
	s, err := t.ours(number)
	if err != nil {
		return err
	}
	ctx, cancel := t.untilDone(ctx)
	defer cancel()
	if err := s.Start(ctx, empty); err != nil {
		return err
	}
	t.watch(s)
	t.speedUpDetection(ctx)
	if err := topology.Place(ctx, t.shape, s); err != nil {
		return errclass.Environmentf("put server %d on %s back into its place: %w", s.Number, s.Addr, err)
	}
	return nil
}

// Freeze stops a server as SIGSTOP does, and Thaw lets it go on. They need [CanStop].
func (t *Target) Freeze(number int) error { return t.act(number, (*instance.Server).Freeze) }

// Thaw ends a Freeze. It does nothing if the server is not frozen.
func (t *Target) Thaw(number int) error {
	s, err := t.ours(number)
	if err != nil {
		return err
	}
	if !s.Frozen.Load() {
		return nil
	}
	return t.act(number, (*instance.Server).Thaw)
}

// act does something to a server, of which the target then takes notice.
func (t *Target) act(number int, do func(*instance.Server) error) error {
	s, err := t.ours(number)
	if err != nil {
		return err
	}
	if err := do(s); err != nil {
		return err
	}
	t.speedUpDetection(context.Background())
	return nil
}

// Jump sets how far a server's wall clock is ahead of the real time, or, if negative, behind it. It needs [CanJump].
func (t *Target) Jump(number int, ahead time.Duration) error {
	if err := t.canJump(); err != nil {
		return err
	}
	s, err := t.ours(number)
	if err != nil {
		return err
	}
	return s.Jump(ahead)
}

// Primary returns the number of the server that now serves in the role that this master had when the target was opened:
// the same server, or a promoted replica of it. During a failover that is the last one known.
func (t *Target) Primary(ctx context.Context, master int) (int, error) {
	m, err := t.master(master)
	if err != nil {
		return 0, err
	}
	s, err := t.shape.Primary(ctx, m)
	if err != nil {
		return 0, errclass.Environmentf("find out which server serves as master %d: %w", master, err)
	}
	return s.Number, nil
}

// Promote makes a replica the master of its group, and new connections go to it. On a sentinel topology and a cluster
// it only waits until they have elected a new one, so the old one must be gone or frozen; at an address it tells them
// to elect one. It returns the number of the promoted server. It needs [CanFailOver].
func (t *Target) Promote(ctx context.Context, master int) (int, error) {
	if err := t.shape.CanFailOver(); err != nil {
		return 0, err
	}
	m, err := t.master(master)
	if err != nil {
		return 0, err
	}
	ctx, cancel := t.untilDone(ctx)
	defer cancel()
	t.speedUpDetection(ctx)
	s, err := t.shape.Promote(ctx, m)
	if err != nil {
		return 0, errclass.Environmentf("promote a replica of master %d: %w", master, err)
	}
	t.calm(ctx)
	return s.Number, nil
}

// AwaitHealthy waits until every server that was not killed answers, every master
// of the topology is served by exactly one server, the others that follow it are
// connected to it and have caught up, and sentinels and cluster nodes agree on that. If ctx ends first, the error says
// what was still missing.
//
// Sentinels and clusters turn a former primary that comes back into a replica by
// themselves. On a replica topology, which has no failover of its own, this method
// does it.
func (t *Target) AwaitHealthy(ctx context.Context) error {
	ctx, cancel := t.untilDone(ctx)
	defer cancel()
	t.mend(ctx)
	if err := instance.Poll(ctx, t.shape.CheckHealth); err != nil {
		return errclass.Environmentf("wait until the servers have recovered: %w", err)
	}
	t.calm(ctx)
	return nil
}

// Route makes every connection of clients made from now on go through via, which maps the address of a server to the
// address to dial; it returns unknown addresses unchanged. Proxies are inserted by it.
func (t *Target) Route(via func(addr string) string) {
	t.group.Route(via)
}

// numbered returns the server with that number.
func (t *Target) numbered(number int) (*instance.Server, error) {
	if number < 1 || number > len(t.group.Servers) {
		return nil, errclass.Usagef("there is no server %d: the target has %d, counted from 1", number, len(t.group.Servers))
	}
	return t.group.Servers[number-1], nil
}

// ours returns a server that we can break.
func (t *Target) ours(number int) (*instance.Server, error) {
	s, err := t.numbered(number)
	if err != nil {
		return nil, err
	}
	if err := t.canStop(); err != nil {
		return nil, err
	}
	return s, nil
}

// master returns a server that was a master when the target was opened.
func (t *Target) master(number int) (*instance.Server, error) {
	s, err := t.numbered(number)
	if err != nil {
		return nil, err
	}
	if s.Role != Master {
		return nil, errclass.Usagef("server %d is a %s: number a master, 1 to %d", number, s.Role, len(t.group.Masters))
	}
	return s, nil
}

var errEnded = errors.New("the target has ended")

// untilDone returns a ctx that also ends with the target.
func (t *Target) untilDone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-t.done:
			cancel(cmp.Or(t.Err(), errEnded))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Hide removes the passwords of the servers from a text: some servers repeat in an error what they received.
func (t *Target) Hide(text string) string {
	for _, s := range t.group.Servers {
		text = s.Endpoint().Hide(text)
	}
	return text
}
