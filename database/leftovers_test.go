package database_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"oversell/database"
	"oversell/database/databasetest"
	"oversell/internal/mark"
)

// TestLeftoversAreDroppedWhileOthersLook checks that programs that only look for leftovers do not keep another program
// from dropping them, and that the tables of a run that still lives are kept.
func TestLeftoversAreDroppedWhileOthersLook(t *testing.T) {
	for _, kind := range databasetest.Kinds {
		if kind == databasetest.SQLite {
			continue // no leftovers are dropped: they look like the tables of a run
		}
		t.Run(kind, func(t *testing.T) {
			db := servers.Open(t, kind)
			lives := mark.New()
			if err := db.Claim(t.Context(), lives); err != nil {
				t.Fatal(err)
			}
			if err := db.Dialect.CreateTable(t.Context(), db.DB, name(t, db, "Pool", lives+"pool"), "id BIGINT PRIMARY KEY"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var looking sync.WaitGroup
			for range 4 {
				looking.Go(func() {
					for ctx.Err() == nil {
						if other, err := database.Open(ctx, database.Spec{DSN: servers.DSN(t, kind)}); err == nil {
							other.Close()
						}
					}
				})
			}
			for range 4 {
				left := mark.New()
				if err := db.Dialect.CreateTable(t.Context(), db.DB, name(t, db, "Pool", left+"pool"), "id BIGINT PRIMARY KEY"); err != nil {
					t.Fatal(err)
				}
				mending, err := database.Open(t.Context(), database.Spec{DSN: servers.DSN(t, kind), Mend: true})
				if err != nil {
					t.Fatal(err)
				}
				if said := strings.Join(mending.Notes, "\n"); !strings.Contains(said, "mended") || !strings.Contains(said, left) || strings.Contains(said, lives) {
					t.Errorf("it says %q; want that %s was mended", said, left)
				}
				mending.Close()
			}
			cancel()
			looking.Wait()
			if n, err := db.Sweep(t.Context(), lives); err != nil || n != 1 {
				t.Errorf("%d tables of a run that lives are left, %v; want 1", n, err)
			}
		})
	}
}
