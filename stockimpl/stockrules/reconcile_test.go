package stockrules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/stockimpl"
)

// reserving is a sale in memory with reservations, by order, whose buyers died. Its flaw is one of Reconcile or State.
type reserving struct {
	stockimpl.Sale
	now    *time.Duration
	stock  int64
	pieces map[int64]int64
	until  map[int64]time.Duration
	flaw   string
	moved  int // how often pieces came back
}

const lastsFor = 7 * time.Second

func (r *reserving) dies(id, pieces int64) {
	r.pieces[id], r.until[id] = pieces, *r.now+lastsFor
}

func (r *reserving) reserved() (n int64) {
	for _, pieces := range r.pieces {
		n += pieces
	}
	return n
}

func (r *reserving) State(context.Context) (stockimpl.State, error) {
	s := stockimpl.State{Left: r.stock - r.reserved(), Reserved: r.reserved()}
	if r.flaw == "returns pieces twice" {
		s.Left += 2 * int64(r.moved)
	}
	if r.flaw == "State shows nothing" {
		s.Reserved = 0
	}
	return s, nil
}

func (r *reserving) Reconcile(context.Context) (orders int64, err error) {
	for id, until := range r.until {
		switch {
		case r.flaw == "ends ten" && orders == 10, r.flaw == "ends none":
			return orders, nil
		case until > *r.now && !strings.HasPrefix(r.flaw, "ends those that run"):
			continue
		}
		delete(r.pieces, id)
		delete(r.until, id)
		r.moved++
		if until <= *r.now || r.flaw != "ends those that run, uncounted" {
			orders++
		}
	}
	switch r.flaw {
	case "counts pieces":
		return 2 * orders, nil
	case "counts nothing":
		return 0, nil
	}
	return orders, nil
}

// expire ends reservations that are past their deadline.
func (r *reserving) expire() {
	for id, until := range r.until {
		if until <= *r.now {
			delete(r.pieces, id)
			delete(r.until, id)
		}
	}
}

// dying returns what the rules need to know of the sale.
func (r *reserving) dying(pieces int64) *Dying {
	return &Dying{
		Sale: r,
		Dies: func(id int64) { r.dies(id, pieces) },
		Once: func(_ int64, n int) error {
			r.expire() // buyers end reservations, too
			if r.stock-r.reserved() < int64(n) {
				return stockimpl.ErrStale
			}
			return nil
		},
		Holds: func() (string, error) {
			if r.flaw == "sound: keys expire" {
				r.expire()
			}
			return fmt.Sprint(r.pieces, r.moved), nil
		},
	}
}

func newReserving(now *time.Duration, stock int64, flaw string) *reserving {
	return &reserving{now: now, stock: stock, flaw: flaw, pieces: map[int64]int64{}, until: map[int64]time.Duration{}}
}

// TestDue checks that Reconcile must end what is past its deadline, and nothing else, and must count orders.
func TestDue(t *testing.T) {
	for flaw, want := range map[string]string{
		"":                               "",
		"sound: keys expire":             "",
		"ends none":                      "want 4 reserved",
		"ends those that run":            "want 0, as many as are past their deadline",
		"ends those that run, uncounted": "ended reservations that were not past their deadline",
		"counts pieces":                  "6 orders lost their reservation; want 3",
		"counts nothing":                 "0 orders lost their reservation; want 3",
		"returns pieces twice":           "is 26 in all; want 20",
		"State shows nothing":            "left, reserved and sold is 6 in all; want 12",
	} {
		now := time.Duration(0)
		err := Due{Pieces: 2, Pass: func(d time.Duration) { now += d }, Open: func(stock int64) (*Dying, error) {
			return newReserving(&now, stock, flaw).dying(2), nil
		}}.Reconciles(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a sale that %q: %v; want %q", flaw, err, want)
		}
	}
}

// TestDueLasts checks that the time of reservations is found.
func TestDueLasts(t *testing.T) {
	now := time.Duration(0)
	running, over, err := Due{Pieces: 2, Pass: func(d time.Duration) { now += d }, Open: func(stock int64) (*Dying, error) {
		return newReserving(&now, stock, "").dying(2), nil
	}}.lasts(t.Context())
	if err != nil || running >= lastsFor || over < lastsFor || over-running > lastsFor/16 {
		t.Errorf("a reservation of %v runs after %v and is over after %v, %v", lastsFor, running, over, err)
	}
}

// TestReconciledMany checks the number of orders when there are more than a batch.
func TestReconciledMany(t *testing.T) {
	for flaw, want := range map[string]string{"": "", "ends ten": "10 orders lost their reservation, and State then says 10 left, 20 reserved", "counts nothing": "want 30"} {
		now := time.Duration(0)
		r := newReserving(&now, 30, flaw)
		for id := range int64(30) {
			r.dies(id, 1)
		}
		err := Reconciled(t.Context(), r.dying(1), 30, 0, func() error { now += lastsFor; return nil })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a sale that %q: %v; want %q", flaw, err, want)
		}
	}
}

// TestReconciledWithout checks that a sale which is no Reconciler is not judged, and that an error of Reconcile is returned.
func TestReconciledWithout(t *testing.T) {
	now := time.Duration(0)
	r := newReserving(&now, 3, "")
	p := r.dying(1)
	failed := errors.New("no connection")
	if err := Reconciled(t.Context(), p, 0, 0, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the error is %v; want %v", err, failed)
	}
	p.Sale = struct{ stockimpl.Sale }{r}
	if err := Reconciled(t.Context(), p, 5, 0, func() error { return nil }); err != nil {
		t.Errorf("a sale that is no Reconciler: %v", err)
	}
}
