package dispatchimpl

import (
	"context"
	"fmt"
)

// overdue is a hold past the limit.
type overdue struct{ task, holder, until int64 }

func (p *table) Expire(ctx context.Context) (int, error) {
	n, err := p.expire(ctx)
	return n, p.failed("take back the tasks", err)
}

// expire looks for overdue holds without blocking other clients, and then takes back one at a time, if it is still the
// same hold. The user's row is then out of date, which does no harm.
func (p *table) expire(ctx context.Context) (returned int, err error) {
	if p.unfit != nil {
		return 0, p.unfit
	}
	late, err := p.late(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range late {
		ok, err := p.change(ctx, p.db, "UPDATE "+p.tasks+" SET holder = 0, until = 0 WHERE id = ? AND holder = ? AND until = ?", o.task, o.holder, o.until)
		if err != nil {
			return returned, err
		}
		if ok {
			returned++
		}
	}
	return returned, nil
}

func (p *table) late(ctx context.Context) (late []overdue, err error) {
	rows, err := p.db.QueryContext(ctx, p.dialect.Bind("SELECT id, holder, until FROM "+p.tasks+" WHERE holder <> 0 AND until <= ? ORDER BY id"),
		p.env.Clock.Now().UnixNano())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o overdue
		if err := rows.Scan(&o.task, &o.holder, &o.until); err != nil {
			return nil, err
		}
		late = append(late, o)
	}
	return late, rows.Err()
}

func (p *table) State(ctx context.Context) (State, error) {
	var s State
	err := p.unfit
	if err == nil {
		err = p.db.QueryRowContext(ctx, "SELECT COALESCE(SUM(CASE WHEN commits = 0 AND holder = 0 THEN 1 ELSE 0 END), 0),"+
			" COALESCE(SUM(CASE WHEN commits = 0 AND holder <> 0 THEN 1 ELSE 0 END), 0),"+
			" COALESCE(SUM(CASE WHEN commits > 0 THEN 1 ELSE 0 END), 0),"+
			" COALESCE(SUM(commits), 0) FROM "+p.tasks).Scan(&s.Free, &s.Held, &s.Done, &s.Commits)
	}
	if err != nil {
		return State{}, p.failed("state", fmt.Errorf("read: %w", err))
	}
	return s, nil
}
