package database

import (
	"context"
	"strings"

	"oversell/internal/errclass"
)

// minPrefix prevents a Sweep that would match other tables.
const minPrefix = 4

// Sweep drops the tables whose names contain prefix, which marks those of one run. It returns how many it dropped,
// also with an error. A prefix shorter than 4 bytes is refused with [ErrUsage].
func (db *DB) Sweep(ctx context.Context, prefix string) (int, error) {
	if len(prefix) < minPrefix {
		return 0, errclass.Usagef("drop the tables of a run: the prefix %q is too short: it could match other tables", prefix)
	}
	names, err := db.Dialect.Tables(ctx, db.DB)
	if err != nil {
		return 0, errclass.Environmentf("list the tables of %s: %s", db.where, reason(err))
	}
	dropped := 0
	for _, name := range names {
		if !strings.Contains(name, prefix) {
			continue
		}
		if _, err := db.ExecContext(ctx, "DROP TABLE IF EXISTS "+db.Dialect.quoted(name)); err != nil {
			return dropped, errclass.Environmentf("drop the table %s of %s: %s", name, db.where, reason(err))
		}
		dropped++
	}
	db.unclaim(prefix)
	return dropped, nil
}
