package dispatchimpl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"oversell/database"
	"oversell/dispatchimpl"
)

// lockFor returns a lock under which the dispatch keeps its promises.
func lockFor(v dispatchimpl.Variant) string {
	if v.Needs.Fence {
		return "fenced"
	}
	return "lua-release"
}

// every runs a test for each dispatch on every kind of database.
func every(t *testing.T, do func(t *testing.T, db *database.DB, v dispatchimpl.Variant)) {
	t.Helper()
	each(t, func(t *testing.T, db *database.DB) {
		for _, v := range dispatchimpl.Variants {
			t.Run(v.Name, func(t *testing.T) { do(t, db, v) })
		}
	})
}

func TestTasksAreHandedOutInOrderAndOnce(t *testing.T) {
	every(t, func(t *testing.T, db *database.DB, v dispatchimpl.Variant) {
		const tasks = 40 // more than one query finds
		s := newStage(t, db, v.Name, lockFor(v), tasks)
		s.holds(tasks, 0, 0, 0)
		for id := int64(1); id <= tasks; id++ {
			user := id%9 + 1
			h := s.take(user, id)
			s.cannotTake(user, dispatchimpl.ErrBusy)
			s.holds(tasks-id, 1, id-1, id-1)
			s.submit(h, nil)
		}
		s.cannotTake(1, dispatchimpl.ErrEmpty)
		s.expires(0)
		s.holds(0, 0, tasks, tasks)
	})
}

func TestUsersGetWhatTheyLike(t *testing.T) {
	every(t, func(t *testing.T, db *database.DB, v dispatchimpl.Variant) {
		s := newEmptyStage(t, db, v.Name, lockFor(v))
		s.open([]dispatchimpl.Task{{1, "sport"}, {2, "Sport"}, {3, "music"}, {4, ""}, {5, "体育"}, {6, "sport"}, {7, "art"}},
			[]dispatchimpl.User{{1, []string{"sport"}}, {2, []string{"体育", "music"}}, {3, nil}, {4, []string{"nonesuch"}}, {5, []string{""}}})
		s.submit(s.take(1, 1), nil)
		s.submit(s.take(1, 6), nil) // "Sport" is another category
		s.cannotTake(1, dispatchimpl.ErrEmpty)
		s.submit(s.take(2, 3), nil)
		s.take(2, 5)
		s.cannotTake(4, dispatchimpl.ErrEmpty)
		s.take(5, 4)
		s.submit(s.take(3, 2), nil)
		s.take(3, 7)
	})
}

func TestManyUsersAtOnce(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		for _, c := range []struct{ dispatch, lock string }{
			{"dispatch-locked", "lua-release"}, {"dispatch-locked", "php-lock-atomic"}, {"dispatch-fenced", "fenced"},
		} {
			t.Run(c.dispatch+" under "+c.lock, func(t *testing.T) {
				const users, tasks = 9, 60
				s := newStage(t, db, c.dispatch, c.lock, tasks)
				var mu sync.Mutex
				handed := map[int64]int64{}
				work := func(pool dispatchimpl.Pool, user int64) error {
					for {
						h, err := pool.Take(t.Context(), user)
						if errors.Is(err, dispatchimpl.ErrEmpty) {
							return nil
						}
						if err != nil {
							return err
						}
						mu.Lock()
						if first, twice := handed[h.Task]; twice {
							t.Errorf("task %d was handed to user %d and to user %d", h.Task, first, user)
						}
						handed[h.Task] = user
						mu.Unlock()
						if err := pool.Submit(t.Context(), h); err != nil {
							return err
						}
					}
				}
				var all sync.WaitGroup
				for user := range int64(users) {
					pool := s.client(db.DB, s.connect())
					all.Go(func() {
						if err := work(pool, user+1); err != nil {
							t.Errorf("user %d: %v", user+1, err)
						}
					})
				}
				all.Wait()
				s.holds(0, 0, tasks, tasks)
			})
		}
	})
}

func TestTwoPoolsDoNotMix(t *testing.T) {
	every(t, func(t *testing.T, db *database.DB, v dispatchimpl.Variant) {
		one := newStage(t, db, v.Name, lockFor(v), 1)
		two := *one // the same servers
		two.pool += "2"
		two.plain = two.client(db.DB, two.connect())
		two.open([]dispatchimpl.Task{{1, "any"}, {2, "any"}}, []dispatchimpl.User{{1, nil}})
		h := one.take(1, 1)
		two.holds(2, 0, 0, 0)
		two.take(1, 1)
		one.submit(h, nil)
		two.holds(1, 1, 0, 0)
	})
}

