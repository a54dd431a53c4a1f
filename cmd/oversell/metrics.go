package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/variant"
	"oversell/watch"
)

// metrics serves the figures of a campaign to Prometheus while it runs. All runs of the program share the same
// series; oversell_run_info identifies the current one. Its methods are safe for concurrent use.
type metrics struct {
	addr   string // listening address
	server *http.Server

	registry   *prometheus.Registry
	operations *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	sold       prometheus.Gauge
	stock      prometheus.Gauge
	faults     *prometheus.CounterVec
	violations *prometheus.CounterVec
	info       *prometheus.GaugeVec
	runs       *prometheus.CounterVec

	// State of the current run, for one goroutine at a time.
	fired  map[string]int64           // counted so far, by fault
	broken map[history.Promise]bool   // already counted
	kinds  map[history.Kind]kindCount // over all runs
}

// kindCount are the series of one kind of operation.
type kindCount struct {
	outcomes [history.Refused + 1]prometheus.Counter
	duration prometheus.Observer
}

// uncounted are the records that are not operations of clients.
var uncounted = []history.Kind{history.NoKind, history.Fault, history.ReadState, history.Join}

var infoLabels = []string{"run", "runs", "scenario", "lock", "sale", "queue", "ids", "dispatch"}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), kinds: map[history.Kind]kindCount{}}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "oversell", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "oversell", Name: name, Help: help}
	}
	m.operations = counters("operations_total", "Finished operations of clients.", "kind", "outcome")
	m.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "oversell", Name: "operation_duration_seconds",
		Help: "Duration of client operations, from call to answer.", Buckets: prometheus.ExponentialBuckets(100e-6, 2, 18)}, []string{"kind"})
	m.sold = prometheus.NewGauge(gauge("sold_pieces", "Pieces sold in the current run, as buyers were told."))
	m.stock = prometheus.NewGauge(gauge("stock_pieces", "Pieces on sale in the current run."))
	m.faults = counters("faults_fired_total", "Injections of a fault.", "fault")
	m.violations = counters("violations_total", "Violations of promises: 1 as soon as one is found, the rest when the run is judged.", "of", "property")
	m.info = prometheus.NewGaugeVec(gauge("run_info", "The current run."), infoLabels)
	m.runs = counters("runs_total", "Judged runs.", "verdict")
	m.registry.MustRegister(m.operations, m.durations, m.sold, m.stock, m.faults, m.violations, m.info, m.runs)
	for _, verdict := range []string{reports.Pass, reports.Violated, reports.Inconclusive} {
		m.runs.WithLabelValues(verdict) // so that the series start at zero
	}
	return m
}

// serveMetrics serves metrics at an address until they are closed.
func serveMetrics(ctx context.Context, addr string, allowRemote bool) (*metrics, error) {
	addr, err := metricsAddress(ctx, addr, allowRemote)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, environment{fmt.Errorf("serve metrics: %w", err)}
	}
	m := newMetrics()
	m.addr = listener.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	m.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go m.server.Serve(listener) // until it is closed; a later failure does not end a run
	return m, nil
}

// metricsAddress completes an address, and refuses one that is open to other machines.
func metricsAddress(ctx context.Context, addr string, allowRemote bool) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return "", fmt.Errorf("--metrics %q must be like :9090 or 127.0.0.1:9090", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	addr = net.JoinHostPort(host, port)
	if !allowRemote && !opensLocally(ctx, addr) {
		return "", fmt.Errorf("--metrics %s shows the run to other machines; that needs --allow-remote", addr)
	}
	return addr, nil
}

// close stops the server.
func (m *metrics) close() { m.server.Close() }

// start sets the current run.
func (m *metrics) start(a about) {
	m.fired, m.broken = map[string]int64{}, map[history.Promise]bool{}
	c := a.c
	m.info.Reset()
	m.info.WithLabelValues(strconv.Itoa(a.i+1), strconv.Itoa(a.n), c.Scenario.Name, c.Lock.Name, c.Sale.Name, c.Queue.Name, c.IDs.Name, c.Dispatch.Name).Set(1)
	m.stock.Set(0)
	m.sold.Set(0)
	if c.Scenario.Uses(variant.Sale) {
		m.stock.Set(float64(c.Stock))
	}
	for _, f := range c.Faults {
		m.faults.WithLabelValues(printable.Text(f.Text))
	}
	for _, p := range c.Promises() {
		m.violations.WithLabelValues(string(p.Of), string(p.Property))
	}
}

// took counts operations.
func (m *metrics) took(ops []history.Op) {
	for i := range ops {
		op := &ops[i]
		if slices.Contains(uncounted, op.Kind) {
			continue
		}
		k := m.kind(op.Kind)
		k.outcomes[op.Outcome].Inc()
		if op.Reason != history.Stopped {
			k.duration.Observe((op.Return - op.Call).Seconds())
		}
	}
}

// kind returns the series of a kind, looked up once.
func (m *metrics) kind(kind history.Kind) kindCount {
	k, known := m.kinds[kind]
	if !known {
		for o := range k.outcomes {
			k.outcomes[o] = m.operations.WithLabelValues(kind.String(), history.Outcome(o).String())
		}
		k.duration = m.durations.WithLabelValues(kind.String())
		m.kinds[kind] = k
	}
	return k
}

// show updates the series that are not counted from operations.
func (m *metrics) show(f watch.Figures) {
	m.sold.Set(float64(f.Sold))
	fired := map[string]int64{}
	for _, c := range f.Faults {
		fired[c.Name] += c.Fired // the same sentence may be given twice
	}
	for name, n := range fired {
		m.faults.WithLabelValues(printable.Text(name)).Add(float64(n - m.fired[name]))
		m.fired[name] = n
	}
}

// found counts a broken promise.
func (m *metrics) found(v watch.Violation) {
	m.broken[history.Promise{Of: v.Of, Property: v.Property}] = true
	m.violations.WithLabelValues(string(v.Of), string(v.Property)).Inc()
}

// done counts the verdict of a run and the violations that were not counted before.
func (m *metrics) done(r reports.Run) {
	m.runs.WithLabelValues(r.Verdict).Inc()
	for _, p := range r.Properties {
		if p.Result != reports.Broken {
			continue
		}
		n := p.Count
		if m.broken[history.Promise{Of: p.Of, Property: p.Name}] {
			n--
		}
		m.violations.WithLabelValues(string(p.Of), string(p.Name)).Add(float64(max(n, 0)))
	}
}
