package server

import (
	"fmt"
	"testing"

	"oversell/internal/servertest"
)

func TestSweepRemovesOnlyOwnKeys(t *testing.T) {
	// The emulation visits all its keys before each command, so it gets fewer; both get more than are removed at once.
	for kind, n := range map[string]int{"embedded": 2*sweptAtOnce + 1, "process": 1500} {
		t.Run(kind, func(t *testing.T) {
			tg := mustOpen(t, Spec{Target: kind, Topology: "masters:2"})
			prefix := `run*[a]?\7:`
			foreign := []string{"Lock:order", "run1", `runXXa?\7:`, `run*a?\7:`, `run*[a]x\7:k`, ""}
			for _, c := range tg.Clients(ConnOptions{}) {
				defer c.Close()
				p := c.Pipeline()
				for i := range n {
					p.Set(t.Context(), fmt.Sprintf("Lock:%sorder:%d", prefix, i), 1, 0)
				}
				for _, k := range foreign {
					p.Set(t.Context(), k, 1, 0)
				}
				if _, err := p.Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := tg.Sweep(t.Context(), prefix); got != 2*n || err != nil {
				t.Errorf("Sweep = %d, %v; want %d", got, err, 2*n)
			}
			for i, c := range tg.Clients(ConnOptions{}) {
				defer c.Close()
				if got := c.Exists(t.Context(), foreign...).Val(); got != int64(len(foreign)) {
					t.Errorf("node %d: %d of %d foreign keys are left", i, got, len(foreign))
				}
				if got := c.DBSize(t.Context()).Val(); got != int64(len(foreign)) {
					t.Errorf("node %d holds %d keys; want the %d foreign ones", i, got, len(foreign))
				}
			}
			_, err := tg.Sweep(t.Context(), "ab")
			servertest.WantError(t, err, ErrUsage, "too short")
		})
	}
}
