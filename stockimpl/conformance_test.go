package stockimpl_test

import (
	"os"
	"testing"

	"oversell/stockimpl"
	"oversell/stockimpl/stocktest"
	"oversell/variant"
)

func TestConformance(t *testing.T) {
	servers := []struct {
		name  string
		start func(*testing.T) string
	}{
		{"redis", startRedis},
		{"miniredis", func(t *testing.T) string { return startMini(t).Addr() }},
	}
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			addr := server.start(t)
			for _, v := range stockimpl.Variants {
				if v.Needs.SQL { // see TestSQLConformance
					continue
				}
				if server.name == "miniredis" && v.Name != "lua" && os.Getenv("OVERSELL_LONG") == "" {
					continue // the test on a real server shows more
				}
				t.Run(v.Name, func(t *testing.T) {
					stocktest.Run(t, v, func(t *testing.T) stocktest.Bench {
						return stocktest.Bench{
							Env:     func() variant.Env { return world(t, addr) },
							Product: newProduct(),
						}
					})
				})
			}
		})
	}
}
