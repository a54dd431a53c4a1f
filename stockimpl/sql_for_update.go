package stockimpl

import (
	"context"
	"database/sql"

	"oversell/database"
	"oversell/lockimpl"
	"oversell/variant"
)

// sqlForUpdate is pessimistic locking by the database itself: a transaction reads the stock record with SELECT … FOR
// UPDATE, which makes every other such reader wait, writes it, and commits. SQLite has no FOR UPDATE; its transactions,
// which begin as writers here, exclude each other.
type sqlForUpdate struct{ sqlRecord }

func newSQLForUpdate(env variant.Env, product string) Sale {
	return twoWay{&sqlForUpdate{newSQLRecord(env, product)}}
}

func (s *sqlForUpdate) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
	if s.unfit != nil {
		return Unsaid, s.unfit
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return Unsaid, err
	}
	defer tx.Rollback() // after a Commit it does nothing
	forUpdate := " FOR UPDATE"
	if s.dialect.Kind == database.SQLite {
		forUpdate = ""
	}
	left, _, err := s.scan(tx.QueryRowContext(ctx, s.selectRecord()+forUpdate))
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	if err := s.set(ctx, tx, left); err != nil {
		return Unsaid, err
	}
	return left, tx.Commit()
}

// set writes the pieces within a transaction that has read the record.
func (s *sqlForUpdate) set(ctx context.Context, tx *sql.Tx, pieces int64) error {
	_, err := tx.ExecContext(ctx, s.dialect.Bind("UPDATE "+s.table+" SET pieces = ?, version = version + 1 WHERE id = 1"), pieces)
	return err
}
