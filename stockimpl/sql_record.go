package stockimpl

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"oversell/database"
	"oversell/variant"
)

// sqlRecord is the common part of all sales on SQL: one product, and a table of its own with a single row, the stock
// record. From record it uses only how an order is carried out, and nothing of Redis.
type sqlRecord struct {
	record
	db      *sql.DB
	dialect database.Dialect
	table   string // quoted
	unfit   error  // why such a table is impossible; every use reports it
}

func newSQLRecord(env variant.Env, product string) sqlRecord {
	r := sqlRecord{record: record{product: product}, db: env.SQL}
	if r.dialect, r.unfit = database.DialectOf(env.SQL); r.unfit == nil {
		r.table, r.unfit = r.dialect.Name("Stock", product)
	}
	return r
}

// stockColumns: pieces are left; version counts the changes. (LEFT is a keyword of SQL.)
const stockColumns = "id BIGINT PRIMARY KEY, pieces BIGINT NOT NULL, version BIGINT NOT NULL"

// Open creates the table with the stock record.
func (r *sqlRecord) Open(ctx context.Context, stock int64) error {
	if stock < 0 {
		return fmt.Errorf("open %q: the stock must not be negative, but is %d", r.product, stock)
	}
	err := r.unfit
	if err == nil {
		err = r.dialect.CreateTable(ctx, r.db, r.table, stockColumns)
	}
	if err == nil {
		err = r.write(ctx, stock)
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", r.product, err)
	}
	return nil
}

// write replaces the stock record.
func (r *sqlRecord) write(ctx context.Context, stock int64) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a Commit it does nothing
	if _, err := tx.ExecContext(ctx, "DELETE FROM "+r.table); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, r.dialect.Bind("INSERT INTO "+r.table+" (id, pieces, version) VALUES (1, ?, 1)"), stock); err != nil {
		return err
	}
	return tx.Commit()
}

// State reads the stock record.
func (r *sqlRecord) State(ctx context.Context) (State, error) {
	left, _, err := r.read(ctx)
	if err != nil {
		return State{}, fmt.Errorf("state of %q: %w", r.product, err)
	}
	return State{Left: left, Sold: Unsaid}, nil
}

func (r *sqlRecord) read(ctx context.Context) (pieces, version int64, err error) {
	if r.unfit != nil {
		return Unsaid, 0, r.unfit
	}
	return r.scan(r.db.QueryRowContext(ctx, r.selectRecord()))
}

// selectRecord returns the statement that reads the stock record.
func (r *sqlRecord) selectRecord() string {
	return "SELECT pieces, version FROM " + r.table + " WHERE id = 1"
}

// scan reads the answer to selectRecord.
func (r *sqlRecord) scan(row *sql.Row) (pieces, version int64, err error) {
	err = row.Scan(&pieces, &version)
	if errors.Is(err, sql.ErrNoRows) || r.dialect.NoTable(err) {
		return Unsaid, 0, errNotOnSale
	}
	return pieces, version, err
}

// update runs UPDATE with this SET and WHERE on the stock record, and reports
// whether it found one to change.
func (r *sqlRecord) update(ctx context.Context, setWhere string, args ...any) (bool, error) {
	if r.unfit != nil {
		return false, r.unfit
	}
	result, err := r.db.ExecContext(ctx, r.dialect.Bind("UPDATE "+r.table+" "+setWhere), args...)
	if r.dialect.NoTable(err) {
		return false, errNotOnSale
	}
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
