package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server"
	"oversell/variant"
)

// timedSyntax lists the parts that every fault of a server takes.
const timedSyntax = nodeSyntax + " [at D] [every D] [times N|once]"

// needs returns a Kind.Needs: what must be possible.
func needs(abilities ...server.Ability) func(context.Context, Fault, *server.Target) error {
	return func(ctx context.Context, _ Fault, t *server.Target) error {
		for _, a := range abilities {
			if err := t.Can(ctx, a); err != nil {
				return err
			}
		}
		return nil
	}
}

// needsKeys is needs for a fault that can hit only a server with keys.
func needsKeys(abilities ...server.Ability) func(context.Context, Fault, *server.Target) error {
	able := needs(abilities...)
	return func(ctx context.Context, f Fault, t *server.Target) error {
		if err := able(ctx, f, t); err != nil {
			return err
		}
		if n := f.Where.Node; n > 0 && t.Servers()[n-1].Role == server.Sentinel {
			return refusef("node %d is a sentinel, which keeps no keys", n)
		}
		return nil
	}
}

// refusal is an error of class server.ErrUsage that does not mention the class.
type refusal struct{ error }

func (refusal) Is(class error) bool { return class == server.ErrUsage }

func (r refusal) Unwrap() error { return r.error }

func refusef(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// clustered reports whether the servers are a cluster: they share the keys and agree which node serves which.
func clustered(t *server.Target) bool { return t.Topology == "cluster" }

// linked reports whether servers of the target can replace each other.
func linked(t *server.Target) bool {
	return t.Topology == "replica" || t.Topology == "sentinel" || clustered(t)
}

// group returns the number of the master that a server first was or followed.
func group(t *server.Target, number int) int {
	if s := t.Servers()[number-1]; s.Of != 0 {
		return s.Of
	}
	return number
}

// serverOfKey returns the number of the server that now serves a key. If independent masters each have it, it is the first
// of them.
func serverOfKey(ctx context.Context, t *server.Target, key string) (int, error) {
	if !clustered(t) || key == "" {
		return t.Primary(ctx, 1)
	}
	var last error
	for _, s := range t.Servers() {
		if last = t.Admin(s.Number).Exists(ctx, key).Err(); last == nil {
			return s.Number, nil // the others reply MOVED
		}
	}
	return 0, fmt.Errorf("find the node that keeps %s: %w", key, last)
}

// admin returns a client of the server that is hit.
func (s Site) admin() *redis.Client { return s.Target.Admin(s.Chosen) }

const (
	// retryAfter is the pause between two tries to heal something.
	retryAfter = 50 * time.Millisecond
	// patience is how long a system may take to settle before replicas are told again which master to follow.
	patience = 5 * time.Second
)

// brought and vain call Site.Brought and Site.Vain if they are set.
func (s Site) brought(what string, n int64) {
	if s.Brought != nil {
		s.Brought(what, n)
	}
}

func (s Site) vain(why string) {
	if s.Vain != nil {
		s.Vain(why)
	}
}

// over calls Site.Over if it is set.
func (s Site) over(at time.Time) {
	if s.Over != nil {
		s.Over(at)
	}
}

// statistic sums the numbers after a word in the lines of an INFO section that begin with one of some prefixes. It
// returns false if the section is empty.
func (s Site) statistic(ctx context.Context, section, word string, prefixes ...string) (sum int64, known bool) {
	text, err := s.admin().Info(ctx, section).Result()
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(line, p) }) {
			continue
		}
		_, value, _ := strings.Cut(line, word)
		digits := strings.TrimRight(value[:len(value)-len(strings.TrimLeft(value, "0123456789"))], "\r\n")
		n, _ := strconv.ParseInt(digits, 10, 64)
		sum += n
	}
	return sum, strings.Contains(text, "#")
}

