// Command bench runs the benchmarks that compare oversell with other tools, side by side in one session,
// and prints their results as tables. Absolute figures depend on the machine; compare the ratios.
//
//	go run ./bench [--quick] [--json FILE] [--markdown FILE]
//	go run ./bench --soak 20m [--plot FILE] [flags of oversell run]
//
// It needs the go command and, for the first group, redis-server and redis-benchmark. The benchmarks are in the
// tests of their packages. With --soak it runs oversell for a long time instead, and reports its memory use on
// Linux.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// group is a set of benchmarks that are compared with one another.
type group struct {
	title, about string
	pkg, pattern string
	length       string // see go test -benchtime
	quick        string // the same with --quick; empty: left out
	profiled     string // the benchmark whose CPU time is shown by package; empty: none
}

var groups = []group{
	{
		title: "Driving clients", about: "A cycle of SET NX PX, GET, SET and EVALSHA on keys that are spread. redis-benchmark runs the same commands, one kind after the other.",
		pkg: "./load/mux", pattern: "^BenchmarkCycle$", length: "200000x", quick: "20000x", profiled: "^BenchmarkCycle$/^(redis-benchmark|mux)$/^(50-connections-pipeline-1|10000)$",
	},
	{title: "The goroutine engine", about: "A sale by 1,000 clients on a pool of 100 connections: on bare go-redis, and in a run of oversell, recorded.", pkg: "./campaign", pattern: "^BenchmarkGoroutineEngine$", length: "1x"},
	{title: "Recording", about: "Recording one operation in memory: Record by several clients while the log is swept, RecordAlone by one client.", pkg: "./history", pattern: "^BenchmarkRecord", length: "1s", quick: "100ms"},
	{title: "Judging while a run goes on", about: "What the monitors cost beside the load of 1,000 clients of mux.", pkg: "./watch", pattern: "^BenchmarkJudging$", length: "3x", quick: "1x"},
	{title: "Judging from disk", about: "oversell check of ten million operations.", pkg: "./campaign", pattern: "^BenchmarkCheckFromDisk$", length: "1x"},
	{title: "Judging a lock", about: "Histories of a million operations; porcupine decides the same question of smaller ones.", pkg: "./checker", pattern: "^BenchmarkLock$", length: "3x", quick: "1x"},
	{title: "Judging a sale", about: "The same for a sale.", pkg: "./checker", pattern: "^BenchmarkSale$", length: "3x", quick: "1x"},
	{title: "Judging a queue", about: "The same for a queue.", pkg: "./checker", pattern: "^BenchmarkQueue$", length: "3x", quick: "1x"},
	{title: "Searching", about: "Proofs of the sale that is fenced on read and write.", pkg: "./explore", pattern: "^BenchmarkProof$", length: "1x"},
	{title: "The proxy", about: "Commands through package wire, against the same commands without it.", pkg: "./wire", pattern: "^BenchmarkThroughput$", length: "1s"},
}

func main() {
	quick := flag.Bool("quick", false, "run shorter benchmarks, and leave out the longest")
	asJSON := flag.String("json", "", "write the results to this `file`")
	markdown := flag.String("markdown", "", "write the tables to this `file` in Markdown")
	long := soak{}
	flag.DurationVar(&long.lasts, "soak", 0, "run oversell for this long `time` instead, and watch its memory")
	flag.StringVar(&long.plot, "plot", "", "with --soak, draw the memory to this `file` (SVG)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if long.args = flag.Args(); long.lasts > 0 {
		err = long.run(ctx, os.Stdout)
	} else {
		err = run(ctx, *quick, *asJSON, *markdown)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, asJSON, markdown string) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: bench takes only flags", flag.Arg(0))
	}
	r := report{Machine: machine(ctx), Began: time.Now().UTC().Truncate(time.Second)}
	for _, g := range groups {
		length := g.length
		if quick {
			length = g.quick
		}
		if length == "" {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: go test -bench '%s' %s\n", g.title, g.pattern, g.pkg)
		m, err := g.measure(ctx, length)
		if err != nil {
			return fmt.Errorf("%s: %w", g.title, err)
		}
		r.Groups = append(r.Groups, m)
	}
	r.write(os.Stdout)
	if markdown != "" {
		if err := written(markdown, func(w io.Writer) error { r.write(w); return nil }); err != nil {
			return err
		}
	}
	if asJSON != "" {
		return written(asJSON, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		})
	}
	return nil
}

// written creates a file with the output of write.
func written(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return write(f)
}

// machine describes where the benchmarks ran.
func machine(ctx context.Context) string {
	s := fmt.Sprintf("%d processors, %s, %s/%s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if v := serverVersion(ctx); v != "" {
		s += ", redis-server " + v
	}
	return s
}
