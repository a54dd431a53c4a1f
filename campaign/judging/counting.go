package judging

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// counting collects statistics that the monitors do not, in one pass over the history.
type counting struct {
	latencies *reports.Latencies
	widths    *hdrhistogram.Histogram // of the intervals, in nanoseconds
	ops       int
	returned  int64 // pieces
	// products lists the ordered products; each started with the stock of the header.
	products map[history.Value]bool
	product  history.Value // the last one
	// Contended reports whether operations of two clients ever overlapped.
	Contended bool

	kind     history.Kind // the clients' main operation
	done     int64        // how many of these
	last     time.Duration
	began    time.Duration
	requests *Requests

	before struct { // the previous operation
		any    bool
		client int32
		kind   history.Kind
		ret    time.Duration
	}
}

// NewCounting returns a counter for h.
func NewCounting(h *history.History) *counting {
	kind, _ := WorkIn(h.Header.Has)
	return &counting{
		latencies: reports.NewLatencies(), widths: hdrhistogram.New(1, int64(24*time.Hour), 3), products: map[history.Value]bool{}, kind: kind, began: history.Forever,
		requests: NewRequests(kind),
	}
}

func (t *counting) Read(ops []history.Op) {
	for i := range ops {
		t.observe(&ops[i])
	}
}

func (t *counting) observe(op *history.Op) {
	t.meets(op)
	if op.Kind == history.Buy && (op.Key != t.product || len(t.products) == 0) {
		t.product, t.products[op.Key] = op.Key, true
	}
	if !Measured(op) {
		return
	}
	t.ops++
	t.began = min(t.began, op.Call)
	t.latencies.Add(op)
	if op.Outcome != history.Unknown {
		t.widths.RecordValue(int64(op.Return - op.Call)) //nolint:errcheck // an operation of days is not counted
	}
	if op.Kind == history.Refund && op.Outcome == history.OK && op.Reason == history.NoReason {
		t.returned += op.Pieces()
	}
	if Done(op, t.kind) {
		t.done++
		t.last = max(t.last, op.Return)
	}
	t.requests.Add(op)
}

// meets records whether an operation overlaps the previous one of another client.
func (t *counting) meets(op *history.Op) {
	a := &t.before
	if a.any && a.client != op.Client && op.Call < a.ret && a.kind != history.Fault && op.Kind != history.Fault && op.Kind != history.ReadState {
		t.Contended = true
	}
	a.any, a.client, a.kind, a.ret = true, op.Client, op.Kind, op.Return
}

// Work returns the work in the history; sold is how much was sold, if anything.
func (t *counting) Work(h *history.History, sold int64) Work {
	w := Work{Kind: t.kind, Requests: t.requests.Took, Began: t.began, Done: t.done, Within: elapsed(h)}
	if w.Began == history.Forever {
		w.Began = 0
	}
	soldOut := h.Header.Has(variant.Sale) && sold >= h.Header.Stock
	if drained := !h.Header.Has(variant.Sale) && h.Header.Has(variant.Queue); w.Done > 0 && (soldOut || drained) {
		w.Within = t.last - w.Began
	}
	return w
}