// connections returns how many clients are connected to the server, apart from us; 0 if unknown.
func (s Site) connections(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	n, _ := s.statistic(ctx, "clients", ":", "connected_clients:")
	return max(0, n-1)
}

// refusals counts the commands that a server refuses with a class of errors, from the call until the call of its
// result. An injection that only refuses commands has no effect if it refuses none.
func (s Site) refusals(ctx context.Context, class, otherwise string) (told func(context.Context)) {
	const section = "errorstats"
	prefix := "errorstat_" + class + ":"
	before, known := s.statistic(ctx, section, "count=", prefix)
	return func(ctx context.Context) {
		after, still := s.statistic(ctx, section, "count=", prefix)
		if !known || !still { // servers before 6.2 do not count
			return
		}
		if after >= before { // otherwise it was restarted meanwhile
			after -= before
		}
		if s.brought("commands refused", after); after == 0 {
			s.vain(otherwise)
		}
	}
}

// insist tries until it succeeds, or ctx or the target ends. The server may be unreachable for a while, because another
// fault is in force there.
func (s Site) insist(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.Target.Done():
			return err
		case <-time.After(retryAfter):
		}
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle makes a server that was down follow the server that replaced it, and waits until all is healthy. A failover
// may still be under way, so it checks again if that takes long. With independent masters it waits only for this one:
// another one may be dead for good.
func (s Site) settle(ctx context.Context, number int) error {
	if !linked(s.Target) {
		return s.insist(ctx, func(ctx context.Context) error { return s.Target.Admin(number).Ping(ctx).Err() })
	}
	return s.insist(ctx, func(ctx context.Context) error {
		if err := s.rejoin(ctx, number); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return s.Target.AwaitHealthy(ctx)
	})
}

// rejoin makes a server a replica of the one that replaced it. Nodes of a cluster do so by themselves at once;
// sentinels do it after 10 seconds.
func (s Site) rejoin(ctx context.Context, number int) error {
	t := s.Target
	all := t.Servers()
	if clustered(t) || all[number-1].Role == server.Sentinel {
		return nil
	}
	primary, err := t.Primary(ctx, group(t, number))
	if err != nil || primary == number {
		return err
	}
	return follow(ctx, t.Admin(number), all[primary-1].Addr)
}

// settings returns a server's settings that match a pattern.
func settings(ctx context.Context, c redis.Cmdable, pattern string) (map[string]string, error) {
	values, err := c.ConfigGet(ctx, pattern).Result()
	if err == nil && len(values) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings %s: %w", pattern, err)
	}
	return values, nil
}

// configure changes settings, given as alternating names and values, in this order: servers before 7.0 take one at a
// time.
func configure(ctx context.Context, c redis.Cmdable, pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err := c.ConfigSet(ctx, pairs[i], pairs[i+1]).Err(); err != nil {
			return fmt.Errorf("set %s: %w", pairs[i], err)
		}
	}
	return nil
}

// clientPatience is how long clients wait for a reply, unless a deadline of theirs
// is nearer; see server.ConnOptions.
const clientPatience = 5 * time.Second

// stallProvokes returns the faults that a server causes if it does not answer for some time and then goes on. It
// executes the commands that arrived meanwhile, even if their clients have given up. Leases that ran out meanwhile are
// over, but their holders work on: they were not told, and their renewals came too late.
func stallProvokes(f Fault, lease time.Duration) (fs []variant.Fault) {
	if f.Amount >= clientPatience {
		fs = append(fs, variant.DropReply, variant.LateRequest)
	}
	if f.Amount >= lease {
		fs = append(fs, variant.Overrun, variant.FreezeRenewal)
	}
	return fs
}

// refusalProvokes returns the faults that a server causes if it refuses commands: a
// client that is refused in the middle of a sequence of commands leaves the state as
// if it had died there, because it cannot undo the commands before.
func refusalProvokes(Fault, time.Duration) []variant.Fault {
	return []variant.Fault{variant.Crash}
}
