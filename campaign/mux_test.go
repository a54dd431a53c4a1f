package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"oversell/internal/errclass"
	"oversell/internal/servertest"
	"oversell/variant"
)

// muxCells show that clients of the engine mux meet, and that sound variants stay sound with it, in every scenario
// that it can run.
var muxCells = []Cell{
	breaks(variant.Sale, variant.NoOversell, "--lock", "none", "--sale", "plain"),
	breaks(variant.Lock, variant.MutualExclusion, "--scenario", "mutex", "--lock", "php-lock-printed", "--clients", "500"),
	breaks(variant.Lock, variant.MutualExclusion, "--scenario", "mutex", "--lock", "set-nx-ex", "--ttl", "1s", "--hold", "1200ms", "--clients", "8", "--duration", "4s", "--fault", "pause holder 1500ms 50%"),
	breaks(variant.IDs, variant.UniqueIDs, "--scenario", "ids", "--lock", "none", "--ids", "get-set", "--ops", "500"),
	breaks(variant.IDs, variant.UniqueIDs, "--scenario", "floors", "--lock", "none", "--ids", "get-set", "--ops", "500"),
	breaks(variant.Queue, variant.NoDuplicateDelivery, "--scenario", "queue", "--queue", "zset-locked", "--lock", "none", "--ops", "300"),
	breaks(variant.Lock, variant.Progress, "--scenario", "mutex", "--lock", "setnx-expire", "--ttl", "1s", "--fault", "crash before EXPIRE nth 5"),
	sound(variant.Lock, variant.MutualExclusion, "--scenario", "mutex", "--lock", "lua-release", "--clients", "500"),
	sound(variant.Lock, variant.MutualExclusion, "--scenario", "mutex", "--lock", "watchdog", "--ttl", "300ms", "--hold", "500ms", "--duration", "3s"),
	sound(variant.Lock, variant.MutualExclusion, "--scenario", "mutex", "--lock", "redlock", "--topology", "masters:5"),
	sound(variant.Lock, variant.FIFO, "--scenario", "mutex", "--lock", "fair", "--clients", "16"),   // few enough that each comes again on a slow machine
	sound(variant.Sale, variant.NoOversell, "--lock", "none", "--sale", "lua", "--clients", "1000"), // some orders are sent twice at once
	sound(variant.Sale, variant.NoOversell, "--lock", "none", "--sale", "watch"),
	sound(variant.Sale, variant.NoOversell, "--lock", "lua-release", "--sale", "plain", "--stock", "100", "--fault", "crash holder 10% times 2", "--ttl", "1s"),
	sound(variant.Sale, variant.NoOversell, "--lock", "lua-release", "--sale", "lua", "--fault", "drop-reply EVAL 20% times 3"),
	sound(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--queue", "reliable", "--ops", "300"),
	sound(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--queue", "streams", "--ops", "300"),
	sound(variant.Sale, variant.NoOversell, "--scenario", "seckill-queued", "--queue", "reliable", "--sale", "lua", "--stock", "200"),
}

// sound returns a cell in which no promise at all may be broken.
func sound(of variant.Object, p variant.Property, args ...string) Cell {
	c := holds(of, p, args...)
	c.Whole = true
	return c
}

// TestMux checks that planted flaws are caught with the engine mux, and that sound variants pass. With OVERSELL_LONG
// it also runs every cell of the known failures.
func TestMux(t *testing.T) {
	servertest.NeedServer(t)
	cells := slices.Clone(muxCells)
	if os.Getenv("OVERSELL_LONG") != "" {
		for _, f := range Failures {
			cells = append(cells, f.Cells...)
		}
	}
	for i, c := range cells {
		c.Args = append(slices.Clone(c.Args), "--engine", "mux")
		t.Run(fmt.Sprintf("%d %s", i+1, strings.ReplaceAll(strings.Join(c.Args, " "), "/", "-")), func(t *testing.T) {
			t.Parallel()
			if why := refusedByMux(t, c); why != "" {
				t.Log("refused, as it should be: ", why)
				return
			}
			r := judgeCell(t, c, 1, true)
			if r.Engine != "mux" || r.Pipelines == 0 || r.Intervals.Commands == nil || r.RTT == 0 {
				t.Errorf("the report does not tell of the engine: %q, %d pipelines, %v, round trips of %v ms", r.Engine, r.Pipelines, r.Intervals.Commands, r.RTT)
			}
		})
	}
}

// refusedByMux returns why the engine cannot run a cell, or "" if it can.
func refusedByMux(t *testing.T, c Cell) string {
	t.Helper()
	o, err := Parse(append(slices.Clone(c.Args), "--target", "process"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = NewPlan(context.Background(), *o); err == nil || !strings.Contains(err.Error(), "--engine mux") {
		return ""
	}
	return err.Error()
}

// TestMuxRefuses checks that runs that cannot be multiplexed are refused before anything starts, in one line.
func TestMuxRefuses(t *testing.T) {
	for _, args := range []string{
		"--lock lua-release --engine mux --pool 8",
		"--lock lua-release --engine mux --waiting pubsub",
		"--lock lua-release --engine mux --topology cluster",
		"--lock lua-release --engine mux --sale sql-plain",
		"--lock lua-release --scenario dispatch --engine mux",
		"--lock lua-release --engine mux --fault=reset@client",
		"--lock lua-release --engine mux --rtt 2m",
		"--lock lua-release --rtt 4ms",
		"--lock lua-release --rtt 0",
		"--lock lua-release --engine coroutine",
	} {
		words := strings.Fields(args)
		for i, w := range words {
			if w == "--fault=reset@client" {
				words[i] = "--fault=reset client 3 EVAL"
			}
		}
		o, err := Parse(append(words, "--target", "process"))
		if err == nil {
			_, err = NewPlan(t.Context(), *o)
		}
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "mux") && !strings.Contains(err.Error(), "--rtt") {
			t.Errorf("%s: %v", args, err)
		}
		if errors.Is(err, errclass.ErrEnvironment) {
			t.Errorf("%s: %v blames the environment", args, err)
		}
	}
}
