package history_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"oversell/clock"
	"oversell/history"
)

// A client records one purchase, and its history file is read back.
func Example() {
	dir, err := os.MkdirTemp("", "history")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "history.bin")

	file, err := history.Create(path, history.Header{Scenario: "seckill", Stock: 100})
	if err != nil {
		panic(err)
	}
	start := time.Now()
	now := clock.NewVirtual(start) // makes the output always the same; elsewhere use NewLog(start)
	log := history.NewLogOn(now, start)
	ctx, stop := context.WithCancel(context.Background())
	drained := make(chan error, 1)
	go func() { drained <- log.DrainEvery(ctx, 100*time.Millisecond, file.Append) }()

	client := log.Recorder(1)
	now.Advance(time.Second)
	op := history.Op{Kind: history.Buy, Key: history.Text("order"), Arg: history.Int(17), Due: time.Second, Call: client.Now()}
	now.Advance(3 * time.Millisecond)
	op.Outcome, op.Return = history.OK, client.Now()
	client.Record(&op)

	stop()
	if err := errors.Join(<-drained, file.Finish(history.Trailer{Elapsed: 2 * time.Second})); err != nil {
		panic(err)
	}

	h, err := history.Read(path)
	if err != nil {
		panic(err)
	}
	fmt.Println(h.Header.Scenario, h.Trailer.Elapsed, h.Ops)
	// Output: seckill 2s [[1s..1.003s] client 1 buy order 17 -> ok]
}
