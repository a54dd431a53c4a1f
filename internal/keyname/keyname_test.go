package keyname

import (
	"slices"
	"testing"
)

func TestCollisions(t *testing.T) {
	for _, tt := range []struct {
		keys []string
		want []string
	}{
		{[]string{"Queue:a"}, nil},
		{[]string{"Queue:a", "Claimed:Queue:a"}, nil},
		{[]string{"Queue:a", "Queue:a:claims"}, []string{"a:claims"}},
		{[]string{"Queue:a", "Queue:dead:a"}, []string{"dead:a"}},
	} {
		if got := Collisions(tt.keys, "a"); !slices.Equal(got, tt.want) {
			t.Errorf("Collisions(%q) = %q; want %q", tt.keys, got, tt.want)
		}
	}
}
