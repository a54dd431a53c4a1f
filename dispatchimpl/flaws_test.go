package dispatchimpl_test

import (
	"context"
	"testing"
	"time"

	"oversell/database"
	"oversell/dispatchimpl"
)

// Each test here is a schedule of statements and commands that shows one flaw, and the same schedule with a dispatch
// that does not have the flaw.

// There is one task, which two users find before either of them is handed it.

func TestATaskIsHandedToTwoUsers(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		bothSubmit := func(s *stage, a, b *worker) {
			s.Helper()
			s.holds(0, 1, 0, 0)
			s.submit(a.has(1), nil)
			s.submit(b.has(1), nil) // the task is done twice
			s.holds(0, 0, 1, 2)
		}
		t.Run("dispatch-locked under none", func(t *testing.T) {
			s := newStage(t, db, "dispatch-locked", "none", 1)
			a, b := s.taking(1), s.taking(2)
			a.steps("select", "select")
			b.steps("select", "select")
			a.steps("begin")
			b.steps("begin")
			bothSubmit(s, a, b)
		})
		t.Run("dispatch-locked under php-lock-printed", func(t *testing.T) {
			s := newStage(t, db, "dispatch-locked", "php-lock-printed", 1)
			a, b := s.taking(1), s.taking(2)
			a.steps("select", "select", "setnx") // A holds the lock, which has no expiry yet
			b.steps("select", "select", "setnx", "ttl")
			a.steps("expire", "begin")
			b.steps("set", "begin")
			bothSubmit(s, a, b)
		})
		for _, lock := range []string{"none", "lua-release"} {
			t.Run("dispatch-unchecked under "+lock, func(t *testing.T) {
				s := newStage(t, db, "dispatch-unchecked", lock, 1)
				a, b := s.taking(1), s.taking(2)
				a.steps("select", "select")
				b.steps("select", "select")
				a.steps("begin")
				b.steps("begin")
				bothSubmit(s, a, b)
			})
		}
		for _, c := range []struct{ dispatch, lock, acquire string }{
			{"dispatch-locked", "lua-release", "set"},
			{"dispatch-locked", "php-lock-atomic", "evalsha"},
			{"dispatch-fenced", "fenced", "evalsha"},
		} {
			t.Run("not by "+c.dispatch+" under "+c.lock, func(t *testing.T) {
				s := newStage(t, db, c.dispatch, c.lock, 1)
				a, b := s.taking(1), s.taking(2)
				a.steps("select", "select", c.acquire)
				b.steps("select", "select", c.acquire) // refused
				a.steps("begin")
				b.steps("select") // no other candidate
				b.refused(dispatchimpl.ErrEmpty)
				s.submit(a.has(1), nil)
				s.holds(0, 0, 1, 1)
			})
		}
	})
}

func TestTheNextCandidateIsTried(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		t.Run("when the first is locked", func(t *testing.T) {
			s := newStage(t, db, "dispatch-locked", "lua-release", 2)
			a, b := s.taking(1), s.taking(2)
			a.steps("select", "select", "set")
			b.steps("select", "select", "set", "set", "begin")
			b.has(2)
			a.steps("begin")
			a.has(1)
		})
		t.Run("when the first was done since it was found", func(t *testing.T) {
			s := newStage(t, db, "dispatch-locked", "lua-release", 2)
			a := s.taking(1)
			a.steps("select", "select")
			s.submit(s.take(2, 1), nil)
			a.steps("set", "begin", "evalsha") // lock the first, find it done, release
			a.steps("set", "begin")
			a.has(2)
			s.holds(0, 1, 1, 1)
		})
		t.Run("but dispatch-unchecked hands out what is done", func(t *testing.T) {
			s := newStage(t, db, "dispatch-unchecked", "lua-release", 2)
			a := s.taking(1)
			a.steps("select", "select")
			s.submit(s.take(2, 1), nil)
			a.steps("begin")
			a.has(1)
		})
	})
}

// A user takes the task and does nothing until the limit has passed.

