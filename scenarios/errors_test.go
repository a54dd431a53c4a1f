package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/faults"
	"oversell/history"
)

func TestOftenest(t *testing.T) {
	var o mostFrequentError
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
	got := h.Trailer.Unrecovered
	if !strings.Contains(got, "after the last fault was healed; ") || !strings.Contains(got, "ended since then in an error, most often (") || !strings.Contains(got, "buy") || strings.Contains(got, "refused") {
		t.Fatalf("%q, %q", got, h.Trailer.Aborted)
	}
	var since, all int
	fmt.Sscanf(strings.ReplaceAll(got[strings.Index(got, "healed; ")+len("healed; "):], ",", ""), "%d operations", &since)
	for _, note := range h.Trailer.Notes {
		fmt.Sscanf(note, "operations that ended in an error: %d", &all)
	}
	if since == 0 || since >= all {
		t.Errorf("%d of %d errors came after the fault; some came while the server was away: %s", since, all, got)
	}
}

// TestNamesAreInternedOnce checks the keys of locks, and what granted them, as values of the history.
func TestNamesAreInternedOnce(t *testing.T) {
	c := &Client{stage: newStage(Config{}, "run:")}
	for _, name := range []string{c.stage.lock.name, "another", c.stage.lock.name} {
		if got := c.keyOf(name); got != history.Text(name) {
			t.Errorf("%s: key %v", name, got)
		}
	}
	for _, name := range []string{"pub/sub", "poll", "poll", "pub/sub"} {
		if got := c.viaOf(name); got != history.Text(name) {
			t.Errorf("granted by %s: %v", name, got)
		}
	}
}
