package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"oversell/internal/stats"
	"oversell/reports"
	"oversell/server"
)

// crowd is one setting of C20: a number of concurrent clients.
type crowd struct {
	clients int
	latency []float64 // of one of them, in ms: its median, by round
	rate    []float64 // commands a second of all clients together
	busy    []float64 // CPU time of the server divided by elapsed time
}

// increments is how many times each connection increments the counter of C20.
const increments = 500

// serialised holds the results of concurrent increments by many connections.
type serialised struct {
	sent     int64
	commands int64 // the total after INCR
	control  int64 // after GET and SET of the value plus one, which lose concurrent increments
}

// competing measures C20.
func competing(ctx context.Context, b *bench) (a answer, err error) {
	cs, err := b.clients(ctx, 16)
	if err != nil {
		return a, err
	}
	total, err := b.countTogether(ctx, cs)
	if err != nil {
		return a, err
	}
	key := b.key("bits")
	if err := cs[0].SetBit(ctx, key, 4<<20, 1).Err(); err != nil { // half a megabyte to count
		return a, err
	}
	crowds := []*crowd{{clients: 1}, {clients: 4}, {clients: 16}}
	for range b.times(9, 5) {
		for _, x := range crowds {
			if err := x.press(ctx, cs, key); err != nil {
				return a, err
			}
		}
	}
	alone, most := crowds[0], crowds[len(crowds)-1]
	longer := ratios(most.latency, alone.latency)
	a.is, a.plain = neverCompete(total, longer), true
	a.says = fmt.Sprintf("They do not compete for data: %s INCR on %d connections counted %s (GET and SET, two commands, counted %s). But they compete for time: a command that took %.2f ms on one connection took %.2f ms among %d, %s as long, because they queue for the one thread, which was busy for %s of the time.",
		reports.Thousands(total.sent), len(cs), reports.Thousands(total.commands), reports.Thousands(total.control),
		stats.Median(alone.latency), stats.Median(most.latency), most.clients, times(stats.Median(longer)), percent(stats.Median(most.busy)))
	a.on = "what competing means: commands never interleave, but they wait for each other."
	a.numbers = []reports.Quantity{
		number("increments sent by 16 connections", total.sent, ""),
		number("counted with INCR", total.commands, ""),
		number("counted with GET and SET", total.control, ""),
		repeated("latency among 16, relative to one alone", longer, ""),
	}
	for _, x := range crowds {
		name := fmt.Sprintf("%d clients", x.clients)
		a.numbers = append(a.numbers,
			repeated(name+": median latency of one of them", x.latency, "ms"),
			repeated(name+": commands answered, all together", x.rate, "a second"),
			repeated(name+": CPU time of the server", x.busy, "of one processor"))
	}
	threads, err := cs[0].ConfigGet(ctx, "io-threads").Result()
	if err == nil && threads["io-threads"] != "" {
		a.also = "The server ran with io-threads " + threads["io-threads"] + "."
	}
	return a, nil
}

