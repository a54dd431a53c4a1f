package phrase

import (
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n    int
		noun string
		want string
	}{
		{1, "grant", "1 grant"}, {0, "grant", "0 grants"}, {1204, "grant", "1,204 grants"},
		{2, "entry", "2 entries"}, {2, "key", "2 keys"}, {2, "crash", "2 crashes"}, {2, "expiry", "2 expiries"},
		{1, "release or extension", "1 release or extension"}, {2, "release or extension", "2 releases and extensions"},
		{2, "number given out", "2 numbers given out"}, {2, "entry into the critical section", "2 entries into the critical section"},
		{2, "end state", "2 end states"}, {2, "opportunity", "2 opportunities"},
	} {
		if got := Count(c.n, c.noun); got != c.want {
			t.Errorf("Count(%d, %q) = %q; want %q", c.n, c.noun, got, c.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine(" a\n\tb  c\r\n"); got != "a b c" {
		t.Errorf("OneLine = %q", got)
	}
}

func TestClock(t *testing.T) {
	for ahead, want := range map[time.Duration]string{time.Hour: "1h0m0s ahead", -time.Minute: "1m0s behind", 0: "right"} {
		if got := Clock(ahead); got != want {
			t.Errorf("Clock(%v) = %q; want %q", ahead, got, want)
		}
	}
}
