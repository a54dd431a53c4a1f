package campaign

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/history"
	"oversell/internal/cputime"
	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// diskOps is the number of operations in the histories of BenchmarkCheckFromDisk.
const diskOps = 10_000_000

// BenchmarkCheckFromDisk measures what oversell check does with a history of ten million operations. "cpu-ns/op" is the
// processor time for each operation, of all threads.
func BenchmarkCheckFromDisk(b *testing.B) {
	for _, bench := range []struct {
		name  string
		h     history.Header
		write func(n int, record func(history.Op))
	}{
		{"lock", history.Header{
			Scenario: "mutex", Clients: 100, TTL: 15 * time.Second, Objects: []variant.Object{variant.Lock},
			Promises: []history.Promise{{Of: variant.Lock, Property: variant.MutualExclusion}, {Of: variant.Lock, Property: variant.OwnerOnlyRelease}},
		}, writeLock},
		{"sale", history.Header{
			Scenario: "seckill", Clients: 100, Stock: diskOps / 2, Objects: []variant.Object{variant.Sale},
			Promises: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}},
		}, writeSale},
		{"queue", history.Header{
			Scenario: "queue", Clients: 100, Objects: []variant.Object{variant.Queue},
			Promises: []history.Promise{{Of: variant.Queue, Property: variant.NoDuplicateDelivery}, {Of: variant.Queue, Property: variant.NoLostTask}},
		}, writeQueue},
	} {
		b.Run(fmt.Sprintf("%s/%d", bench.name, diskOps), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), HistoryFile)
			w, err := history.Create(path, bench.h)
			if err != nil {
				b.Fatal(err)
			}
			var ops []history.Op
			bench.write(diskOps, func(op history.Op) {
				if ops = append(ops, op); len(ops) == 4096 {
					w.Append(ops) //nolint:errcheck // Finish returns it
					ops = ops[:0]
				}
			})
			w.Append(ops) //nolint:errcheck // Finish returns it
			if err := w.Finish(history.Trailer{Elapsed: ops[len(ops)-1].Return}); err != nil {
				b.Fatal(err)
			}
			before := cputime.Own()
			defer func() {
				b.ReportMetric(float64(cputime.Own()-before)/float64(b.N)/diskOps, "cpu-ns/op")
			}()
			for b.Loop() {
				d, err := Check(b.Context(), path)
				if err != nil || d.Runs[0].Verdict != "pass" {
					b.Fatalf("%v: %+v", err, d)
				}
			}
		})
	}
}

// writeLock records a lock that a hundred clients take one after the other, each after a refusal.
func writeLock(n int, record func(history.Op)) {
	at := time.Millisecond
	for i := 0; i < n/3; i++ {
		client, next := int32(i%100), int32((i+1)%100)
		session := history.Int(int64(2*i + 1))
		until := at + 15*time.Second
		record(history.Op{Client: client, Kind: history.Acquire, Outcome: history.OK, Key: history.Text("item"), Arg: session, Due: at, Call: at, Return: at + 90_000, Until: until})
		record(history.Op{Client: next, Kind: history.Acquire, Outcome: history.Refused, Reason: history.Held, Key: history.Text("item"), Arg: history.Int(int64(2*i + 2)), Due: at + 95_000, Call: at + 95_000, Return: at + 190_000})
		record(history.Op{Client: client, Kind: history.Release, Outcome: history.OK, Key: history.Text("item"), Arg: session, Due: at + 100_000, Call: at + 100_000, Return: at + 203_000, Until: until})
		at += 210_000
	}
}

// writeSale records a sale that sells out halfway; a hundred orders are under way at a time.
func writeSale(n int, record func(history.Op)) {
	for i := range n {
		ret := time.Millisecond + time.Duration(i)*1000
		op := history.Op{Client: int32(i % 100), Kind: history.Buy, Outcome: history.OK, Key: history.Text("item"), Arg: history.Int(int64(i)), Amount: 1, Due: ret - 90_000, Call: ret - 90_000, Return: ret}
		if op.Result = history.Int(int64(n/2 - i - 1)); i >= n/2 {
			op.Outcome, op.Reason, op.Result = history.Refused, history.SoldOut, history.Int(-1)
		}
		record(op)
	}
}

