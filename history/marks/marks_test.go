package marks

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestMarker checks that the marks of a file cover all of its operations in order, that there are no more than Most, and that each
// has the earliest call and return of its group and all later ones.
func TestMarker(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := Marker{Least: 1 + r.IntN(20), Most: 2 + r.IntN(9)}
		var frames []Mark
		ops := 0
		for range r.IntN(100) {
			f := Mark{1 + r.IntN(30), time.Duration(r.IntN(1000)), time.Duration(r.IntN(1000))}
			frames = append(frames, f)
			m.Add(f)
			ops += f.Ops
		}
		got := Of(m.Numbers(), ops)
		if len(got) > m.Most || len(frames) > 0 && got == nil {
			t.Fatalf("seed %d: %d marks of %d frames; want %d at most", seed, len(got), len(frames), m.Most)
		}
		for _, mark := range got {
			want := Mark{0, frames[0].Called, frames[0].Returned}
			for _, f := range frames {
				want.Called, want.Returned = min(want.Called, f.Called), min(want.Returned, f.Returned)
			}
			for want.Ops < mark.Ops {
				want.Ops += frames[0].Ops
				frames = frames[1:]
			}
			if mark != want {
				t.Fatalf("seed %d: %+v; want %+v", seed, mark, want)
			}
		}
		if len(frames) > 0 {
			t.Fatalf("seed %d: %d frames are not covered", seed, len(frames))
		}
	}
}

// TestOf checks that numbers are refused that cannot be marks.
func TestOf(t *testing.T) {
	for text, tt := range map[string]struct {
		numbers []int64
		ops     int
		marks   int
	}{
		"two marks":             {[]int64{3, 1, 2, 4, 1, 5}, 7, 2},
		"nothing":               {nil, 0, 0},
		"none of some":          {nil, 3, 0},
		"too few operations":    {[]int64{3, 1, 2, 4, 1, 5}, 8, 0},
		"too many":              {[]int64{3, 1, 2, 4, 1, 5}, 6, 0},
		"a number missing":      {[]int64{3, 1, 2, 4, 1}, 7, 0},
		"no operations":         {[]int64{0, 1, 2, 7, 1, 5}, 7, 0},
		"fewer than none":       {[]int64{-1, 1, 2, 8, 1, 5}, 7, 0},
		"a call that is sooner": {[]int64{3, 1, 2, 4, 0, 5}, 7, 0},
		"a return that is":      {[]int64{3, 1, 2, 4, 1, 1}, 7, 0},
		"more than an int":      {[]int64{1 << 62, 1, 2, 1 << 62, 1, 5, 1 << 62, 1, 5}, 7, 0},
	} {
		if got := Of(tt.numbers, tt.ops); len(got) != tt.marks {
			t.Errorf("%s: %s; want %d marks", text, fmt.Sprint(got), tt.marks)
		}
	}
}
