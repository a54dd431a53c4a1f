package dispatchimpl_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"oversell/clock"
	"oversell/database"
	"oversell/database/databasetest"
	"oversell/dispatchimpl"
	"oversell/lockimpl"
	"oversell/variant"
)

var servers databasetest.Servers // started when first asked for

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

// each runs a test on every kind of database.
func each(t *testing.T, do func(t *testing.T, db *database.DB)) {
	t.Helper()
	for _, kind := range databasetest.Kinds {
		t.Run(kind, func(t *testing.T) { do(t, servers.Open(t, kind)) })
	}
}

// limit is how long a user may hold a task. Time passes only when a test says so.
const limit = 15 * time.Second

// stage is one pool of one dispatch under one lock, and its clients.
type stage struct {
	*testing.T
	db       *database.DB
	redis    *miniredis.Miniredis
	clock    *clock.Virtual
	dispatch dispatchimpl.Variant
	lock     lockimpl.Variant
	pool     string
	plain    dispatchimpl.Pool // a pool that is not stepped
}

// newStage returns a stage with the tasks 1 to n and the users 1 to 9, who like every category.
func newStage(t *testing.T, db *database.DB, dispatch, lock string, n int64) *stage {
	t.Helper()
	s := newEmptyStage(t, db, dispatch, lock)
	var tasks []dispatchimpl.Task
	for id := range n {
		tasks = append(tasks, dispatchimpl.Task{ID: id + 1, Category: "any"})
	}
	var users []dispatchimpl.User
	for id := range int64(9) {
		users = append(users, dispatchimpl.User{ID: id + 1})
	}
	s.open(tasks, users)
	return s
}

func newEmptyStage(t *testing.T, db *database.DB, dispatch, lock string) *stage {
	t.Helper()
	d, ok := dispatchimpl.Find(dispatch)
	l, ok2 := lockimpl.Find(lock)
	if !ok || !ok2 {
		t.Fatalf("no dispatch %q or no lock %q", dispatch, lock)
	}
	start := time.Unix(1_700_000_000, 0)
	s := &stage{
		T: t, db: db, redis: miniredis.RunT(t), clock: clock.NewVirtual(start),
		dispatch: d, lock: l, pool: "{ov-" + rand.Text()[:6] + "}pool",
	}
	s.redis.SetTime(start)
	s.loadScripts()
	s.plain = s.client(db.DB, s.connect())
	return s
}

func (s *stage) open(tasks []dispatchimpl.Task, users []dispatchimpl.User) {
	s.Helper()
	if err := s.plain.Open(s.Context(), tasks, users); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) connect() *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: s.redis.Addr(), PoolSize: 1, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s.Cleanup(func() { c.Close() })
	return c
}

func (s *stage) env(db *sql.DB, c *redis.Client) variant.Env {
	return variant.Env{
		Redis: []redis.UniversalClient{c}, Clock: s.clock, Token: rand.Text, SQL: db,
		Wait: func(context.Context, string, time.Duration) error { return variant.ErrStopped },
	}
}

func (s *stage) client(db *sql.DB, c *redis.Client) dispatchimpl.Pool {
	env := s.env(db, c)
	return s.dispatch.New(env, s.pool, s.lock.New(env), dispatchimpl.Options{Limit: limit})
}

// loadScripts makes the server load the lock's scripts, so that each later run of one is a single command.
func (s *stage) loadScripts() {
	s.Helper()
	locker := s.lock.New(s.env(nil, s.connect()))
	l, err := locker.Acquire(s.Context(), s.pool+"-other", lockimpl.Options{TTL: limit})
	if err == nil {
		err = locker.Release(s.Context(), l)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// pass lets time pass on the clock of the clients and on that of the server.
func (s *stage) pass(d time.Duration) {
	s.clock.Advance(d)
	s.redis.SetTime(s.clock.Now())
	s.redis.FastForward(d)
}

// worker is the client of one user, which a test steps.
type worker struct {
	*databasetest.Client
	stage *stage
	hold  dispatchimpl.Hold
}

// taking begins a Take and stops before its first statement.
func (s *stage) taking(user int64) *worker {
	s.Helper()
	c := s.connect()
	w := &worker{Client: databasetest.NewClient(s.T, s.db, c), stage: s}
	pool := s.client(w.SQL, c)
	w.Start(func(ctx context.Context) (err error) {
		w.hold, err = pool.Take(ctx, user)
		return err
	})
	return w
}

// steps executes these statements and commands, which must be the next ones of the client.
func (w *worker) steps(names ...string) {
	w.stage.Helper()
	w.Steps(w.stage, names...)
}

// has requires that the client has ended with this task.
func (w *worker) has(task int64) dispatchimpl.Hold {
	w.stage.Helper()
	if err := w.Ended(w.stage); err != nil || w.hold.Task != task {
		w.stage.Fatalf("the user was handed task %d, %v; want %d", w.hold.Task, err, task)
	}
	return w.hold
}

// refused requires that the client has ended with this answer.
func (w *worker) refused(want error) {
	w.stage.Helper()
	if err := w.Ended(w.stage); !errors.Is(err, want) {
		w.stage.Fatalf("the user was handed task %d, %v; want %v", w.hold.Task, err, want)
	}
}

// take requires that the user is handed this task.
func (s *stage) take(user, task int64) dispatchimpl.Hold {
	s.Helper()
	h, err := s.plain.Take(s.Context(), user)
	if err != nil || h.Task != task || h.User != user {
		s.Fatalf("user %d was handed %+v, %v; want task %d", user, h, err, task)
	}
	return h
}

// cannotTake requires that the user is handed no task, with this answer.
func (s *stage) cannotTake(user int64, want error) {
	s.Helper()
	if h, err := s.plain.Take(s.Context(), user); !errors.Is(err, want) {
		s.Fatalf("user %d was handed %+v, %v; want %v", user, h, err, want)
	}
}

func (s *stage) submit(h dispatchimpl.Hold, want error) {
	s.Helper()
	if err := s.plain.Submit(s.Context(), h); !errors.Is(err, want) {
		s.Fatalf("the submit of task %d by user %d was answered %v; want %v", h.Task, h.User, err, want)
	}
}

func (s *stage) expires(want int) {
	s.Helper()
	if n, err := s.plain.Expire(s.Context()); n != want || err != nil {
		s.Fatalf("%d tasks returned, %v; want %d", n, err, want)
	}
}

func (s *stage) holds(free, held, done, commits int64) {
	s.Helper()
	want := dispatchimpl.State{Free: free, Held: held, Done: done, Commits: commits}
	if got, err := s.plain.State(s.Context()); got != want || err != nil {
		s.Fatalf("the database holds %+v, %v; want %+v", got, err, want)
	}
}
