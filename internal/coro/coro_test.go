package coro

import (
	"context"
	"strings"
	"testing"
	"time"
)

var epoch = time.Unix(1_700_000_000, 0)

// show returns a request in one line.
func show(r Request) string {
	var b strings.Builder
	switch r.Kind {
	case Command:
		for i, c := range r.Commands {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(strings.Join(c, " "))
		}
		if r.Tx {
			return "tx(" + b.String() + ")"
		}
		return b.String()
	case Clock:
		return "clock"
	case Sleep:
		return "sleep " + r.Until.String()
	case Boundary:
		return "boundary " + r.Label
	}
	return "pause " + r.Label
}

func BenchmarkStartAndClose(b *testing.B) {
	s := &Scripts{}
	for b.Loop() {
		c := Start(func(context.Context, *Runtime) {}, Options{Masters: 1, Scripts: s})
		c.Resume(0, Observation{})
		c.Close()
	}
}

func BenchmarkCrash(b *testing.B) {
	s := &Scripts{}
	for b.Loop() {
		c := Start(func(ctx context.Context, w *Runtime) { w.Env().Redis[0].Get(ctx, "k") }, Options{Masters: 1, Scripts: s})
		c.Resume(0, Observation{})
		c.Close()
	}
}

func BenchmarkCommand(b *testing.B) {
	c := Start(func(ctx context.Context, w *Runtime) {
		for {
			w.Env().Redis[0].Get(ctx, "k")
		}
	}, Options{Masters: 1})
	defer c.Close()
	c.Resume(0, Observation{})
	for b.Loop() {
		if c.Pending()[0].Kind != Command {
			b.Fatal(c.Err())
		}
		c.Resume(0, Observation{Reply: "$1\r\n1\r\n"})
	}
}

func BenchmarkClock(b *testing.B) {
	c := Start(func(ctx context.Context, w *Runtime) {
		for {
			w.Env().Clock.Now()
		}
	}, Options{Masters: 1})
	defer c.Close()
	c.Resume(0, Observation{})
	for b.Loop() {
		c.Resume(0, Observation{Now: 1})
	}
}

func BenchmarkFirstConnection(b *testing.B) {
	for b.Loop() {
		c := Start(func(ctx context.Context, w *Runtime) { w.Env().Redis[0].Get(ctx, "k") }, Options{Masters: 1})
		c.Resume(0, Observation{})
		c.Resume(0, Observation{Reply: "$1\r\n1\r\n"})
		c.Close()
	}
}
