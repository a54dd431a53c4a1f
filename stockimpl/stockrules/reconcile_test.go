package stockrules

import (
	"context"
	"strings"
	"testing"

	"oversell/stockimpl"
)

// reconciling is a sale with pieces that are set aside. Reconcile returns up to most of them, and the number says.
type reconciling struct {
	stockimpl.Sale
	aside, most, says int64
	hides             bool // State does not count them
}

func (r *reconciling) State(context.Context) (stockimpl.State, error) {
	if r.hides {
		return stockimpl.State{}, nil
	}
	return stockimpl.State{Reserved: r.aside}, nil
}

func (r *reconciling) Reconcile(context.Context) (int64, error) {
	r.aside -= min(r.aside, r.most)
	return r.says, nil
}

func TestReconciled(t *testing.T) {
	for _, tt := range []struct {
		name string
		sale stockimpl.Sale
		want string
	}{
		{"all", &reconciling{aside: 30, most: 30, says: 30}, ""},
		{"ten at most", &reconciling{aside: 30, most: 10, says: 10}, "want nothing reserved"},
		{"another number", &reconciling{aside: 30, most: 30, says: 0}, "want 30"},
		{"State does not count them", &reconciling{aside: 30, most: 30, says: 30, hides: true}, ""},
		{"no Reconciler", struct{ stockimpl.Sale }{&reconciling{aside: 30}}, ""},
	} {
		if err := Reconciled(t.Context(), tt.sale); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
}