func TestTablesCarryThePoolsName(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		before, err := db.Dialect.Tables(t.Context(), db.DB)
		if err != nil {
			t.Fatal(err)
		}
		s := newStage(t, db, "dispatch-locked", "lua-release", 1)
		after, err := db.Dialect.Tables(t.Context(), db.DB)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range after {
			if !slices.Contains(before, name) && !strings.Contains(name, s.pool) {
				t.Errorf("the table %q does not carry the pool's name %q", name, s.pool)
			}
		}
		if n, err := db.Sweep(t.Context(), s.pool); n != 3 || err != nil {
			t.Errorf("swept %d tables, %v; want 3", n, err)
		}
	})
}

func TestWhatCannotBeOpened(t *testing.T) {
	long := strings.Repeat("x", 129)
	every(t, func(t *testing.T, db *database.DB, v dispatchimpl.Variant) {
		for _, c := range []struct {
			tasks []dispatchimpl.Task
			users []dispatchimpl.User
			says  string
		}{
			{[]dispatchimpl.Task{{0, "a"}}, nil, "task 0: the id must be positive"},
			{[]dispatchimpl.Task{{1, "a"}, {1, "b"}}, nil, "task 1 is there twice"},
			{[]dispatchimpl.Task{{1, long}}, nil, "task 1: a category of 129 bytes"},
			{nil, []dispatchimpl.User{{-1, nil}}, "user -1: the id must be positive"},
			{nil, []dispatchimpl.User{{1, nil}, {1, nil}}, "user 1 is there twice"},
			{nil, []dispatchimpl.User{{1, []string{"a", "a"}}}, `user 1 likes "a" twice`},
			{nil, []dispatchimpl.User{{1, []string{long}}}, "user 1: a category of 129 bytes"},
		} {
			s := newEmptyStage(t, db, v.Name, lockFor(v))
			wantError(t, s.plain.Open(t.Context(), c.tasks, c.users), "open of pool", s.pool, c.says)
		}
		s := newEmptyStage(t, db, v.Name, lockFor(v))
		s.open(nil, nil) // no tasks and no users
		s.holds(0, 0, 0, 0)
	})
}

func TestErrorsSayWhatWasAttempted(t *testing.T) {
	every(t, func(t *testing.T, db *database.DB, v dispatchimpl.Variant) {
		s := newEmptyStage(t, db, v.Name, lockFor(v))
		wantAll(t, s.plain, s.pool, "not opened")
		env := s.env(nil, s.connect())
		wantAll(t, v.New(env, s.pool, s.lock.New(env), dispatchimpl.Options{Limit: limit}), s.pool, "there is no SQL database")
		env.SQL = db.DB
		wantAll(t, v.New(env, s.pool, s.lock.New(env), dispatchimpl.Options{}), s.pool, "a limit of 0s: it must be positive")
		name := strings.Repeat("long", 20)
		wantAll(t, v.New(env, name, s.lock.New(env), dispatchimpl.Options{Limit: limit}), name, "bytes long")

		s = newStage(t, db, v.Name, lockFor(v), 1)
		_, err := s.plain.Take(t.Context(), 99)
		wantError(t, err, "take for user 99", s.pool, "there is no such user")
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = s.plain.Take(dead, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("take under a cancelled context = %v; it does not wrap the cause", err)
		}
		wantError(t, err, "take for user 1", s.pool)
		s.holds(1, 0, 0, 0)
	})
}

// wantAll requires that every use of the pool fails for this reason.
func wantAll(t *testing.T, p dispatchimpl.Pool, name, says string) {
	t.Helper()
	_, take := p.Take(t.Context(), 7)
	wantError(t, take, "take for user 7", name, says)
	wantError(t, p.Submit(t.Context(), dispatchimpl.Hold{Task: 8, User: 7}), "submit task 8 by user 7", name, says)
	_, expire := p.Expire(t.Context())
	wantError(t, expire, "take back the tasks", name, says)
	_, state := p.State(t.Context())
	wantError(t, state, "state of pool", name, says)
}

// wantError checks the text of an error, which must not be a declared answer.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not contain %q", err, p)
		}
	}
	for _, declared := range []error{dispatchimpl.ErrEmpty, dispatchimpl.ErrBusy, dispatchimpl.ErrLost} {
		if errors.Is(err, declared) {
			t.Errorf("error %q is the declared answer %v", err, declared)
		}
	}
}

func TestFencedNeedsAToken(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		s := newStage(t, db, "dispatch-fenced", "lua-release", 1)
		_, err := s.plain.Take(t.Context(), 1)
		wantError(t, err, "grants no fencing token")
		if keys := s.redis.Keys(); len(keys) != 0 {
			t.Errorf("locks are left: %v", keys)
		}
	})
}

func TestDeclarationsOfDispatches(t *testing.T) {
	for _, v := range dispatchimpl.Variants {
		if !v.Needs.SQL {
			t.Errorf("%s does not need SQL, where the tasks are", v.Name)
		}
		for _, f := range v.Flaws {
			if !slices.Contains(v.Promises, f.Property) {
				t.Errorf("%s: flaw %+v breaks no promise", v.Name, f)
			}
		}
	}
}
