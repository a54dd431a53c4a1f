package server

import (
	"testing"
	"time"

	"oversell/internal/servertest"
	"oversell/server/instance"
)

// TestUsage checks that the difference between two answers of Usage is what the server did in between.
func TestUsage(t *testing.T) {
	t.Parallel()
	tg := mustOpen(t, Spec{Target: "process"})
	client := tg.Client(0, ConnOptions{})
	defer client.Close()
	before, err := tg.Usage(t.Context(), 1)
	noError(t, err)
	const n = 500
	for range n {
		noError(t, client.Set(t.Context(), "k", "v", 0).Err())
	}
	after, err := tg.Usage(t.Context(), 1)
	noError(t, err)
	if d := after.Commands - before.Commands; d < n || d > n+20 || after.CPU < before.CPU {
		t.Errorf("%d commands more, and %v after %v of CPU; want %d and a few, and not less", d, after.CPU, before.CPU, n)
	}
	if after.Life == "" || after.Life != before.Life {
		t.Errorf("the life of a server is %q, and was %q", after.Life, before.Life)
	}
	noError(t, tg.Kill(1))
	_, err = tg.Usage(t.Context(), 1)
	servertest.WantError(t, err, ErrEnvironment, "ask the server on "+tg.Addrs[0])
}

func TestUsageOfTheEmulation(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "embedded"})
	_, err := tg.Usage(t.Context(), 1)
	servertest.WantError(t, err, ErrUsage, "does not say how much it does")
}

func TestUsageIn(t *testing.T) {
	cpu := instance.ParseInfo("# CPU\r\nused_cpu_sys:1.250000\r\nused_cpu_user:0.500000\r\n")
	stats := instance.ParseInfo("# Stats\r\ntotal_commands_processed:42\r\n")
	if u, ok := usageIn(cpu, stats); !ok || u != (Usage{CPU: 1750 * time.Millisecond, Commands: 42}) {
		t.Errorf("%+v, %v", u, ok)
	}
	if u, ok := usageIn(cpu, cpu); ok {
		t.Errorf("usage was read from an INFO without the number of commands: %+v", u)
	}
}