// countTogether makes all connections count concurrently, with one command and with two.
func (b *bench) countTogether(ctx context.Context, cs []*redis.Client) (s serialised, err error) {
	s.sent = int64(len(cs)) * increments
	one, two := b.key("one"), b.key("two")
	if err := cs[0].MSet(ctx, one, 0, two, 0).Err(); err != nil {
		return s, err
	}
	var g errgroup.Group
	for _, c := range cs {
		g.Go(func() error {
			for range increments {
				if err := c.Incr(ctx, one).Err(); err != nil {
					return err
				}
				n, err := c.Get(ctx, two).Int64()
				if err != nil {
					return err
				}
				if err := c.Set(ctx, two, n+1, 0).Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	if s.commands, err = cs[0].Get(ctx, one).Int64(); err != nil {
		return s, err
	}
	s.control, err = cs[0].Get(ctx, two).Int64()
	return s, err
}

// press makes clients count bits for a while.
func (x *crowd) press(ctx context.Context, cs []*redis.Client, key string) error {
	const lasts = 150 * time.Millisecond
	before, err := serverTime(ctx, cs[0])
	if err != nil {
		return err
	}
	var answered atomic.Int64
	var first []float64
	start := time.Now()
	var g errgroup.Group
	for i, c := range cs[:x.clients] {
		g.Go(func() error {
			for time.Since(start) < lasts {
				d, err := timed(func() error { return c.BitCount(ctx, key, nil).Err() })
				if err != nil {
					return err
				}
				answered.Add(1)
				if i == 0 {
					first = append(first, reports.InMS(d))
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	passed := time.Since(start).Seconds()
	after, err := serverTime(ctx, cs[0])
	if err != nil {
		return err
	}
	x.latency = append(x.latency, stats.Median(first))
	x.rate = append(x.rate, float64(answered.Load())/passed)
	x.busy = append(x.busy, (after-before)/passed)
	return nil
}

// serverTime returns the CPU time that the server has used, in seconds.
func serverTime(ctx context.Context, c *redis.Client) (float64, error) {
	info, err := infoOf(ctx, c, "cpu")
	if err != nil {
		return 0, err
	}
	user, err1 := strconv.ParseFloat(info["used_cpu_user"], 64)
	system, err2 := strconv.ParseFloat(info["used_cpu_sys"], 64)
	return user + system, errors.Join(err1, err2)
}

// neverCompete decides C20 by the totals of the increments and by how much longer a command takes among others than
// alone, by round.
func neverCompete(total serialised, longer []float64) string {
	switch {
	case len(longer) == 0 || total.sent == 0 || total.control == total.sent:
		return reports.Inconclusive // the connections never met
	case total.commands != total.sent:
		return reports.Refuted
	case slices.Min(longer) >= 2:
		return reports.Depends // on whether waiting counts as competing
	case slices.Max(longer) <= 1.2:
		return reports.Confirmed
	}
	return reports.Inconclusive
}

// reuse reports whether the next user gets the connection that was closed, and which state it kept.
type reuse struct {
	given  bool // returned to a pool: the same connection
	state  bool // with the selected database and the open transaction
	closed bool // closed with its pool: the same connection
}

// survivesClose measures C26.
func survivesClose(ctx context.Context, b *bench) (a answer, err error) {
	t, err := b.server(ctx)
	if err != nil {
		return a, err
	}
	var r reuse
	if r.given, r.state, err = b.givenBack(ctx, t); err != nil {
		return a, err
	}
	if r.closed, err = closedPool(ctx, t); err != nil {
		return a, err
	}
	a.says = fmt.Sprintf("In a pool (go-redis), closing a connection returns it: the next user got the same one (CLIENT ID), %s; closing the pool closed it.",
		map[bool]string{true: "with the database that the first user had selected and its open transaction", false: "in a clean state"}[r.state])
	a.numbers = []reports.Quantity{
		yes("go-redis, Conn.Close(): the next user gets the same connection", r.given),
		yes("go-redis: with the selected database and the open transaction", r.state),
		yes("go-redis, Client.Close(), a new client: the same connection", r.closed),
	}
	a.plain = true
	php, why, err := phpReuse(ctx, t)
	if err != nil {
		return a, err
	}
	if why != "" {
		a.is = reports.Inconclusive
		a.also = "PHP's pconnect(), of which the text speaks: " + why + "."
		return a, nil
	}
	a.numbers = append([]reports.Quantity{
		yes("phpredis "+php.Version+", pconnect(), close(), next request: the same connection", php.Closed),
		yes("phpredis "+php.Version+", pconnect(), no close(), next request: the same connection", php.Dropped),
		yes("phpredis "+php.Version+": with the selected database", php.Database),
		yes("phpredis "+php.Version+", connect(), close(), next request: the same connection", php.Plain),
	}, a.numbers...)
	a.is = survives(php)
	a.says = fmt.Sprintf("PHP (phpredis %s, requests to one process): after pconnect() and close() the next request got %s connection; without close() it got %s%s, and after connect() %s. ",
		php.Version, sameOrAnother(php.Closed), sameOrAnother(php.Dropped), map[bool]string{true: ", with the selected database", false: ""}[php.Dropped && php.Database], sameOrAnother(php.Plain)) + a.says
	return a, nil
}

// survives decides C26 by phpredis: after close(), without it, and with a plain connection, which must not survive.
func survives(php phpAnswer) string {
	switch {
	case php.Plain || !php.Dropped:
		return reports.Inconclusive // every connection survives, or none
	case php.Closed:
		return reports.Confirmed
	}
	return reports.Refuted
}

func sameOrAnother(same bool) string {
	if same {
		return "the same"
	}
	return "another"
}

// givenBack takes a connection from a pool, leaves state on it, returns it and takes the next one.
func (b *bench) givenBack(ctx context.Context, t *server.Target) (same, state bool, err error) {
	pool := redis.NewClient(t.Options(0, server.ConnOptions{}))
	defer func() { err = errors.Join(err, pool.Close()) }()
	first := pool.Conn()
	id, err := first.ClientID(ctx).Result()
	if err != nil {
		return false, false, err
	}
	const other = 3 // a database
	if err := errors.Join(first.Select(ctx, other).Err(), first.Do(ctx, "multi").Err(), first.Close()); err != nil {
		return false, false, err
	}
	second := pool.Conn()
	defer func() { err = errors.Join(err, second.Close()) }()
	// Inside a transaction, this is queued instead of answered.
	said, err := second.Do(ctx, "client", "info").Text()
	if err != nil {
		return false, false, err
	}
	queued := said == "QUEUED"
	if queued {
		if err := second.Do(ctx, "discard").Err(); err != nil {
			return false, false, err
		}
	}
	info, err := second.Do(ctx, "client", "info").Text()
	if err != nil {
		return false, false, err
	}
	return strings.HasPrefix(info, fmt.Sprintf("id=%d ", id)), queued && strings.Contains(info, fmt.Sprintf(" db=%d ", other)), nil
}

// closedPool reports whether a new pool gets the connection of one that was closed.
func closedPool(ctx context.Context, t *server.Target) (bool, error) {
	var ids [2]int64
	for i := range ids {
		pool := redis.NewClient(t.Options(0, server.ConnOptions{}))
		id, err := pool.ClientID(ctx).Result()
		if err := errors.Join(err, pool.Close()); err != nil {
			return false, err
		}
		ids[i] = id
	}
	return ids[0] == ids[1], nil
}
