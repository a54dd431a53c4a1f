package locktest

import (
	"testing"
	"time"

	"oversell/lockimpl/lockclient"
)

// TestSlow checks that the longest call of a bench is found, also if a client of one of its parts made it, and is closed.
func TestSlow(t *testing.T) {
	b := &bench{closed: lockclient.Call{What: "a call", Took: time.Second}}
	b.with("part").with("part of it").closed = lockclient.Call{What: "a longer call", Took: 2 * time.Second}
	b.with("another part").closed = lockclient.Call{What: "a short call", Took: time.Millisecond}
	if what, took := b.Slow(); what != "a longer call" || took != 2*time.Second {
		t.Errorf("the longest call is %q, %v; want the longer call", what, took)
	}
}
