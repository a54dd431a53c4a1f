package database

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"oversell/internal/errclass"
	"oversell/internal/guard"
	"oversell/internal/mark"
)

// This file drops the tables of a run even if the program is killed, by a guard process; see package guard. The
// guard can be killed, too. So as long as the program lives, it holds a lock on the server for each run: tables of
// a run whose lock is free are leftovers.

// Claim declares, before they exist, that the tables with prefix in their names belong to this program. Sweep ends
// the claim; if this program ends before, a guard process drops the tables.
func (db *DB) Claim(ctx context.Context, prefix string) error {
	if db.remove != nil {
		return nil // they are removed with the file
	}
	done, err := db.guard.Intend(prefix)
	if err != nil {
		return errclass.Environmentf("claim the tables containing %q: %w", prefix, err)
	}
	h := &sessionLock{pool: db.Pool(unwrapped), kind: db.Kind, prefix: prefix, over: make(chan struct{})}
	if _, err := h.take(ctx); err != nil {
		done()
		_ = h.pool.Close()
		return errclass.Environmentf("claim the tables containing %q in %s: %s", prefix, db.where, reason(err))
	}
	if h.conn != nil {
		h.going.Go(h.stay)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.claims = append(db.claims, claim{prefix, func() { h.end(); done() }})
	return nil
}

// claim is the claim of a run, and what ends it.
type claim struct {
	prefix string
	end    func()
}

// unclaim records that the tables of a run were dropped.
func (db *DB) unclaim(prefix string) {
	db.mu.Lock()
	var over []claim
	db.claims = slices.DeleteFunc(db.claims, func(c claim) bool {
		if c.prefix == prefix {
			over = append(over, c)
		}
		return c.prefix == prefix
	})
	db.mu.Unlock()
	for _, c := range over {
		c.end()
	}
}

// Log sets the directory in which the guard process logs what it had to undo.
func (db *DB) Log(dir string) { db.guard.Log(dir) }

// sessionLock is a lock on the server, on a connection of its own, with which it ends.
type sessionLock struct {
	pool   *sql.DB
	kind   Kind
	prefix string
	conn   *sql.Conn
	over   chan struct{}
	going  sync.WaitGroup
}

// take takes the lock unless another session holds it, and reports whether it did.
func (h *sessionLock) take(ctx context.Context) (free bool, err error) {
	return h.ask(ctx, "SELECT pg_try_advisory_lock($1)", "SELECT GET_LOCK(?, 0) = 1")
}

// look reports whether the lock is free, without taking it even briefly: another program that checks at the same
// time would mistake the leftovers for those of a live run.
func (h *sessionLock) look(ctx context.Context) (free bool, err error) {
	const held = `SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND (classid::bigint << 32 | objid::bigint) = $1)`
	return h.ask(ctx, held, "SELECT IS_FREE_LOCK(?) = 1")
}

// ask queries the server about the lock, and keeps the connection.
func (h *sessionLock) ask(ctx context.Context, postgres, mysql string) (free bool, err error) {
	if h.kind == SQLite {
		return false, nil // SQLite has no such locks
	}
	name := "oversell " + h.prefix
	sum := fnv.New64a()
	sum.Write([]byte(name))
	query, arg := postgres, any(int64(sum.Sum64()))
	if h.kind == MySQL {
		query, arg = mysql, name
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := h.pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	if err := conn.QueryRowContext(ctx, query, arg).Scan(&free); err != nil {
		_ = conn.Close()
		return false, err
	}
	if h.conn != nil {
		_ = h.conn.Close()
	}
	h.conn = conn
	return free, nil
}

// stay takes the lock again after the server has closed the connection.
func (h *sessionLock) stay() {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for held := true; ; {
		select {
		case <-h.over:
			return
		case <-look.C:
		}
		if !held || h.conn.PingContext(context.Background()) != nil {
			held, _ = h.take(context.Background()) // or at the next attempt
		}
	}
}

func (h *sessionLock) end() {
	close(h.over)
	h.going.Wait()
	if h.conn != nil {
		_ = h.conn.Close()
	}
	_ = h.pool.Close()
}

// leftovers drops the tables of runs that were killed together with their guards, or reports them.
func (db *DB) leftovers(ctx context.Context, mend bool) error {
	if db.remove != nil {
		return nil
	}
	names, err := db.Dialect.Tables(ctx, db.DB)
	if err != nil {
		return errclass.Environmentf("list the tables of %s: %s", db.where, reason(err))
	}
	marks := map[string]int{}
	for _, name := range names {
		if m := mark.In.FindString(name); m != "" {
			marks[m]++
		}
	}
	for m, n := range marks {
		if err := db.leftover(ctx, m, n, mend); err != nil {
			return err
		}
	}
	slices.Sort(db.Notes)
	return nil
}

func (db *DB) leftover(ctx context.Context, prefix string, tables int, mend bool) error {
	what := fmt.Sprintf("drop the tables containing %q (%d)", prefix, tables)
	if db.Kind == SQLite {
		db.Notes = append(db.Notes, fmt.Sprintf("%s has tables of a run that may still be in progress: if it is not, %s", db.where, what))
		return nil
	}
	h := &sessionLock{pool: db.Pool(unwrapped), kind: db.Kind, prefix: prefix, over: make(chan struct{})}
	defer h.end()
	ask := h.look
	if mend {
		ask = h.take
	}
	free, err := ask(ctx)
	switch {
	case err != nil:
		return errclass.Environmentf("look for what a run that was killed has left in %s: %s", db.where, reason(err))
	case !free:
		return nil // the run is alive
	case !mend:
		db.Notes = append(db.Notes, fmt.Sprintf("a run that was killed has left tables in %s: add --mend to %s", db.where, what))
		return nil
	}
	if _, err := db.Sweep(ctx, prefix); err != nil {
		return err
	}
	db.Notes = append(db.Notes, "mended what a run that was killed had left: "+what)
	return nil
}

// Undoer is the role of a guard process that drops tables.
const Undoer = "sql"

// described describes a database to a guard process.
type described struct {
	DSN         string `json:"dsn"`
	AllowRemote bool   `json:"allow_remote"`
	Dir         string `json:"dir"` // base directory of relative paths in the DSN
}

// guarded starts a guard process for a database that outlives the program.
func (db *DB) guarded(ctx context.Context, spec Spec) (err error) {
	if db.remove != nil {
		return nil
	}
	d := described{DSN: spec.DSN, AllowRemote: spec.AllowRemote}
	if d.Dir, err = os.Getwd(); err == nil {
		db.guard, err = guard.Start(ctx, Undoer, d)
	}
	if err != nil {
		return errclass.Environmentf("%w", err)
	}
	return nil
}

// NewKeeper creates the Keeper of a guard process whose role is [Undoer]. It is for guard.Serve.
func NewKeeper(hello json.RawMessage) (guard.Keeper, error) {
	var d described
	if err := json.Unmarshal(hello, &d); err != nil {
		return nil, err
	}
	db, err := d.open()
	if err != nil {
		return nil, err
	}
	return &undoing{db: db, prefixes: map[int64]string{}}, nil
}

// open opens the database without connecting. It changes this process's working directory while it resolves files.
func (d described) open() (db *DB, err error) {
	if err := os.Chdir(d.Dir); err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, os.Chdir(string(filepath.Separator))) }()
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	p, err := Spec{DSN: d.DSN, AllowRemote: d.AllowRemote}.plan(ctx)
	if err != nil {
		return nil, err
	}
	return newDB(p)
}

