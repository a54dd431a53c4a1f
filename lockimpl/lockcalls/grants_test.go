package lockcalls

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

// catches tries all cases on each lock.
func catches(t *testing.T, cases []Case, trials []trial) {
	t.Helper()
	s := opentest.Open(t, server.Spec{Target: "process"})
	for _, tt := range trials {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found := make([]error, len(cases))
			var all sync.WaitGroup
			for i, c := range cases {
				b := bench(t, s, fmt.Sprintf("%s-%d", tt.name, i), tt.lock)
				b.Renews = tt.renews
				all.Go(func() { found[i] = c.Try(b) })
			}
			all.Wait()
			for i, c := range cases {
				if want := slices.Contains(tt.caught, i); (found[i] != nil) != want {
					t.Errorf("%s: the case says %v; want that it finds something: %t", c.Name, found[i], want)
				}
			}
		})
	}
}
