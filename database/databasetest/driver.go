package databasetest

import (
	"context"
	"database/sql/driver"
	"strings"
)

// connector opens connections that stop before each statement. Its driver is the real one, so that a variant can
// tell which database it uses.
type connector struct {
	driver.Connector
	client *Client
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	base, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: base, client: c.client}, nil
}

// conn forwards the interfaces that the three drivers implement.
type conn struct {
	driver.Conn
	client *Client
	inTx   bool
}

func (c *conn) hold(ctx context.Context, statement string) error {
	if c.inTx {
		return nil
	}
	word, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	return c.client.park(ctx, strings.ToLower(word))
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.hold(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.hold(ctx, query); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.hold(ctx, "begin"); err != nil {
		return nil, err
	}
	base, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return tx{base, c}, nil
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type tx struct {
	driver.Tx
	conn *conn
}

func (t tx) Commit() error {
	t.conn.inTx = false
	return t.Tx.Commit()
}

func (t tx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}
