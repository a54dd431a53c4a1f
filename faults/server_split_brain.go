package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server"
)

// kindSplitBrain leaves two masters, one of which does not have the last lock that the other granted.
//
// A failover alone loses a lock only by chance: a replica on the same machine is microseconds behind. So the primary
// first loses its replicas. When a client has obtained a lock after that, the primary is frozen, because sentinels and
// nodes of a cluster do not depose a primary that answers. When a replica has taken its place, the old primary goes on.
//
// The new primary may have an older lock, which has been released. Until the lease of that lock is over, no client
// could obtain the lock from the new primary. The fault does not wait: it ends the lease.
//
// How long the old primary goes on as a master depends on the topology. Without sentinels or a
// cluster it goes on until it is demoted explicitly; half of its clients are made to
// connect again, which leads them to the new primary. Sentinels demote it after 10
// seconds. In a cluster it learns of its successor within milliseconds; the only effect there is the lost lock.
var kindSplitBrain = Kind{
	Name: "split-brain", Level: OnServer,
	Syntax:   "split-brain [for D]" + timedSyntax,
	Summary:  "a replica that lacks the last lock is promoted, and the old master also goes on as a master for D (2s)",
	Takes:    []Part{TakesNode, TakesFor},
	Provokes: failoverProvokes,
	Replica:  true,
	Needs:    needsKeys(server.CanLose, server.CanFailOver),
	Lasts:    func(Fault) time.Duration { return 2 * time.Second },
	Inject: func(ctx context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		master := group(on.Target, on.Chosen)
		old, err := on.Target.Primary(ctx, master)
		if err != nil {
			return nil, err
		}
		b := &deposed{Site: on, master: master, old: old, primary: on.Target.Admin(old)}
		return b.reunite, b.split(ctx)
	},
}

// deposed is a primary that was replaced without learning of it.
type deposed struct {
	Site
	master, old int
	primary     *redis.Client
	// known is the last value of the lock on each replica, by its number.
	known map[int][]byte
}

func (b *deposed) split(ctx context.Context) error {
	if err := b.grantUnseen(ctx); err != nil {
		return err
	}
	if err := b.Target.Freeze(b.old); err != nil {
		return err
	}
	err := b.replace(ctx)
	if err := errors.Join(err, b.Target.Thaw(b.old)); err != nil {
		return err
	}
	return b.scatter(ctx)
}

// replace replaces the frozen primary by a replica.
func (b *deposed) replace(ctx context.Context) error {
	if err := b.forget(ctx); err != nil {
		return err
	}
	successor, err := b.Target.Promote(ctx, b.master)
	b.replaced(err)
	if err != nil {
		return err
	}
	if b.Key != "" {
		b.brought("held locks that the new master lacks", 1)
	}
	if err := b.admit(ctx); err != nil { // the others, to the new one
		return err
	}
	return b.endLease(ctx, successor)
}

// grantUnseen waits until a client has obtained a lock that no replica has.
func (b *deposed) grantUnseen(ctx context.Context) error {
	for {
		if err := b.part(ctx); err != nil {
			return err
		}
		again, err := b.awaitUnseen(ctx)
		if !again {
			return err
		}
		if err := b.admit(ctx); err != nil {
			return err
		}
		if err := b.Target.AwaitHealthy(ctx); err != nil {
			return err
		}
	}
}

// lag is how long replicas may be cut off from their primary. Sentinels do not promote one that was cut off for 10
// times down-after-milliseconds, and ours use 500 milliseconds when they look for a dead primary.
const lag = 4 * time.Second

// inFlight is how long a client may take to report a grant. When the replicas have been cut off for that long, every
// grant that a client reports is one that they do not have.
const inFlight = 100 * time.Millisecond

// unseenWrites is how long a primary goes on without its replicas if there is no lock to wait for.
const unseenWrites = 300 * time.Millisecond

// awaitUnseen waits for a grant that the replicas do not have. again reports whether there was none within lag: then
// the replicas must be admitted and cut off again.
func (b *deposed) awaitUnseen(ctx context.Context) (again bool, err error) {
	if b.Key == "" {
		return false, pause(ctx, unseenWrites)
	}
	if err := pause(ctx, inFlight); err != nil {
		return false, err
	}
	window, cancel := context.WithTimeout(ctx, lag)
	defer cancel()
	for {
		if err := b.Await(window); err != nil {
			return ctx.Err() == nil && window.Err() != nil, err
		}
		unseen, err := b.unseen(ctx)
		if unseen || err != nil {
			return false, err
		}
	}
}

// unseen reports whether the lock is held, and remembers the replicas' value: not this grant, for they were cut off
// before it, but perhaps an earlier one.
func (b *deposed) unseen(ctx context.Context) (bool, error) {
	now, err := b.lock(ctx, b.old)
	if err != nil || now == nil {
		return false, err
	}
	b.known = map[int][]byte{}
	for _, n := range b.replicas() {
		if b.known[n], err = b.lock(ctx, n); err != nil {
			return false, err
		}
	}
	return true, nil
}