func TestATaskReturnsAfterTheLimit(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		late := func(t *testing.T, dispatch, lock string) (s *stage, a, b dispatchimpl.Hold) {
			s = newStage(t, db, dispatch, lock, 1)
			a = s.take(1, 1)
			if want := s.clock.Now().Add(limit); !a.Until.Equal(want) {
				t.Errorf("the hold is until %v; want %v", a.Until, want)
			}
			s.pass(limit - time.Millisecond)
			s.expires(0)
			s.cannotTake(2, dispatchimpl.ErrEmpty)
			s.pass(time.Millisecond)
			s.expires(1)
			s.expires(0)
			return s, a, s.take(2, 1)
		}
		t.Run("dispatch-locked accepts the late commit", func(t *testing.T) {
			s, a, b := late(t, "dispatch-locked", "lua-release")
			s.submit(a, nil) // although B holds the task
			s.submit(b, nil)
			s.holds(0, 0, 1, 2)
		})
		t.Run("dispatch-fenced refuses it", func(t *testing.T) {
			s, a, b := late(t, "dispatch-fenced", "fenced")
			s.submit(a, dispatchimpl.ErrLost)
			s.holds(0, 1, 0, 0)
			s.submit(b, nil)
			s.submit(b, dispatchimpl.ErrLost) // a second submit is refused
			s.submit(a, dispatchimpl.ErrLost)
			s.holds(0, 0, 1, 1)
		})
		t.Run("dispatch-fenced refuses it though nobody else took the task", func(t *testing.T) {
			s := newStage(t, db, "dispatch-fenced", "fenced", 1)
			a := s.take(1, 1)
			s.pass(limit)
			s.expires(1)
			s.submit(a, dispatchimpl.ErrLost)
			s.holds(1, 0, 0, 0)
		})
		t.Run("who lost a task can take another", func(t *testing.T) {
			s, _, _ := late(t, "dispatch-locked", "lua-release")
			s.cannotTake(1, dispatchimpl.ErrEmpty) // not ErrBusy
		})
		t.Run("but never under php-lock-printed", func(t *testing.T) {
			s := newStage(t, db, "dispatch-locked", "php-lock-printed", 1)
			s.take(1, 1)
			s.pass(limit)
			s.expires(1)
			s.pass(365 * 24 * time.Hour)
			s.holds(1, 0, 0, 0)
			s.cannotTake(2, dispatchimpl.ErrEmpty) // the dead user's lock lasts for decades
		})
	})
}

func TestAUserDiesBetweenTheLockAndTheHandover(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		s := newStage(t, db, "dispatch-locked", "lua-release", 1)
		a := s.taking(1)
		a.steps("select", "select", "set")
		a.Crash()
		s.holds(1, 0, 0, 0)
		s.cannotTake(2, dispatchimpl.ErrEmpty)
		s.pass(limit)
		s.take(2, 1)
	})
}

func TestALateHandoverIsRefused(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		s := newStage(t, db, "dispatch-fenced", "fenced", 1)
		a := s.taking(1)
		a.steps("select", "select", "evalsha")
		s.pass(limit)
		b := s.take(2, 1)
		a.steps("begin", "evalsha", "select") // a newer token was there; A's release changes nothing
		a.refused(dispatchimpl.ErrEmpty)
		s.submit(b, nil)
		s.holds(0, 0, 1, 1)
	})
}

func TestOneUserInTwoSessionsTakesOneTask(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		s := newStage(t, db, "dispatch-locked", "lua-release", 2)
		a, b := s.taking(1), s.taking(1)
		a.steps("select", "select", "set")
		b.steps("select", "select", "set", "set") // the first is locked, so it locks the second task
		a.steps("begin")
		b.steps("begin", "evalsha") // the handover is undone, and the lock released
		a.has(1)
		b.refused(dispatchimpl.ErrBusy)
		s.holds(1, 1, 0, 0)
		s.take(2, 2)
	})
}

func TestASubmitThatDiesChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		s := newStage(t, db, "dispatch-locked", "lua-release", 1)
		a := s.taking(1)
		a.steps("select", "select", "set", "begin")
		h := a.has(1)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.plain.Submit(dead, h); err == nil {
			t.Error("a submit under a cancelled context was accepted")
		}
		s.holds(0, 1, 0, 0)
	})
}
