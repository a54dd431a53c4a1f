package stockrules

import (
	"strings"
	"testing"

	"oversell/stockimpl"
)

// TestShown checks that State must show what is reserved, and may miss what is nowhere between two steps of a purchase.
func TestShown(t *testing.T) {
	for _, tt := range []struct {
		name  string
		at    stockimpl.State
		other error
		sold  int // later
		want  string
	}{
		{"reserved", stockimpl.State{Reserved: 2}, stockimpl.ErrStale, 2, ""},
		{"not yet", stockimpl.State{Left: 2}, nil, 0, ""},
		{"sold", stockimpl.State{Sold: 2}, stockimpl.ErrSoldOut, 0, ""},
		{"sold, and not counted", stockimpl.State{Sold: stockimpl.Unsaid}, stockimpl.ErrSoldOut, 0, ""},
		{"between two steps", stockimpl.State{}, stockimpl.ErrSoldOut, 0, ""},
		{"locked, and lost", stockimpl.State{}, stockimpl.ErrStale, 0, ""},
		{"not shown", stockimpl.State{}, stockimpl.ErrStale, 2, "want 2 reserved"},
		{"not shown, and sold is not counted", stockimpl.State{Sold: stockimpl.Unsaid}, stockimpl.ErrStale, 2, "want 2 reserved"},
		{"counted as left", stockimpl.State{Left: 2, Reserved: 2}, stockimpl.ErrStale, 2, "is 4 in all; want 2"},
		{"orders are counted", stockimpl.State{Reserved: 1}, stockimpl.ErrStale, 2, "is 1 in all; want 2"},
	} {
		err := Middle{Stock: 2, Command: 1, At: tt.at, Other: tt.other, Later: func() (int, error) { return tt.sold, nil }}.Shown()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
}