// writeQueue records tasks that are entered, popped, done and acknowledged.
func writeQueue(n int, record func(history.Op)) {
	task := func(i int, kind history.Kind, at time.Duration) history.Op {
		op := history.Op{Client: int32(i % 50), Kind: kind, Outcome: history.OK, Key: history.Text("queue"), Arg: history.Int(int64(i + 1)), Due: at, Call: at, Return: at + 90_000}
		switch kind {
		case history.Enqueue:
			op.Client += 50
		case history.Pop:
			op.Arg, op.Result, op.Amount, op.Session = history.Value{}, op.Arg, 1, history.Int(int64(i+1))
		case history.Ack:
			op.Session = history.Int(int64(i + 1))
		}
		return op
	}
	n /= 4
	kinds := []history.Kind{history.Enqueue, history.Pop, history.Effect, history.Ack}
	for i := range n + 30 {
		at := time.Millisecond + time.Duration(i)*10_000
		for step := len(kinds) - 1; step >= 0; step-- { // a step follows the one before after 10 tasks
			if j := i - 10*step; j >= 0 && j < n {
				record(task(j, kinds[step], at+time.Duration(len(kinds)-step)*1000))
			}
		}
	}
}

// BenchmarkGoroutineEngine compares a run of the goroutine engine, with recording, with the same sale on bare go-redis:
// 1,000 clients on a pool of 100 connections. The metrics are of the middle of the load: the commands per second, and the
// processor time of a command on the clients' side.
func BenchmarkGoroutineEngine(b *testing.B) {
	const clients, pool, lasts = 1000, 100, 7 * time.Second
	b.Run("bare", func(b *testing.B) {
		addr, _ := servertest.Start(b)
		c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: pool, PipelinePoolSize: -1, MaxRetries: -1, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true})
		defer c.Close()
		lua, _ := stockimpl.Find("lua")
		env := variant.Env{Redis: []redis.UniversalClient{c}, Clock: clock.Real{}}
		if err := lua.New(env, "item").Open(b.Context(), 1<<40); err != nil {
			b.Fatal(err)
		}
		var orders, sold atomic.Int64
		for b.Loop() {
			m := measureLoad(b, sold.Load)
			end := time.Now().Add(lasts)
			var all sync.WaitGroup
			for range clients {
				all.Go(func() {
					for sale := lua.New(env, "item"); time.Now().Before(end); sold.Add(1) {
						if _, err := sale.Buy(b.Context(), stockimpl.Order{ID: orders.Add(1), Quantity: 1}, lockimpl.Lock{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			m.report()
		}
	})
	b.Run("engine", func(b *testing.B) {
		for b.Loop() {
			o, err := Parse([]string{"--lock", "none", "--sale", "lua", "--stock", "1000000000", "--clients", fmt.Sprint(clients), "--pool", fmt.Sprint(pool), "--target", "process", "--duration", lasts.String()})
			if err != nil {
				b.Fatal(err)
			}
			plan, err := NewPlan(b.Context(), *o)
			if err != nil {
				b.Fatal(err)
			}
			plan.Dir = filepath.Join(b.TempDir(), "runs")
			w := &measuring{b: b}
			if _, err := Run(b.Context(), plan, w); err != nil {
				b.Fatal(err)
			}
			w.load.report()
		}
	})
}

// recordedPerOrder is the number of operations that a run records for each order sent: acquire, buy and release. The
// orders that it sends twice sell only once.
const recordedPerOrder = 3

// measuring is a Watcher that measures the load of a run.
type measuring struct {
	silent
	b    *testing.B
	load *measuredLoad
}

func (m *measuring) Start(_, _ int, _ scenarios.Config, live *scenarios.Live) {
	m.load = measureLoad(m.b, func() int64 { return live.Ops.Load() / recordedPerOrder })
}

// measuredLoad is the middle of a load.
type measuredLoad struct {
	b        *testing.B
	done     chan struct{}
	commands int64
	used     time.Duration
	lasted   time.Duration
}

// measureLoad begins to measure a load that lasts seven seconds or longer: from the second to the sixth. sent counts its
// commands.
func measureLoad(b *testing.B, sent func() int64) *measuredLoad {
	m := &measuredLoad{b: b, done: make(chan struct{})}
	seconds := time.NewTicker(time.Second)
	go func() {
		defer close(m.done)
		defer seconds.Stop()
		for range 2 {
			<-seconds.C
		}
		began, before, used := time.Now(), sent(), cputime.Own()
		for range 4 {
			<-seconds.C
		}
		m.commands, m.used, m.lasted = sent()-before, cputime.Own()-used, time.Since(began)
	}()
	return m
}

// report waits for the measurement, and reports it.
func (m *measuredLoad) report() {
	<-m.done
	m.b.ReportMetric(float64(m.commands)/m.lasted.Seconds(), "commands/s")
	m.b.ReportMetric(float64(m.used.Nanoseconds())/1e3/float64(m.commands), "client-cpu-us/command")
}
