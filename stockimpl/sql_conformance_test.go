package stockimpl_test

import (
	"os"
	"testing"

	"oversell/clock"
	"oversell/database"
	"oversell/database/databasetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stocktest"
	"oversell/variant"
)

var sqlServers databasetest.Servers // started on first use

func TestMain(m *testing.M) { os.Exit(sqlServers.Run(m)) }

// onSQL runs a test on every kind of database.
func onSQL(t *testing.T, do func(t *testing.T, db *database.DB)) {
	t.Helper()
	for _, kind := range databasetest.Kinds {
		t.Run(kind, func(t *testing.T) { do(t, sqlServers.Open(t, kind)) })
	}
}

// sqlSales returns the sales that need SQL.
func sqlSales() []stockimpl.Variant {
	var sales []stockimpl.Variant
	for _, v := range stockimpl.Variants {
		if v.Needs.SQL {
			sales = append(sales, v)
		}
	}
	return sales
}

func sqlWorld(db *database.DB) variant.Env { return variant.Env{SQL: db.DB, Clock: clock.Real{}} }

func TestSQLConformance(t *testing.T) {
	onSQL(t, func(t *testing.T, db *database.DB) {
		for _, v := range sqlSales() {
			t.Run(v.Name, func(t *testing.T) {
				stocktest.Run(t, v, func(t *testing.T) stocktest.Bench {
					return stocktest.Bench{
						Env:     func() variant.Env { return sqlWorld(db) },
						Product: newProduct(),
					}
				})
			})
		}
	})
}
