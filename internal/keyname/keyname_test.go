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
		{[]string{"Queue:jobs"}, nil},
		{[]string{"Queue:jobs", "Claimed:Queue:jobs"}, nil},
		{[]string{"Queue:jobs", "Queue:jobs:claims"}, []string{"mail:claims"}},
		{[]string{"Queue:jobs", "Queue:dead:jobs"}, []string{"dead:mail"}},
		{[]string{"Queue:{jobs}", "Queue:{jobs}:claims"}, nil},
	} {
		if got := Collisions(tt.keys, "jobs", "mail"); !slices.Equal(got, tt.want) {
			t.Errorf("Collisions(%q) = %q; want %q", tt.keys, got, tt.want)
		}
	}
}