// lock returns a server's value of the lock's key, nil if there is none.
func (b *deposed) lock(ctx context.Context, number int) ([]byte, error) {
	conn := b.Target.Admin(number).Conn()
	defer conn.Close()
	var err error
	if clustered(b.Target) { // there a replica would redirect us to its master
		err = conn.ReadOnly(ctx).Err()
	}
	var value []byte
	if err == nil {
		value, err = conn.Dump(ctx, b.Key).Bytes()
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("look at the lock on server %d: %w", number, err)
	}
	return value, nil
}

// forget removes the old lock that the replicas have, if any, before clients can ask for it: its holder has given it
// back, and only the primary knows. A replica of a cluster refuses such a command; there endLease does it later.
func (b *deposed) forget(ctx context.Context) error {
	if clustered(b.Target) {
		return nil
	}
	for _, n := range b.replicas() {
		if b.known[n] == nil {
			continue
		}
		c := b.Target.Admin(n)
		if err := configure(ctx, c, "replica-read-only", "no"); err != nil {
			return fmt.Errorf("server %d, a replica: %w", n, err)
		}
		err := c.Del(ctx, b.Key).Err()
		if err := errors.Join(err, configure(ctx, c, "replica-read-only", "yes")); err != nil {
			return fmt.Errorf("end the lease of the last lock that server %d knows of: %w", n, err)
		}
	}
	return nil
}

// endLease removes the old lock that the new primary has, if any.
func (b *deposed) endLease(ctx context.Context, successor int) error {
	old := b.known[successor]
	if old == nil {
		return nil
	}
	err := b.Target.Admin(successor).Watch(ctx, func(tx *redis.Tx) error {
		now, err := tx.Dump(ctx, b.Key).Bytes()
		if err == nil && bytes.Equal(now, old) {
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Del(ctx, b.Key).Err() })
		}
		return err
	}, b.Key)
	if err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, redis.TxFailedErr) { // it ended by itself
		return fmt.Errorf("end the lease of the last lock that server %d knows of: %w", successor, err)
	}
	return nil
}

// replicas returns the numbers of all other servers with the same keys.
func (b *deposed) replicas() (numbers []int) {
	for _, s := range b.Target.Servers() {
		if s.Role != server.Sentinel && s.Number != b.old && group(b.Target, s.Number) == b.master {
			numbers = append(numbers, s.Number)
		}
	}
	return numbers
}

// wrongPassword is a password that the primary does not accept: it has none set.
const wrongPassword = "nobody-is-let-in"

// part cuts the replicas off from the primary: with a password that it does not accept they cannot log in again.
// (Revoking their right to replicate, in one place on the primary, would also work; but restoring it during an attempt
// to connect leaves replicas that take the primary for one without PSYNC, and never report their offset again.)
func (b *deposed) part(ctx context.Context) error {
	err := b.setPassword(ctx, wrongPassword)
	if err == nil {
		err = b.primary.ClientKillByFilter(ctx, "TYPE", "replica").Err()
	}
	if err != nil {
		return fmt.Errorf("cut off the replicas of server %d: %w", b.old, err)
	}
	return nil
}

// admit lets the replicas log in again.
func (b *deposed) admit(ctx context.Context) error { return b.setPassword(ctx, "") }

func (b *deposed) setPassword(ctx context.Context, password string) error {
	for _, n := range b.replicas() {
		if err := configure(ctx, b.Target.Admin(n), "masterauth", password); err != nil {
			return fmt.Errorf("server %d, a replica: %w", n, err)
		}
	}
	return nil
}

// scatter makes every second client of the old primary connect again, which leads it to the new one. If sentinels or a
// cluster tell clients of the new one, this is not needed.
func (b *deposed) scatter(ctx context.Context) error {
	if b.Target.Topology != "replica" {
		return nil
	}
	list, err := b.primary.Do(ctx, "CLIENT", "LIST", "TYPE", "normal").Text()
	if err != nil {
		return fmt.Errorf("list the clients of server %d: %w", b.old, err)
	}
	p := b.primary.Pipeline()
	for i, id := range connectionIDs(list) {
		if i%2 == 0 {
			p.ClientKillByFilter(ctx, "ID", id)
		}
	}
	if _, err := p.Exec(ctx); err != nil {
		return fmt.Errorf("disconnect every second client of server %d: %w", b.old, err)
	}
	return nil
}

// connectionIDs returns the ids in a reply to CLIENT LIST, one a line.
func connectionIDs(list string) (ids []string) {
	for line := range strings.Lines(list) {
		first, _, _ := strings.Cut(line, " ")
		if id, ok := strings.CutPrefix(first, "id="); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// reunite ends the split at whatever stage it is.
func (b *deposed) reunite(ctx context.Context) error {
	if err := b.Target.Thaw(b.old); err != nil {
		return err
	}
	if err := b.insist(ctx, b.admit); err != nil {
		return err
	}
	return b.settle(ctx, b.old)
}
