package reports

import (
	"cmp"
	"fmt"
	"strings"
)

// FaultCounts formats how often each fault fired, in order: "12+3".
func (r Run) FaultCounts() string {
	var counts []string
	for _, f := range r.Faults {
		counts = append(counts, Thousands(f.Fired))
	}
	return strings.Join(counts, "+")
}

// Story describes how often a fault fired and whom it hit.
func (f Fault) Story() string {
	var hit []string
	if n := f.Holders; n != nil && *n > 0 {
		hit = append(hit, Thousands(*n)+" hit a holder")
	}
	if n := f.Waiters; n != nil && *n > 0 {
		hit = append(hit, Thousands(*n)+" a waiter")
	}
	s := "fired" + strings.TrimPrefix(times(int(f.Fired)), ",")
	switch {
	case f.Fired == 0 && f.Vain > 0:
		s = "never fired with an effect"
	case f.Fired == 0 && f.Partly > 0:
		s = "fired only in part"
	case f.Fired == 0:
		s = "never fired"
	case len(hit) > 0:
		s += " (" + strings.Join(hit, ", ") + ")"
	}
	if f.Effect != "" {
		s += "; " + f.Effect
	}
	if f.Vain > 0 {
		s += "; had no effect" + strings.TrimPrefix(times(int(f.Vain)), ",") + ": " + f.VainWhy
	}
	if f.Failed != "" {
		s += "; " + f.Failed
	}
	return s
}

// Rate formats the throughput of a phase; a dash for one that is too short.
func (p Phase) Rate() string {
	if p.ToMS-p.FromMS < 1 {
		return "-"
	}
	return Rate(p.Throughput)
}

// Answers is Rate, and how many operations failed if any did: "276, 1,200 failed".
func (p Phase) Answers() string {
	if p.Failed == 0 {
		return p.Rate()
	}
	return fmt.Sprintf("%s, %s failed", p.Rate(), Thousands(int64(p.Failed)))
}

// LatencySummary formats p50 / p99 / p99.9 of one kind of operation, in milliseconds; a dash if there was none.
func (p Phase) LatencySummary(kind string) string {
	l, ok := p.Latency[kind]
	if !ok {
		return "-"
	}
	return Short(l.Call.P50) + " / " + Short(l.Call.P99) + " / " + Short(l.Call.P999)
}

// Add adds the injections of the same fault in another run. Whom it hit is known if it is known of both.
func (f *Fault) Add(other Fault) {
	f.Fired += other.Fired
	f.Holders = sumOf(f.Holders, other.Holders)
	f.Waiters = sumOf(f.Waiters, other.Waiters)
	f.Failed = cmp.Or(f.Failed, other.Failed)
}

// sumOf returns the sum of two numbers; nil if one is unknown.
func sumOf(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}
