package claims

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/clock"
	"oversell/database"
	"oversell/dispatchimpl"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// dispatched is what a dispatch under a lock came to.
type dispatched struct {
	holders int  // tasks that two users held at once
	commits int  // tasks submitted by users who did not hold them any more
	stuck   bool // the task of a user who died was never handed out again
}

// dispatches is how often the tasks are dispatched under a lock.
const dispatches = 3

// dispatching is C19.
func dispatching(ctx context.Context, b *bench) (a answer, err error) {
	by := map[string]dispatched{}
	locks := []string{"none", "redislock-printed", "lua-release", "fenced"}
	for _, lock := range locks {
		var d dispatched
		rs, err := b.again(ctx, dispatches, "--scenario", "dispatch", "--lock", lock, "--clients", "16", "--hold", "20ms", "--ops", "100", "--die", "0.1", "--ttl", "1s")
		if err != nil {
			return a, err
		}
		for _, r := range rs {
			d.holders += r.broke(variant.Dispatch, variant.OneHolderPerTask)
			d.commits += r.broke(variant.Dispatch, variant.HolderCommits)
		}
		if d.stuck, err = b.abandoned(ctx, lock); err != nil {
			return a, err
		}
		by[lock] = d
		a.numbers = append(a.numbers,
			number("tasks held by two users, lock "+lock, d.holders, fmt.Sprintf("times in %d tasks", 100*dispatches)),
			number("commits by users who held the task no more, lock "+lock, d.commits, ""),
			yes("stuck for good after its user died, lock "+lock, d.stuck))
	}
	a.is = oneHolder(by["none"], by["redislock-printed"], by["lua-release"], by["fenced"])
	a.says = fmt.Sprintf("Under the printed lock tasks were held by two users %d times, and that of a user who died was %s; under document 3's lock neither, but %d commits of users whose time was over landed; with fencing tokens nothing of the kind. Without a lock tasks were held by two %d times.",
		by["redislock-printed"].holders, map[bool]string{true: "never handed out again", false: "handed out again"}[by["redislock-printed"].stuck], by["lua-release"].commits, by["none"].holders)
	a.on = "the lock, and on what the database checks: the printed lock does neither, document 3's does both, and only fencing tokens refuse the late commit of somebody who lost the task."
	return a, nil
}

// The limit of a task in the measurement of what its user's death does to it, and how
// long after it somebody else tries.
const (
	holdLimit = time.Second
	tryFor    = 2500 * time.Millisecond
)

// abandoned tells whether the task of a user who is never heard of again is stuck.
func (b *bench) abandoned(ctx context.Context, lock string) (stuck bool, err error) {
	db, err := database.Open(ctx, database.Spec{})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	l, ok := lockimpl.Find(lock)
	if !ok {
		return false, fmt.Errorf("no lock %q", lock)
	}
	name := "dispatch-locked"
	if l.Fences {
		name = "dispatch-fenced"
	}
	v, ok := dispatchimpl.Find(name)
	if !ok {
		return false, fmt.Errorf("no dispatch %q", name)
	}
	var pools [2]dispatchimpl.Pool
	for i := range pools {
		env, err := b.world(ctx)
		if err != nil {
			return false, err
		}
		env.SQL = db.DB
		pools[i] = v.New(env, b.key("pool-"+lock), l.New(env), dispatchimpl.Options{Limit: holdLimit})
	}
	dead, alive := pools[0], pools[1]
	if err := alive.Open(ctx, []dispatchimpl.Task{{ID: 1, Category: "any"}}, []dispatchimpl.User{{ID: 1}, {ID: 2}}); err != nil {
		return false, err
	}
	if _, err := dead.Take(ctx, 1); err != nil {
		return false, err
	}
	for start := time.Now(); time.Since(start) < tryFor; {
		if _, err := alive.Expire(ctx); err != nil {
			return false, err
		}
		_, err := alive.Take(ctx, 2)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, dispatchimpl.ErrEmpty) {
			return false, err
		}
		if err := (clock.Real{}).Sleep(ctx, shortWait); err != nil {
			return false, err
		}
	}
	return true, nil
}

// oneHolder decides C19.
func oneHolder(open, printed, correct, fenced dispatched) string {
	keeps := func(d dispatched) bool { return d.holders == 0 && !d.stuck }
	switch {
	case open.holders == 0 && printed.holders == 0:
		return reports.Inconclusive // no two users want a task at once
	case !keeps(correct) || !keeps(fenced) || fenced.commits > 0:
		return reports.Refuted
	case !keeps(printed) || correct.commits > 0:
		return reports.Depends
	}
	return reports.Confirmed
}
