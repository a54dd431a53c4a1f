package faults

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server"
	"oversell/variant"
)

// kindClockNode moves the wall clock of a server, by which keys expire. Timers on the server's monotonic clock are not
// affected. It fires while the lock under test has a lease, if that is granted in time.
//
// Healing the fault is a jump in the other direction. So that this jump does not count against the variant, every key
// keeps its remaining time. Times stored as data, as in the scores of a sorted set, look like any other number and do
// not change; with variants that store times, "for" is refused. Without "for", healing is put off until all clients
// have ended. A node of a cluster that was set back ignores the others until its clock reaches the old time again.
var kindClockNode = Kind{
	Name: "clock-node", Level: OnServer, HealLast: true,
	Syntax:   "clock +D|-D node N [at D] [for D|for good]",
	Summary:  "the clock of a server jumps ahead by D, or back, until the end of the run or for a time; when it is corrected, every key keeps its remaining time",
	Takes:    []Part{TakesNode, TakesAmount, TakesFor},
	Requires: []Part{TakesAmount},
	Complete: func(f *Fault) { f.When.ForGood = f.When.For == 0 },
	Provokes: clockProvokes,
	Needs:    needs(server.CanJump),
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		readings := on.clockReadings(ctx)
		leases := on.awaitLeases(ctx)
		if err := on.Target.Jump(on.Chosen, f.Amount); err != nil {
			return nil, err
		}
		what := "leases cut short"
		if f.Amount < 0 {
			what = "leases prolonged"
		}
		on.brought(what, leases)
		return func(ctx context.Context) error {
			read := on.clockReadings(ctx) - readings
			if on.brought("readings of the clock", read); leases == 0 && read <= 0 {
				on.vain("no key had a lease when it fired, and no command read the clock afterwards")
			}
			jump := func() error { return on.Target.Jump(on.Chosen, 0) }
			if err := keepLeases(ctx, on.admin(), -f.Amount, jump); err != nil {
				return err
			}
			return on.settle(ctx, on.Chosen)
		}, nil
	},
}

// awaitLeases waits a while, if there is a lock under test, until the server has keys that expire, and returns their
// number.
func (s Site) awaitLeases(ctx context.Context) (leases int64) {
	waiting, cancel := context.WithTimeout(ctx, opportunity)
	defer cancel()
	for {
		leases, _ = s.statistic(ctx, "keyspace", "expires=", "db")
		if leases > 0 || s.Key == "" || s.Await(waiting) != nil {
			return leases
		}
	}
}

// clockReadings returns how many commands have read the server's time, or used it.
func (s Site) clockReadings(ctx context.Context) int64 {
	n, _ := s.statistic(ctx, "commandstats", "calls=", "cmdstat_time:", "cmdstat_xadd:", "cmdstat_xreadgroup:", "cmdstat_xclaim:", "cmdstat_xautoclaim:")
	return n
}

// pauseWrites bounds how long keepLeases keeps clients from writing.
const pauseWrites = 2 * time.Second

//go:embed server_clock_lengthen.lua
var lengthenSource string

//go:embed server_clock_restore.lua
var restoreSource string

// keepLeases makes a server's clock jump so that every key keeps its remaining time. Clients cannot write meanwhile, if
// the server supports that (since 6.2).
//
// Before a jump ahead, the keys' times are extended. After a jump back they are restored: restoring them before would
// expire the keys.
func keepLeases(ctx context.Context, c *redis.Client, by time.Duration, jump func() error) error {
	conn := c.Conn()
	defer conn.Close()
	hold := []any{"CLIENT", "PAUSE", pauseWrites.Milliseconds(), "WRITE"}
	if by > 0 {
		conn.Pipelined(ctx, func(p redis.Pipeliner) error { // in one go, so that no client writes in between
			p.Eval(ctx, lengthenSource, nil, by.Milliseconds())
			p.Do(ctx, hold...)
			return nil
		})
		err := jump()
		conn.Do(ctx, "CLIENT", "UNPAUSE")
		return err
	}
	if _, err := timesLeft(ctx, conn); err != nil { // it removes expired keys, which must not come back
		return err
	}
	conn.Do(ctx, hold...)
	left, err := timesLeft(ctx, conn)
	if err == nil {
		err = jump()
	}
	conn.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "CLIENT", "UNPAUSE")
		p.Eval(ctx, restoreSource, nil, left...)
		return nil
	})
	return err
}

// timesLeft returns the keys that expire, each with its remaining milliseconds.
func timesLeft(ctx context.Context, c *redis.Conn) (left []any, err error) {
	for keys := c.Scan(ctx, 0, "*", 1000).Iterator(); ; {
		if !keys.Next(ctx) {
			return left, keys.Err()
		}
		d, err := c.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return nil, err
		}
		if d > 0 {
			left = append(left, keys.Val(), strconv.FormatInt(d.Milliseconds(), 10))
		}
	}
}

// clockProvokes: a jump ahead ends leases early. A jump back prolongs them, so a dead client's lock stays locked; and
// undoing the jump ends other leases early.
func clockProvokes(Fault, time.Duration) []variant.Fault {
	return []variant.Fault{variant.ClockJump}
}
