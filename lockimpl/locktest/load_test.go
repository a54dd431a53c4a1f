package locktest

import (
	"testing"

	"oversell/variant"
)

// TestFoundTwice checks that one promise counts as broken under load only if a second try breaks it, too.
func TestFoundTwice(t *testing.T) {
	order, other := broken(variant.FIFO, "served late"), broken(variant.MutualExclusion, "two held it")
	for name, c := range map[string]struct {
		found, again []error
		kept, tries  int
		once         bool
	}{
		"not found":     {[]error{other}, nil, 1, 0, false},
		"found once":    {[]error{order, other}, []error{other}, 1, 1, true},
		"found twice":   {[]error{other, order}, []error{order}, 2, 1, false},
		"nothing found": {nil, nil, 0, 0, false},
	} {
		tries := 0
		kept, once := foundTwice(variant.FIFO, c.found, func() []error { tries++; return c.again })
		if len(kept) != c.kept || tries != c.tries || (once != nil) != c.once {
			t.Errorf("%s: %v after %d further tries, and left out %v", name, kept, tries, once)
		}
	}
}
