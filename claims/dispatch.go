package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/database"
	"oversell/dispatchimpl"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// dispatched is the result of a dispatch under a lock.
type dispatched struct {
	holders int  // tasks that two users held at once
	commits int  // tasks submitted by users who no longer held them
	stuck   bool // the task of a user who died while holding it was never handed out again
	between bool // the same for a user who died during the acquisition, after its first command
}

// broke reports whether two users held a task, or a task was stuck.
func (d dispatched) broke() bool { return d.holders > 0 || d.stuck || d.between }

// told describes the result.
func (d dispatched) told() string {
	var parts []string
	if d.holders > 0 {
		parts = append(parts, fmt.Sprintf("tasks were held by two users %d times", d.holders))
	}
	if d.between {
		parts = append(parts, "the task of a user who died between its two commands was never dispatched again")
	}
	if d.stuck {
		parts = append(parts, "the task of a user who died was never dispatched again")
	}
	if d.commits > 0 {
		parts = append(parts, fmt.Sprintf("%d commits after the limit succeeded", d.commits))
	}
	if len(parts) == 0 {
		return "none of that was seen"
	}
	return strings.Join(parts, " and ")
}

// dispatches is the number of dispatches under each lock.
const dispatches = 3

// The locks of C19: those that the dispatch text publishes, and others. The value is the command after which a user
// dies during the acquisition; empty: there is only one command.
var (
	printedThere = []string{"setnx-expire", "incr", "set-nx-ex"}
	besides      = []string{"none", "lua-release", "fenced"}
	firstOfTwo   = map[string]string{"setnx-expire": "setnx", "incr": "incr"}
)

// dispatching measures C19.
func dispatching(ctx context.Context, b *bench) (a answer, err error) {
	by := map[string]dispatched{}
	for _, lock := range slices.Concat(printedThere, besides) {
		var d dispatched
		rs, err := b.again(ctx, dispatches, "--scenario", "dispatch", "--lock", lock, "--clients", "16", "--hold", "20ms", "--ops", "100", "--die", "0.1", "--ttl", "1s")
		if err != nil {
			return a, err
		}
		for _, r := range rs {
			d.holders += r.broke(variant.Dispatch, variant.OneHolderPerTask)
			d.commits += r.broke(variant.Dispatch, variant.HolderCommits)
		}
		if d.stuck, err = b.abandoned(ctx, lock, ""); err != nil {
			return a, err
		}
		if first := firstOfTwo[lock]; first != "" {
			if d.between, err = b.abandoned(ctx, lock, first); err != nil {
				return a, err
			}
		}
		by[lock] = d
		a.numbers = append(a.numbers,
			number("tasks held by two users, lock "+lock, d.holders, fmt.Sprintf("times in %d tasks", 100*dispatches)),
			number("commits by users who no longer held the task, lock "+lock, d.commits, ""),
			yes("stuck for good after its user died, lock "+lock, d.stuck))
		if first := firstOfTwo[lock]; first != "" {
			a.numbers = append(a.numbers, yes("stuck for good after its user died between "+strings.ToUpper(first)+" and EXPIRE, lock "+lock, d.between))
		}
	}
	own := make([]dispatched, len(printedThere))
	for i, lock := range printedThere {
		own[i] = by[lock]
		a.says += fmt.Sprintf("Under %s: %s. ", lock, own[i].told())
	}
	for _, lock := range besides {
		a.says += fmt.Sprintf("For comparison, under %s: %s. ", lock, by[lock].told())
	}
	a.says, a.plain = strings.TrimSpace(a.says), true
	a.is = oneHolder(by["none"], own, by["fenced"])
	a.on = "which of the three locks in the text is used."
	return a, nil
}

// The limit of a task in the measurement of its user's death, and how long after that limit another user tries.
const (
	holdLimit = time.Second
	tryFor    = 2500 * time.Millisecond
)

// errDied ends a client in the middle of an acquisition.
var errDied = errors.New("the client is dead")

// dying is a driver hook that lets the first command of this name take effect, and no later command.
type dying struct {
	after string
	dead  bool
}

// DialHook implements redis.Hook.
func (*dying) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (d *dying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if d.dead {
			c.SetErr(errDied)
			return errDied
		}
		d.dead = c.Name() == d.after
		return next(ctx, c)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (d *dying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// abandoned reports whether a task is stuck after its user has died. The user dies when it has taken the task or,
// if after names a command, when that command was executed during the acquisition of the lock.
func (b *bench) abandoned(ctx context.Context, lock, after string) (stuck bool, err error) {
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
		var hooks []redis.Hook
		if i == 0 && after != "" {
			hooks = append(hooks, &dying{after: after})
		}
		env, err := b.env(ctx, hooks...)
		if err != nil {
			return false, err
		}
		env.SQL = db.DB
		pools[i] = v.New(env, b.key("pool-"+lock+after), l.New(env), dispatchimpl.Options{Limit: holdLimit})
	}
	dead, alive := pools[0], pools[1]
	if err := alive.Open(ctx, []dispatchimpl.Task{{ID: 1, Category: "any"}}, []dispatchimpl.User{{ID: 1}, {ID: 2}}); err != nil {
		return false, err
	}
	if _, err := dead.Take(ctx, 1); after == "" && err != nil || after != "" && !errors.Is(err, errDied) {
		return false, fmt.Errorf("the user who is to die: %w", err)
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

// oneHolder decides C19 by the results of no lock, of the text's locks, and of fencing tokens, under which nothing
// may break.
func oneHolder(open dispatched, own []dispatched, fenced dispatched) string {
	broke := 0
	for _, d := range own {
		if d.broke() {
			broke++
		}
	}
	switch {
	case open.holders == 0 || fenced.broke() || fenced.commits > 0 || len(own) == 0:
		return reports.Inconclusive // no two users want a task at once, or the measurement is at fault
	case broke == 0:
		return reports.Confirmed
	case broke == len(own):
		return reports.Refuted
	}
	return reports.Depends
}
