// Package oracle checks package explore against a second search, which shares with it only the model of the server and
// the stepping of clients, and against small programs whose verdicts were found by reasoning.
package oracle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// lease is the lease of every lock in this package.
const lease = time.Second

// design is a lock in a few lines of code. Each part reports whether it succeeded; a command without an answer ends the
// part and the operation.
type design struct {
	acquire, release func(*try) bool
	// extend may be nil: then the lock is extended by compare and PEXPIRE in one script.
	extend func(*try) bool
	// late says that the clock is not read before acquire; acquire sets until itself.
	late bool
	// deadlines says that the code sets deadlines for its commands.
	deadlines bool
	// keys are the keys that the code uses besides the lock's key.
	keys []string
	// spans are the durations that the code adds to readings of the clock, besides the lease.
	spans []time.Duration
	// collection says that the lock's key is a set, a hash or the like, to which clients other than the holder may write.
	collection bool
	// key returns the lock's key, which may depend on the token; if nil, it is the key that all shipped locks use.
	key func(token string) string
}

// variant returns the design as a variant, for a search.
func (d *design) variant(name string) lockimpl.Variant {
	return lockimpl.Variant{
		Name:     name,
		Promises: []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress},
		New:      func(env variant.Env) lockimpl.Locker { return &locker{env: env, design: d} },
	}
}

// locker is one client's view of a design. It keeps Kept and Count from one round to the next.
type locker struct {
	env    variant.Env
	design *design
	Kept   string
	Count  int
	// stop ends the goroutine that renews the lease, and waits for it.
	stop func()
}

// try is one operation under way.
type try struct {
	*locker
	ctx   context.Context
	r     redis.UniversalClient
	key   string
	v     string    // the token
	start time.Time // the time before the first command
	until time.Time // the lease's promised end
	ttl   time.Duration
}

// failure is an error that ends an operation.
type failure struct{ error }

func (l *locker) begin(ctx context.Context, name, token string, ttl time.Duration) *try {
	t := &try{locker: l, ctx: ctx, r: l.env.Redis[0], key: lockimpl.Key(name), v: token, ttl: ttl}
	if l.design.key != nil {
		t.key = l.design.key(token)
	}
	return t
}

// run runs a part, and turns its failures into an error.
func (t *try) run(part func(*try) bool) (ok bool, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	return part(t), nil
}

func (l *locker) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	t := l.begin(ctx, name, l.env.Token(), o.TTL)
	if !l.design.late {
		t.start = t.now()
		t.until = t.start.Add(t.ttl)
	}
	ok, err := t.run(l.design.acquire)
	switch {
	case err != nil:
		return lockimpl.Lock{}, err
	case !ok:
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	return lockimpl.Lock{Key: name, Token: t.v, Until: t.until}, nil
}

func (l *locker) Extend(ctx context.Context, k lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	t := l.begin(ctx, k.Key, k.Token, ttl)
	t.start = t.now()
	t.until = t.start.Add(ttl)
	extend := l.design.extend
	if extend == nil {
		extend = extendCompared
	}
	ok, err := t.run(extend)
	switch {
	case err != nil:
		return k, err
	case !ok:
		return k, lockimpl.ErrLost
	}
	k.Until = t.until
	return k, nil
}

func (l *locker) Release(ctx context.Context, k lockimpl.Lock) error {
	t := l.begin(ctx, k.Key, k.Token, 0)
	t.until = k.Until
	ok, err := t.run(l.design.release)
	switch {
	case err != nil:
		return err
	case !ok:
		return lockimpl.ErrLost
	}
	return nil
}

func (t *try) now() time.Time { return t.env.Clock.Now() }

func (t *try) ms() int64 { return t.ttl.Milliseconds() }

// do sends a command and returns its reply, nil for a null reply.
func (t *try) do(args ...any) any { return on(t.ctx, t.r, args...) }

// doer sends commands: a client or a transaction.
type doer interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

func on(ctx context.Context, r doer, args ...any) any {
	v, err := r.Do(ctx, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(failure{err})
	}
	return v
}

// yes sends a command and reports whether its reply is neither null nor 0.
func (t *try) yes(args ...any) bool {
	v := t.do(args...)
	return v != nil && v != int64(0)
}

// text sends a command and returns its reply as a text, empty for a null reply.
func (t *try) text(args ...any) string { return textOf(t.do(args...)) }

func textOf(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (t *try) number(args ...any) int64 {
	n, _ := t.do(args...).(int64)
	return n
}

// texts sends a command and returns its reply, a list, as texts.
func (t *try) texts(args ...any) (all []string) {
	list, _ := t.do(args...).([]any)
	for _, v := range list {
		all = append(all, textOf(v))
	}
	return all
}

// script runs a script on the lock's key, and reports whether its reply is neither null nor 0.
func (t *try) script(source string, args ...any) bool {
	v, err := redis.NewScript(source).Run(t.ctx, t.r, []string{t.key}, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(failure{err})
	}
	return v != nil && v != int64(0)
}

// watched sends WATCH, calls f, and executes the commands that f returns in a transaction, if there are any. It reports
// whether the transaction was executed.
func (t *try) watched(f func(tx *redis.Tx) [][]any) bool {
	done := false
	err := t.r.Watch(t.ctx, func(tx *redis.Tx) error {
		commands := f(tx)
		if len(commands) == 0 {
			return nil
		}
		_, err := tx.TxPipelined(t.ctx, func(p redis.Pipeliner) error {
			for _, c := range commands {
				p.Do(t.ctx, c...)
			}
			return nil
		})
		done = err == nil
		return err
	}, t.key)
	if err != nil && !errors.Is(err, redis.TxFailedErr) {
		panic(failure{err})
	}
	return done
}

// The scripts from which designs are made. A script that compares forms of tokens gets the form of the client's own
// token from the client.
const (
	dropIfEqual   = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`
	renewIfEqual  = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`
	setWithExpiry = `if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0`
)

func setNX(t *try) bool { return t.yes("set", t.key, t.v, "nx", "px", t.ms()) }

func dropCompared(t *try) bool { return t.script(dropIfEqual, t.v) }

func extendCompared(t *try) bool { return t.script(renewIfEqual, t.v, t.ms()) }

func del(t *try) bool { return t.yes("del", t.key) }

func getDel(t *try) bool { return t.text("get", t.key) == t.v && del(t) }
