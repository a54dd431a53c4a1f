package claims

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"oversell/reports"
	"oversell/target"
)

// crowd is one way in which C20 measures: so many clients at once.
type crowd struct {
	clients int
	latency []float64 // the median of one of them, in ms, by round
	rate    []float64 // commands a second of all together
	busy    []float64 // processor time of the server by the time that passed
}

// competing is C20.
func competing(ctx context.Context, b *bench) (a answer, err error) {
	cs, err := b.clients(ctx, 16)
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
	a.is = neverCompete(alone.latency, most.latency)
	a.says = fmt.Sprintf("They queue for the one thread: a command that one client alone had answered in %.2f ms took %.2f ms among %d (%s), while all together got %s as many answered and the server's one thread was at %s of a processor.",
		median(alone.latency), median(most.latency), most.clients, times(median(most.latency)/median(alone.latency)), times(median(most.rate)/median(alone.rate)), percent(median(most.busy)))
	for _, x := range crowds {
		name := fmt.Sprintf("%d clients", x.clients)
		a.numbers = append(a.numbers,
			repeated(name+": median latency of one of them", x.latency, "ms"),
			repeated(name+": answered to all together", x.rate, "a second"),
			repeated(name+": processor time of the server", x.busy, "of one processor"))
	}
	threads, err := cs[0].ConfigGet(ctx, "io-threads").Result()
	if err == nil && threads["io-threads"] != "" {
		a.also = "The server ran with io-threads " + threads["io-threads"] + "."
	}
	return a, nil
}

// press has clients count bits for a while.
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
					first = append(first, millis(d))
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
	x.latency = append(x.latency, median(first))
	x.rate = append(x.rate, float64(answered.Load())/passed)
	x.busy = append(x.busy, (after-before)/passed)
	return nil
}

// serverTime is the processor time that the server has used, in seconds.
func serverTime(ctx context.Context, c *redis.Client) (float64, error) {
	info, err := infoOf(ctx, c, "cpu")
	if err != nil {
		return 0, err
	}
	user, err1 := strconv.ParseFloat(info["used_cpu_user"], 64)
	system, err2 := strconv.ParseFloat(info["used_cpu_sys"], 64)
	return user + system, errors.Join(err1, err2)
}

// neverCompete decides C20: a client's latency alone, and among others.
func neverCompete(alone, among []float64) string {
	switch ratio := median(among) / median(alone); {
	case len(alone) == 0 || len(among) == 0:
		return reports.Inconclusive
	case ratio >= 2:
		return reports.Refuted
	case ratio <= 1.2:
		return reports.Confirmed
	}
	return reports.Inconclusive
}

// reuse is whether a connection that was closed is the one that the next user gets, and
// what it still knows.
type reuse struct {
	given  bool // back to a pool: the same connection
	state  bool // which still has the database that was selected, and a transaction begun
	closed bool // with its pool: the same connection
}

// survivesClose is C26.
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
	a.says = fmt.Sprintf("In a pool (go-redis), closing a connection gives it back: the next user got the same one (CLIENT ID), %s; closing the pool ended it.",
		map[bool]string{true: "with the database that the first had selected and a transaction that it had begun", false: "in a clean state"}[r.state])
	a.on = "what the library means by close(): giving back to a pool or closing the socket. What is reused keeps its state: the selected database, a WATCH, a MULTI without its EXEC."
	a.numbers = []reports.Quantity{
		yes("go-redis, Conn.Close(): the next user gets the same connection", r.given),
		yes("go-redis: with the database that was selected, and a transaction that was begun", r.state),
		yes("go-redis, Client.Close(), a new client: the same connection", r.closed),
	}
	php, why, err := phpReuse(ctx, t)
	if err != nil {
		return a, err
	}
	if why != "" {
		a.also = "PHP's pconnect(), of which the document speaks: " + why + "."
	} else {
		a.says += fmt.Sprintf(" PHP (phpredis %s): pconnect(), close(), pconnect() gave %s connection, and without close(), the object gone, %s.",
			php.Version, sameOrAnother(php.Closed), sameOrAnother(php.Dropped))
		a.numbers = append(a.numbers,
			yes("phpredis "+php.Version+", pconnect(), close(), pconnect(): the same connection", php.Closed),
			yes("phpredis "+php.Version+", pconnect(), object gone, pconnect(): the same connection", php.Dropped),
			yes("phpredis "+php.Version+": with the database that was selected", php.Database),
			yes("phpredis "+php.Version+", connect(), close(), connect(): the same connection", php.Plain))
		a.also = "Several requests of one PHP-FPM worker: the two objects lived in one process of the command line."
	}
	a.is = reused(r)
	return a, nil
}

func sameOrAnother(same bool) string {
	if same {
		return "the same"
	}
	return "another"
}

// givenBack takes a connection from a pool, leaves state on it, gives it back and takes
// the next one.
func (b *bench) givenBack(ctx context.Context, t *target.Target) (same, state bool, err error) {
	pool := redis.NewClient(t.Options(0, target.ConnOptions{}))
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
	// In a transaction that was begun, this is not answered but queued.
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

// closedPool tells whether a new pool gets the connection of one that was closed.
func closedPool(ctx context.Context, t *target.Target) (bool, error) {
	var ids [2]int64
	for i := range ids {
		pool := redis.NewClient(t.Options(0, target.ConnOptions{}))
		id, err := pool.ClientID(ctx).Result()
		if err := errors.Join(err, pool.Close()); err != nil {
			return false, err
		}
		ids[i] = id
	}
	return ids[0] == ids[1], nil
}

// reused decides C26.
func reused(r reuse) string {
	switch {
	case r.given && !r.closed:
		return reports.Depends
	case r.given:
		return reports.Confirmed
	}
	return reports.Refuted
}
