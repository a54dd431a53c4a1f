package stockimpl_test

import (
	"context"
	"errors"
	"testing"

	"oversell/clock"
	"oversell/database"
	"oversell/database/databasetest"
	"oversell/stockimpl"
	"oversell/variant"
)

// sqlStage is one product of one sale on SQL, for the clients of one schedule.
type sqlStage struct {
	*testing.T
	db      *database.DB
	sale    stockimpl.Variant
	product string
	plain   stockimpl.Sale // not stepped
}

func newSQLStage(t *testing.T, db *database.DB, sale string, stock int64) *sqlStage {
	t.Helper()
	v, ok := stockimpl.Find(sale)
	if !ok {
		t.Fatalf("no sale %q", sale)
	}
	s := &sqlStage{T: t, db: db, sale: v, product: newProduct()}
	s.plain = v.New(sqlWorld(db), s.product)
	if err := s.plain.Open(t.Context(), stock); err != nil {
		t.Fatal(err)
	}
	return s
}

// sqlBuyer runs a sale's own code statement by statement.
type sqlBuyer struct {
	*databasetest.Client
	stage *sqlStage
	left  int64
}

// start begins a client's call, which stops before its first statement.
func (s *sqlStage) start(do call) *sqlBuyer {
	s.Helper()
	b := &sqlBuyer{Client: databasetest.NewClient(s.T, s.db, nil), stage: s}
	sale := s.sale.New(variant.Env{SQL: b.SQL, Clock: clock.Real{}}, s.product)
	b.Start(func(ctx context.Context) (err error) {
		b.left, err = do(ctx, sale)
		return err
	})
	return b
}

// steps executes the client's next statements, which must be these.
func (b *sqlBuyer) steps(words ...string) {
	b.stage.Helper()
	b.Steps(b.stage, words...)
}

// ends checks that the client has finished, with this answer.
func (b *sqlBuyer) ends(want error, left int64) {
	b.stage.Helper()
	if err := b.Ended(b.stage); !errors.Is(err, want) || b.left != left {
		b.stage.Fatalf("the client was answered %d left, %v; want %d, %v", b.left, err, left, want)
	}
}

// holds checks how many pieces are left in the database.
func (s *sqlStage) holds(left int64) {
	s.Helper()
	got, err := s.plain.State(s.Context())
	if err != nil || got != uncounted(left) {
		s.Fatalf("the database holds %+v, %v; want %d left", got, err, left)
	}
}

// answers makes a call that is not stepped, and checks its answer.
func (s *sqlStage) answers(do call, want error, left int64) {
	s.Helper()
	got, err := do(s.Context(), s.plain)
	if !errors.Is(err, want) || got != left {
		s.Fatalf("answered %d left, %v; want %d, %v", got, err, left, want)
	}
}

// TestSQLLostUpdate plays this schedule: one piece, and two buyers that both read before either writes.
func TestSQLLostUpdate(t *testing.T) {
	onSQL(t, func(t *testing.T, db *database.DB) {
		t.Run("sql-plain sells the one piece twice", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-plain", 1)
			a, b := s.start(buying(1, 1, 0)), s.start(buying(2, 1, 0))
			a.steps("select")
			b.steps("select")
			a.steps("update")
			b.steps("update")
			a.ends(nil, 0)
			b.ends(nil, 0)
			s.holds(0)
		})
		t.Run("sql-plain undoes a refund", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-plain", 2)
			s.answers(buying(1, 1, 0), nil, 1)
			a, b := s.start(buying(2, 1, 0)), s.start(refunding(1, 1, 0))
			a.steps("select")
			b.steps("select", "update")
			a.steps("update")
			b.ends(nil, 2)
			a.ends(nil, 0)
			s.holds(0) // one of two pieces was sold, and none is left
		})
		t.Run("a late update undoes what sql-plain sold since", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-plain", 3)
			a := s.start(buying(1, 1, 0))
			a.steps("select")
			s.answers(buying(2, 1, 0), nil, 2)
			s.answers(buying(3, 1, 0), nil, 1)
			a.steps("update")
			a.ends(nil, 2)
			s.holds(2) // three were sold, and two are left
		})
		t.Run("sql-version notices", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-version", 1)
			a, b := s.start(buying(1, 1, 0)), s.start(buying(2, 1, 0))
			a.steps("select")
			b.steps("select")
			a.steps("update")
			b.steps("update") // finds no row with the version that it read
			b.steps("select")
			a.ends(nil, 0)
			b.ends(stockimpl.ErrSoldOut, soldOut)
			s.holds(0)
		})
		t.Run("sql-version notices a stock that is the same again", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-version", 2)
			a := s.start(buying(1, 1, 0))
			a.steps("select")
			s.answers(buying(2, 1, 0), nil, 1)
			s.answers(refunding(2, 1, 0), nil, 2)
			a.steps("update", "select", "update")
			a.ends(nil, 1)
			s.holds(1)
		})
		t.Run("sql-version refuses what is stale, if told to", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-version", 2)
			a := s.start(func(ctx context.Context, sale stockimpl.Sale) (int64, error) {
				sale.(stockimpl.Optimist).RefuseStale()
				return buying(1, 1, 0)(ctx, sale)
			})
			a.steps("select")
			s.answers(buying(2, 1, 0), nil, 1)
			a.steps("update") // finds no row with the version that it read
			a.ends(stockimpl.ErrStale, unsaid)
			s.holds(1)
		})
		t.Run("sql-for-update is one step for everybody else", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-for-update", 1)
			a, b := s.start(buying(1, 1, 0)), s.start(buying(2, 1, 0))
			a.steps("begin")
			b.steps("begin")
			a.ends(nil, 0)
			b.ends(stockimpl.ErrSoldOut, soldOut)
			s.holds(0)
		})
		t.Run("sql-conditional has no gap", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-conditional", 1)
			a, b := s.start(buying(1, 1, 0)), s.start(buying(2, 1, 0))
			a.steps("update")
			b.steps("update")
			a.ends(nil, unsaid)
			b.ends(stockimpl.ErrSoldOut, soldOut)
			s.holds(0)
		})
		t.Run("sql-conditional refuses the one that wants too much", func(t *testing.T) {
			s := newSQLStage(t, db, "sql-conditional", 1)
			s.answers(buying(1, 2, 0), stockimpl.ErrSoldOut, soldOut)
			s.answers(buying(2, 1, 0), nil, unsaid)
			s.holds(0)
		})
		for _, v := range sqlSales() {
			t.Run(v.Name+" knows no orders", func(t *testing.T) {
				s := newSQLStage(t, db, v.Name, 5)
				for range 2 {
					if _, err := buying(7, 1, 0)(t.Context(), s.plain); err != nil {
						t.Fatal(err)
					}
				}
				s.holds(3)
			})
			t.Run(v.Name+" changes nothing when it dies before its update", func(t *testing.T) {
				s := newSQLStage(t, db, v.Name, 5)
				a := s.start(buying(1, 1, 0))
				for a.Next() != "update" && a.Next() != "begin" { // a transaction is one step
					a.Step()
				}
				a.Crash()
				s.holds(5)
			})
		}
	})
}
