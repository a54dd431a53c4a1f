package server

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"

	"oversell/clock"
	"oversell/internal/errclass"
	"oversell/internal/freeport"
	"oversell/server/instance"
	"oversell/server/topology"
)

const embeddedCaveat = "miniredis emulates Redis in memory: its throughput and latency say nothing about Redis, and faults of a server cannot be tried on it"

// OpenEmbedded starts n in-memory emulations that use clk for TIME and for the expiry of keys. Under a clock.Virtual
// nothing expires until the clock is advanced, and then at once. The error is of class [ErrEnvironment], or [ErrUsage]
// if n is not between 1 and [MaxMasters].
func OpenEmbedded(clk clock.Clock, n int) (*Target, error) {
	if n < 1 || n > MaxMasters {
		return nil, errclass.Usagef("start %d emulations: the number of masters must be between 1 and %d", n, MaxMasters)
	}
	t, err := openEmbedded(clk, n, "the in-memory emulation was asked for")
	if err != nil {
		return nil, err
	}
	t.Topology = "single"
	if n > 1 {
		t.Topology = fmt.Sprintf("masters:%d", n)
	}
	return t, nil
}

func openEmbedded(clk clock.Clock, n int, why string) (*Target, error) {
	servers, err := instance.OpenAll(n, func(int) (*instance.Server, error) {
		m := miniredis.NewMiniRedis()
		if err := freeport.Listen(m.StartAddr); err != nil {
			return nil, errclass.Environmentf("start the in-memory emulation: %w", err)
		}
		follow(m, clk)
		s := &instance.Server{Member: Member{Addr: m.Addr(), Role: Master}, Version: embeddedVersion(), Stop: m.Close}
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	t := newTarget(Embedded, topology.NewGroup(servers, false))
	t.shape = &standalone{t}
	t.Caveat = embeddedCaveat
	t.Why = why
	return t, nil
}

// miniredisVersion is the version in go.mod, for binaries without build information, such as tests. A test compares
// them.
const miniredisVersion = "v2.40.0"

// embeddedVersion returns the version of miniredis that was linked in.
func embeddedVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if m.Path == "github.com/alicebob/miniredis/v2" {
				return "miniredis " + m.Version
			}
		}
	}
	return "miniredis " + miniredisVersion
}

// follow makes a started emulation use a clock. The time is set before each command, not by a ticker: a key that is set
// between two ticks would lose the whole interval at the second one, expire before the promised lease, and make a
// correct lock look broken.
//
// Moving the time makes the emulation visit all its keys. So commands that arrive meanwhile share the next visit: a
// command only needs a time not earlier than its own arrival.
func follow(m *miniredis.Miniredis, clk clock.Clock) {
	m.SetTime(clk.Now())
	m.ClockTTL(true)
	var mu sync.Mutex
	var last time.Time
	move := func() {
		arrival := clk.Now()
		mu.Lock()
		defer mu.Unlock()
		if last.Before(arrival) {
			last = clk.Now()
			m.SetTime(last)
			m.DB(0) // any access to a database expires keys in all of them
		}
	}
	correct := &corrections{srv: m.Server()}
	m.Server().SetPreHook(func(p *miniserver.Peer, cmd string, args ...string) bool {
		if insideScript(p) { // its time stands still, and the lock is taken
			return correct.inScript(p, cmd, args)
		}
		move()
		return correct.asScript(p, cmd, args)
	})
}

// insideScript reports whether a script called a command, and not a client. miniredis has no accessor for that, so this
// reads its field; the tests notice if it changes.
func insideScript(p *miniserver.Peer) bool {
	ctx := reflect.ValueOf(p.Ctx)
	if ctx.Kind() != reflect.Pointer || ctx.IsNil() {
		return false
	}
	nested := ctx.Elem().FieldByName("nested")
	return nested.IsValid() && nested.Bool()
}
