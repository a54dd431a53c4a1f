package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"oversell/internal/servertest"
)

func TestKillAndStart(t *testing.T) {
	for _, c := range []struct {
		name           string
		persist, empty bool
		want           string
	}{
		{"forgets without an append-only file", false, false, ""},
		{"keeps with one", true, false, "v"},
		{"forgets when told to", true, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tg := mustOpen(t, Spec{Target: "process", Topology: "masters:2", Persist: c.persist})
			client := tg.Client(1, ConnOptions{})
			defer client.Close()
			if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			pid := tg.PID(1)
			noError(t, tg.Kill(2))
			if running(pid) {
				t.Errorf("process %d still runs", pid)
			}
			if err := client.Get(t.Context(), "k").Err(); err == nil {
				t.Error("a killed server answers")
			}
			servertest.WantError(t, tg.Kill(2), ErrUsage, "server 2 on "+tg.Addrs[1], "was killed before")
			servertest.WantError(t, tg.Freeze(2), ErrUsage, "it was killed")
			wantUnhealthy(t, tg, "server 2 on "+tg.Addrs[1]+" was killed and not started again")
			begin := time.Now()
			noError(t, tg.Start(t.Context(), 2, c.empty))
			t.Logf("started again after %v", time.Since(begin))
			if got := tg.Admin(2).Get(t.Context(), "k").Val(); got != c.want {
				t.Errorf("after the restart the key holds %q; want %q", got, c.want)
			}
			noError(t, tg.AwaitHealthy(soon(t)))
			servertest.WantError(t, tg.Start(t.Context(), 2, false), ErrUsage, "it runs")
			if tg.PID(1) == pid || tg.PID(1) == 0 || tg.Err() != nil {
				t.Errorf("process %d, was %d; the target's error: %v", tg.PID(1), pid, tg.Err())
			}
		})
	}
}

func TestADeathAfterARestartIsNoticed(t *testing.T) {
	t.Parallel()
	servertest.NeedServer(t)
	tg, err := Open(t.Context(), Spec{Target: "process"})
	noError(t, err)
	defer tg.Close()
	noError(t, tg.Kill(1))
	noError(t, tg.Start(t.Context(), 1, false))
	select {
	case <-tg.Done():
		t.Fatal("a death that was asked for ended the target")
	case <-time.After(20 * time.Millisecond):
	}
	noError(t, tg.group.Servers[0].Machine.Kill()) // without the target's knowledge
	<-tg.Done()
	servertest.WantError(t, tg.Err(), ErrEnvironment, "died: signal: killed")
}

func TestFreezeAndThaw(t *testing.T) {
	t.Parallel()
	tg := mustOpen(t, Spec{Target: "process"})
	client := tg.Client(0, ConnOptions{})
	defer client.Close()
	hasty := tg.Client(0, ConnOptions{Timeout: 50 * time.Millisecond})
	defer hasty.Close()
	noError(t, client.Set(t.Context(), "k", "v", 0).Err())
	noError(t, tg.Thaw(1))
	noError(t, tg.Freeze(1))
	if err := hasty.Get(t.Context(), "k").Err(); err == nil {
		t.Error("a frozen server answers")
	}
	servertest.WantError(t, tg.Freeze(1), ErrUsage, "frozen already")
	wantUnhealthy(t, tg, "server 1 on "+tg.Addrs[0]+" is frozen")
	noError(t, tg.Thaw(1))
	noError(t, tg.Thaw(1))
	noError(t, tg.AwaitHealthy(soon(t)))
	if got, err := client.Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("after the thaw: %q, %v", got, err)
	}
	// A frozen server can be killed, and the server that is started in its place is not frozen.
	noError(t, tg.Freeze(1))
	noError(t, tg.Kill(1))
	noError(t, tg.Thaw(1))
	noError(t, tg.Start(t.Context(), 1, false))
	noError(t, tg.AwaitHealthy(soon(t)))
}

func TestCloseWithKilledAndFrozenServers(t *testing.T) {
	t.Parallel()
	tg := mustOpen(t, Spec{Target: "process", Topology: "masters:3"})
	var pids []int
	for i := range 3 {
		pids = append(pids, tg.PID(i))
	}
	noError(t, tg.Kill(1))
	noError(t, tg.Freeze(2))
	begin := time.Now()
	noError(t, tg.Close())
	if d := time.Since(begin); d > time.Second {
		t.Errorf("close took %v", d)
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if err := tg.AwaitHealthy(soon(t)); err == nil {
		t.Error("a closed target is healthy")
	}
	if err := tg.Start(t.Context(), 1, false); err == nil {
		t.Error("a closed target starts servers")
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantUnhealthy checks that AwaitHealthy fails, with an error that contains parts.
func wantUnhealthy(t *testing.T, tg *Target, parts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := tg.AwaitHealthy(ctx)
	servertest.WantError(t, err, ErrEnvironment, parts...)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q does not say that time ran out", err)
	}
}
