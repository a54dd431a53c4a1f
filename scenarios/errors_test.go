package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/faults"
)

func TestOftenest(t *testing.T) {
	var o oftenest
	for i := range 3 {
		o.add(fmt.Errorf("client %d: dial: refused", i))
	}
	o.add(errors.New("another"))
	for i := range 5 {
		o.add(fmt.Errorf("client %d: no stock", i))
	}
	for i := range 1000 {
		o.add(errors.New(strings.Repeat("x", i)))
	}
	if o.all != 1009 || o.top.n != 5 || o.top.first.Error() != "client 0: no stock" || len(o.kinds) > mostKinds {
		t.Errorf("%d, %+v, %d kinds", o.all, o.top, len(o.kinds))
	}
}

// TestLostStockIsTold checks that a run that does not recover quotes an error from after the fault: the stock is gone,
// and the server is not.
func TestLostStockIsTold(t *testing.T) {
	f, err := faults.Parse("kill at 100ms for 100ms")
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, "seckill", "none", "lua")
	c.Faults, c.Stock, c.Clients, c.TTL, c.Timeout = []faults.Fault{f}, 200000, 4, 200*time.Millisecond, 300*time.Millisecond
	h := runOn(t, t.Context(), c, openServer(t, "process", ""))
	if got := h.Trailer.Unrecovered; !strings.Contains(got, "after the last fault was healed; ") || !strings.Contains(got, "ended since then in an error, most often (") || !strings.Contains(got, "buy") || strings.Contains(got, "refused") {
		t.Errorf("%q, %q", got, h.Trailer.Aborted)
	}
}
