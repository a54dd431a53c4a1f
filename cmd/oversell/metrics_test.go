package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"oversell/checker"
	"oversell/history"
	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/variant"
	"oversell/watch"
)

// scrape returns the metrics at an address.
func scrape(t *testing.T, addr string) string {
	t.Helper()
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", r.Status, err)
	}
	return string(b)
}

// value returns the value of a series, or -1 if there is none.
func value(metrics, series string) float64 {
	for line := range strings.Lines(metrics) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			v, _ := strconv.ParseFloat(text, 64)
			return v
		}
	}
	return -1
}

func TestMetricsCount(t *testing.T) {
	m, err := serveMetrics(t.Context(), ":0", false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if !strings.HasPrefix(m.addr, "127.0.0.1:") {
		t.Errorf("served at %s; want this machine only", m.addr)
	}
	a := seckillOf(500)
	m.start(a)
	m.took([]history.Op{
		{Kind: history.Buy, Outcome: history.OK, Due: time.Second, Call: 2 * time.Second, Return: 3 * time.Second},
		{Kind: history.Buy, Outcome: history.OK, Return: time.Millisecond}, {Kind: history.Buy, Return: time.Millisecond},
		{Kind: history.Acquire, Outcome: history.Refused, Reason: history.Stopped, Return: time.Millisecond},
		{Kind: history.Fault, Outcome: history.OK}, {Kind: history.ReadState, Outcome: history.OK}, {Kind: history.Join, Outcome: history.OK},
	})
	faulty := watch.Figures{Sold: 7, Faults: []history.FaultCount{{Name: "reset 1%", Fired: 2}, {Name: "reset 1%", Fired: 1}}}
	m.show(faulty)
	m.show(faulty)
	m.found(watch.Violation{Verdict: checker.Verdict{Of: variant.Sale, Property: variant.NoOversell, Count: 1}})
	m.done(reports.Run{Verdict: reports.Violated, Properties: []reports.Property{
		{Of: variant.Sale, Name: variant.NoOversell, Result: reports.Broken, Count: 12},
		{Of: variant.Lock, Name: variant.MutualExclusion, Result: reports.Broken, Count: 3},
		{Of: variant.Lock, Name: variant.Progress, Result: reports.NotClaimed, Count: 3},
	}})
	got := scrape(t, m.addr)
	for series, want := range map[string]float64{
		`oversell_operations_total{kind="buy",outcome="ok"}`:          2,
		`oversell_operations_total{kind="buy",outcome="unknown"}`:     1,
		`oversell_operations_total{kind="acquire",outcome="refused"}`: 1,
		`oversell_operation_duration_seconds_count{kind="buy"}`:       3,
		`oversell_operation_duration_seconds_sum{kind="buy"}`:         1.002,
		`oversell_operation_duration_seconds_count{kind="acquire"}`:   0,
		`oversell_sold_pieces`:                                             7,
		`oversell_stock_pieces`:                                            500,
		`oversell_faults_fired_total{fault="reset 1%"}`:                    3,
		`oversell_violations_total{of="sale",property="no-oversell"}`:      12,
		`oversell_violations_total{of="lock",property="mutual-exclusion"}`: 3,
		`oversell_violations_total{of="lock",property="progress"}`:         -1,
		`oversell_runs_total{verdict="violated"}`:                          1,
		`oversell_runs_total{verdict="pass"}`:                              0,
		`oversell_operations_total{kind="fault",outcome="ok"}`:             -1,
		`oversell_run_info{dispatch="",ids="",lock="php-lock-printed",queue="",run="3",runs="20",sale="plain",scenario="seckill"}`: 1,
	} {
		if v := value(got, series); math.Abs(v-want) > 1e-9 {
			t.Errorf("%s is %v; want %v", series, v, want)
		}
	}
	m.start(a) // the next run: its own figures start afresh, counters go on
	m.show(watch.Figures{Faults: []history.FaultCount{{Name: "reset 1%", Fired: 4}}})
	got = scrape(t, m.addr)
	if v := value(got, `oversell_faults_fired_total{fault="reset 1%"}`); v != 7 {
		t.Errorf("faults of two runs: %v; want 7", v)
	}
	if v := value(got, `oversell_sold_pieces`); v != 0 {
		t.Errorf("sold in the next run: %v", v)
	}
	problems, err := promlint.New(strings.NewReader(got)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%+v, %v", problems, err)
	}
}

// lockedBuffer is a buffer that a test can read while the program writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestMetricsOfARun scrapes the metrics while a run goes on, and compares the counters at its end with the document.
func TestMetricsOfARun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout bytes.Buffer
	var stderr lockedBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"run", "--target", "embedded", "--scenario", "mutex", "--lock", "php-lock-printed", "--clients", "8", "--duration", "1h",
			"--json", "--metrics", ":0", "--out", filepath.Join(t.TempDir(), "runs")}, &stdout, &stderr)
	}()
	address := regexp.MustCompile(`metrics at http://([\d.:]+)/metrics`)
	servertest.Await(t, "metrics are served", func() bool { return address.MatchString(stderr.String()) })
	addr := address.FindStringSubmatch(stderr.String())[1]
	var got string
	servertest.Await(t, "a violation is counted", func() bool {
		got = scrape(t, addr)
		return value(got, `oversell_violations_total{of="lock",property="mutual-exclusion"}`) == 1
	})
	counted := value(got, `oversell_operations_total{kind="acquire",outcome="ok"}`)
	if counted < 1 || value(got, `oversell_operation_duration_seconds_count{kind="acquire"}`) < counted {
		t.Errorf("while the run goes on:\n%s", got)
	}
	stop()
	if code := <-ended; code != reports.ExitViolated {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	var d reports.Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) != 1 || float64(d.Runs[0].Acquired) < counted {
		t.Errorf("%v: %d runs; counted %v", err, len(d.Runs), counted)
	}
	if _, err := http.Get("http://" + addr + "/metrics"); err == nil {
		t.Error("metrics are served after the end")
	}
}

func TestMetricsAddresses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, c := range []struct {
		addr string
		code int
		want string
	}{
		{"9090", reports.ExitUsage, "must be like :9090 or 127.0.0.1:9090"},
		{":http", reports.ExitUsage, "must be like :9090"},
		{":65536", reports.ExitUsage, "must be like :9090"},
		{"0.0.0.0:0", reports.ExitUsage, "--allow-remote"},
		{"[::]:0", reports.ExitUsage, "--allow-remote"},
		{busy.Addr().String(), reports.ExitEnvironment, "address already in use"},
	} {
		dir := filepath.Join(t.TempDir(), "runs")
		code, stdout, stderr := cli(t, "run", "--target", "embedded", "--lock", "lua-release", "--metrics", c.addr, "--out", dir)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("--metrics %s: exit %d, %q; want %d and one line that says %q", c.addr, code, stderr, c.code, c.want)
		}
	}
	for _, addr := range []string{"localhost:0", "[::1]:0", "127.0.0.1:0"} {
		if _, err := metricsAddress(t.Context(), addr, false); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if got, err := metricsAddress(t.Context(), "0.0.0.0:1", true); err != nil || got != "0.0.0.0:1" {
		t.Error(got, err)
	}
}
