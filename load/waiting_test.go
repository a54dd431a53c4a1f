package load

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	const most = 100 * time.Millisecond
	for _, c := range []struct {
		w           Waiting
		least, most time.Duration
	}{
		{Poll, most / 2, most},
		{Fixed, most, most},
		{PubSub, most / 2, most},
	} {
		client := &Client{Rand: rand.New(rand.NewPCG(1, 2))}
		seen := map[time.Duration]bool{}
		for range 50 {
			d := client.pause(c.w, most)
			if seen[d] = true; d < c.least || d > c.most {
				t.Errorf("%s pauses for %v; want %v to %v", c.w, d, c.least, c.most)
			}
		}
		if jitters := c.least < c.most; (len(seen) > 1) != jitters {
			t.Errorf("%s: %d different pauses", c.w, len(seen))
		}
	}
	client := &Client{Rand: rand.New(rand.NewPCG(1, 2))}
	for i, longest := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 100, 100} {
		longest *= time.Millisecond
		if d := client.pause(Exponential, most); d > longest || d < longest/2 {
			t.Errorf("pause %d of exponential is %v; want %v to %v", i+1, d, longest/2, longest)
		}
	}
}

func TestFixedIsAsPrinted(t *testing.T) {
	if w, err := ParseWaiting("fixed"); err != nil || w.DefaultRetry(10_000) != 100*time.Millisecond {
		t.Errorf("fixed: %q, %v, retry every %v; the documents retry every 100 ms", w, err, w.DefaultRetry(10_000))
	}
	if _, err := ParseWaiting("fix"); err == nil {
		t.Error("an unknown strategy was taken")
	}
}