// undoing is the keeper in a guard process.
type undoing struct {
	db *DB

	mu       sync.Mutex
	prefixes map[int64]string
}

// Begin implements guard.Keeper.
func (k *undoing) Begin(_ context.Context, id int64, body json.RawMessage) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var prefix string
	err := json.Unmarshal(body, &prefix)
	k.prefixes[id] = prefix
	return err
}

// End implements guard.Keeper.
func (k *undoing) End(context.Context, int64) {}

// Undo implements guard.Keeper.
func (k *undoing) Undo(ctx context.Context, id int64) (what string, err error) {
	k.mu.Lock()
	prefix := k.prefixes[id]
	k.mu.Unlock()
	what = fmt.Sprintf("drop the tables containing %q in %s", prefix, k.db.where)
	return what, guard.SweepTwice(ctx, func(ctx context.Context) (int, error) { return k.db.Sweep(ctx, prefix) })
}

// Close implements guard.Keeper.
func (k *undoing) Close() { _ = k.db.DB.Close() }

// end ends the claims, and makes the guard drop what is left.
func (db *DB) end() error {
	db.mu.Lock()
	claims := db.claims
	db.claims = nil
	db.mu.Unlock()
	err := db.guard.Close()
	for _, c := range claims {
		c.end()
	}
	if err != nil {
		return errclass.Environmentf("leave %s as it was: %w", db.where, err)
	}
	return nil
}
