package dispatchimpl

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// The columns. holder 0 means that no user has the task; until is the end of the
// hold in nanoseconds of Unix time; task 0 means that the user has none.
const (
	taskColumns = "id BIGINT PRIMARY KEY, category %s NOT NULL, commits BIGINT NOT NULL, holder BIGINT NOT NULL, until BIGINT NOT NULL, fence BIGINT NOT NULL"
	userColumns = "id BIGINT PRIMARY KEY, task BIGINT NOT NULL"
	likeColumns = "id BIGINT NOT NULL, category %s NOT NULL, PRIMARY KEY (id, category)"
)

// maxCategory is the length, in bytes, of a category's name.
const maxCategory = 128

func (p *table) Open(ctx context.Context, tasks []Task, users []User) error {
	err := p.unfit
	if err == nil {
		err = check(tasks, users)
	}
	if err == nil {
		err = p.create(ctx)
	}
	if err == nil {
		err = p.inTx(ctx, func(tx *sql.Tx) error { return p.fill(ctx, tx, tasks, users) })
	}
	return p.failed("open", err)
}

// check refuses tasks and users that could not be distinguished later.
func check(tasks []Task, users []User) error {
	seen := map[int64]bool{}
	for _, t := range tasks {
		if err := checkID("task", t.ID, seen); err != nil {
			return err
		}
		if err := checkCategory("task", t.ID, t.Category); err != nil {
			return err
		}
	}
	clear(seen)
	for _, u := range users {
		if err := checkID("user", u.ID, seen); err != nil {
			return err
		}
		liked := map[string]bool{}
		for _, c := range u.Likes {
			if err := checkCategory("user", u.ID, c); err != nil {
				return err
			}
			if liked[c] {
				return fmt.Errorf("user %d likes %q twice", u.ID, c)
			}
			liked[c] = true
		}
	}
	return nil
}

func checkID(what string, id int64, seen map[int64]bool) error {
	switch {
	case id <= 0:
		return fmt.Errorf("%s %d: the id must be positive", what, id)
	case seen[id]:
		return fmt.Errorf("%s %d is there twice", what, id)
	}
	seen[id] = true
	return nil
}

func checkCategory(what string, id int64, category string) error {
	if len(category) > maxCategory {
		return fmt.Errorf("%s %d: a category of %d bytes; at most %d are possible", what, id, len(category), maxCategory)
	}
	return nil
}

func (p *table) create(ctx context.Context) error {
	for _, t := range []struct{ name, columns string }{
		{p.tasks, fmt.Sprintf(taskColumns, p.dialect.Text)},
		{p.users, userColumns},
		{p.likes, fmt.Sprintf(likeColumns, p.dialect.Text)},
	} {
		if err := p.dialect.CreateTable(ctx, p.db, t.name, t.columns); err != nil {
			return err
		}
	}
	// Without it, every search for candidates reads all finished tasks.
	_, err := p.db.ExecContext(ctx, "CREATE INDEX "+p.index+" ON "+p.tasks+" (commits, holder, id)")
	return err
}

func (p *table) fill(ctx context.Context, tx *sql.Tx, tasks []Task, users []User) error {
	rows := inserter{p: p, ctx: ctx, tx: tx}
	for _, t := range tasks {
		rows.add(p.tasks, t.ID, t.Category, 0, 0, 0, 0)
	}
	for _, u := range users {
		rows.add(p.users, u.ID, 0)
	}
	for _, u := range users {
		for _, c := range u.Likes {
			rows.add(p.likes, u.ID, c)
		}
	}
	rows.flush()
	return rows.err
}

// inserter inserts many rows in few statements.
type inserter struct {
	p   *table
	ctx context.Context
	tx  *sql.Tx

	into string
	rows []string
	args []any
	err  error // the first
}

// maxRows is how many rows go into one statement.
const maxRows = 200

func (i *inserter) add(into string, values ...any) {
	if into != i.into || len(i.rows) == maxRows {
		i.flush()
	}
	i.into = into
	i.rows = append(i.rows, "("+strings.Repeat("?, ", len(values)-1)+"?)")
	i.args = append(i.args, values...)
}

func (i *inserter) flush() {
	if i.err == nil && len(i.rows) > 0 {
		_, i.err = i.p.change(i.ctx, i.tx, "INSERT INTO "+i.into+" VALUES "+strings.Join(i.rows, ", "), i.args...)
	}
	i.rows, i.args = i.rows[:0], i.args[:0]
}
