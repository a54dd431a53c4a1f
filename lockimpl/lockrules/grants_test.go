package lockrules

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"oversell/lockimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// trial says which of some cases find something in a lock.
type trial struct {
	name   string
	lock   func(variant.Env) lockimpl.Locker
	renews bool
	caught []int // of the cases; none in a sound lock
}

// catches tries all cases on each lock. On a busy machine a flaw may not show at once, so what was not found is looked for
// again, with longer leases.
func catches(t *testing.T, cases []Case, trials []trial) {
	t.Helper()
	s := opentest.Open(t, server.Spec{Target: "process"})
	for _, tt := range trials {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			for i, c := range cases {
				all.Go(func() {
					want := slices.Contains(tt.caught, i)
					var found error
					for try := range 3 {
						b := bench(t, s, fmt.Sprintf("%s-%d-%d", tt.name, i, try), tt.lock)
						b.TTL <<= try
						b.Renews = tt.renews
						if found = c.Try(b); (found != nil) == want || len(tt.caught) == 0 {
							break
						}
					}
					if (found != nil) != want {
						t.Errorf("%s: the case says %v; want that it finds something: %t", c.Name, found, want)
					}
				})
			}
			all.Wait()
		})
	}
}
