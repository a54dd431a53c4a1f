package faults

import (
	"context"
	"testing"
	"time"

	"oversell/clock"
	"oversell/server"
)

// TestStoppedWhileItTakesEffect checks the count of an injection that the end of the run stops, before and after it has
// begun to take effect.
func TestStoppedWhileItTakesEffect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		begun  bool
		failed string
		partly int64
	}{
		{"before", false, "the run ended before it could fire", 0},
		{"within", true, "the run ended while it took effect", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tg, err := server.OpenEmbedded(clock.Real{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer tg.Close()
			f, err := Parse("script-flush at 1ms")
			if err != nil {
				t.Fatal(err)
			}
			injecting, healed, told := make(chan struct{}), false, 0
			f.Kind.Inject = func(ctx context.Context, _ Fault, _ Site) (func(context.Context) error, error) {
				close(injecting)
				<-ctx.Done()
				if !tt.begun {
					return nil, ctx.Err()
				}
				return func(context.Context) error { healed = true; return nil }, ctx.Err()
			}
			in, err := New(t.Context(), Options{Seed: 1, Target: tg, Faults: []Fault{f}, Record: func(Injection) { told++ }})
			if err != nil {
				t.Fatal(err)
			}
			in.Start()
			<-injecting
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			c := in.Counts()[0]
			if c.Fired != 0 || c.Partly != tt.partly || c.Failed != tt.failed || told != int(tt.partly) || healed != tt.begun {
				t.Errorf("%+v, told %d times, healed: %t; want it in part: %d, and %q", c, told, healed, tt.partly, tt.failed)
			}
		})
	}
}

// TestDueAtTheEnd checks that a fault with a period does not owe the injection that the end of the run prevents, if it has
// fired before.
func TestDueAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		begun  bool // the last injection has begun to take effect
		vain   bool // the first had no effect
		partly int64
		every  time.Duration
	}{
		{"before", false, false, 0, time.Millisecond},
		{"within", true, false, 1, time.Millisecond},
		{"the first in vain", false, true, 0, time.Millisecond},
		{"the next is due when the run ends", false, false, 0, time.Microsecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tg, err := server.OpenEmbedded(clock.Real{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer tg.Close()
			f, err := Parse("script-flush every 1ms")
			if err != nil {
				t.Fatal(err)
			}
			f.When.Every = tt.every
			times, last := 0, make(chan struct{})
			f.Kind.Inject = func(ctx context.Context, _ Fault, site Site) (func(context.Context) error, error) {
				times++
				if times == 1 {
					if tt.vain {
						site.Vain("there was nothing to do")
					}
					return nil, nil
				}
				if times > 2 {
					t.Error("the fault was injected again after the end of the run")
					return nil, nil
				}
				close(last)
				<-ctx.Done()
				if tt.begun {
					return func(context.Context) error { return nil }, ctx.Err()
				}
				return nil, ctx.Err()
			}
			in, err := New(t.Context(), Options{Seed: 1, Target: tg, Faults: []Fault{f}, Record: func(Injection) {}})
			if err != nil {
				t.Fatal(err)
			}
			in.Start()
			<-last
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if c := in.Counts()[0]; (c.Fired == 1) == tt.vain || (c.Vain == 1) != tt.vain || c.Partly != tt.partly || c.Failed != "" {
				t.Errorf("%+v; want one injection and no failure", c)
			}
		})
	}
}

// TestFaultThatWasOverBeforeItsHealing checks that an injection ends when the fault was over, not when healing returns.
func TestFaultThatWasOverBeforeItsHealing(t *testing.T) {
	t.Parallel()
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	f, err := Parse("script-flush at 1ms")
	if err != nil {
		t.Fatal(err)
	}
	var over, injected time.Time
	f.Kind.Inject = func(_ context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		injected = time.Now()
		return func(context.Context) error {
			over = time.Now()
			on.Over(over)
			for time.Since(over) < 20*time.Millisecond { // the server is well meanwhile
			}
			return nil
		}, nil
	}
	var told []Injection
	in, err := New(t.Context(), Options{Seed: 1, Target: tg, Faults: []Fault{f}, Record: func(s Injection) { told = append(told, s) }})
	if err != nil {
		t.Fatal(err)
	}
	in.Start()
	<-in.Settled()
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if len(told) != 1 || told[0].To-told[0].From > over.Sub(injected)+10*time.Millisecond || told[0].Until != told[0].To {
		t.Errorf("%+v; it was over %v after its injection", told, over.Sub(injected))
	}
}
