package interrupt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// User is a Redis user of one client (ACL, since Redis 6) whose right to write can be taken away. Without the right,
// each command that writes fails, also within a script, where redis.pcall returns the error; commands that read and
// scripts are executed. The same happens on a replica, and on a master with too few replicas (min-replicas-to-write),
// but here other clients do not notice.
type User struct {
	user    string
	servers []redis.UniversalClient // that may change users
	clients []*redis.Client
}

// WithUser returns the world of a client that logs in as a user of its own, which may do everything. The error says why
// there cannot be one: a server has no users, like the emulation, or a client of env is not a *redis.Client. Close ends the
// user and its clients; a process that is killed before leaves the user on the server.
func WithUser(ctx context.Context, env variant.Env) (variant.Env, *User, error) {
	w := &User{user: "oversell-" + rand.Text(), servers: env.Redis}
	password := rand.Text()
	own := make([]redis.UniversalClient, len(env.Redis))
	for i, c := range env.Redis {
		one, ok := c.(*redis.Client)
		if !ok {
			w.Close()
			return env, nil, fmt.Errorf("a client of type %T cannot log in as another user", c)
		}
		if err := c.Do(ctx, "ACL", "SETUSER", w.user, "reset", "on", ">"+password, "~*", "&*", "+@all").Err(); err != nil {
			w.Close()
			why, _, _ := strings.Cut(err.Error(), ", with args") // which have the password
			return env, nil, fmt.Errorf("the server cannot create a user (ACL SETUSER): %s", why)
		}
		o := *one.Options()
		o.Username, o.Password = w.user, password
		o.CredentialsProvider, o.CredentialsProviderContext, o.StreamingCredentialsProvider = nil, nil, nil
		as := redis.NewClient(&o)
		w.clients = append(w.clients, as)
		own[i] = as
	}
	env.Redis = own
	return env, w, nil
}

// Refuse takes the right to write away, and Allow returns it.
func (w *User) Refuse(ctx context.Context) error { return w.set(ctx, "-@write") }

// Allow ends Refuse.
func (w *User) Allow(ctx context.Context) error { return w.set(ctx, "+@write") }

func (w *User) set(ctx context.Context, right string) error {
	var all []error
	for _, c := range w.servers {
		all = append(all, c.Do(ctx, "ACL", "SETUSER", w.user, right).Err())
	}
	return errors.Join(all...)
}

// During runs a call without the right to write. The error is that of the server that was to change the right.
func (w *User) During(ctx context.Context, call func()) error {
	if err := w.Refuse(ctx); err != nil {
		return err
	}
	call()
	return w.Allow(context.WithoutCancel(ctx))
}

// Close ends the clients, and removes the user.
func (w *User) Close() {
	for _, c := range w.clients {
		c.Close()
	}
	for _, c := range w.servers {
		_ = c.Do(context.Background(), "ACL", "DELUSER", w.user).Err()
	}
}
