package judging

import (
	"fmt"
	"math"
	"time"

	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
)

// Tolerances of an open load. One in a hundred is the share that a p99 leaves out. Go preempts a goroutine after 10
// ms; a busy machine takes twice as long.
const (
	mostMissed = 0.01
	leastRate  = 1 - mostMissed
	mostLate   = 20 * time.Millisecond
)

// Unoffered explains why an open load did not run at its rate; empty if it did, or if the load was closed. A server
// that stops is not such a reason: waiting arrivals begin when it goes on, and are timed from when they were due.
func Unoffered(h *history.History) string {
	if h.Header.Rate == "" {
		return ""
	}
	a := h.Trailer.Arrivals
	if a == nil {
		return "the header has arrivals, but the trailer does not"
	}
	clients := arriving(h.Header)
	all := a.Begun + a.Missed
	needed := int(math.Ceil(a.Highest * a.Step.P50.Seconds()))
	slow := a.Driver.P99 > mostLate
	switch {
	case all == 0:
		return notOffered + "no arrival was due"
	case float64(a.Missed) > mostMissed*float64(all) && (!slow || needed > clients):
		return fmt.Sprintf("%s%s of %s arrivals were never begun: %s were too few, with steps of %s (p50); use more --clients if the servers have time to spare, or a lower rate",
			notOffered, reports.Thousands(a.Missed), reports.Thousands(all), phrase.Count(clients, "client"), ms(a.Step.P50))
	case slow:
		return fmt.Sprintf("%sarrivals began up to %s (p99) after a client was free for them, and %v is tolerated: this machine is too slow; use a lower rate, or a less busy machine",
			notOffered, ms(a.Driver.P99), mostLate)
	case a.Achieved < leastRate*a.Offered && a.ForClient.P50 > mostLate && needed > clients:
		return fmt.Sprintf("%s%s began %s arrivals a second, and %s were due: a step took %s (p50), so %s arrivals a second need %s; use more --clients if the servers have time to spare, or a lower rate",
			notOffered, phrase.Count(clients, "client"), reports.Rate(a.Achieved), reports.Rate(a.Offered), ms(a.Step.P50), reports.Rate(a.Highest), phrase.Count(needed, "client"))
	}
	return ""
}

// notOffered begins the reason why an open load is inconclusive.
const notOffered = "the load was not offered at its rate: "

func ms(d time.Duration) string { return reports.Short(float64(d)/1e6) + " ms" }

// arriving returns how many clients serve the arrivals of an open load: in a queue the producers.
func arriving(h history.Header) int {
	if h.Queue != "" {
		return (h.Clients + 1) / 2
	}
	return h.Clients
}

// arrivalsOf describes how an open load was offered; nil for a closed load or a killed run.
func arrivalsOf(h *history.History) *reports.Arrivals {
	if h.Header.Rate == "" || h.Trailer == nil || h.Trailer.Arrivals == nil {
		return nil
	}
	a := h.Trailer.Arrivals
	return &reports.Arrivals{
		Rate: h.Header.Rate, Process: h.Header.Arrival,
		Begun: a.Begun, Missed: a.Missed, Waited: a.Waited,
		Offered: Round(a.Offered), Achieved: Round(a.Achieved),
		Late: millis(a.Late), ForClient: millis(a.ForClient), Driver: millis(a.Driver), Step: millis(a.Step),
	}
}

func millis(s history.Spans) reports.Percentiles {
	in := func(d time.Duration) float64 { return Round(float64(d) / 1e6) }
	return reports.Percentiles{P50: in(s.P50), P90: in(s.P90), P99: in(s.P99), P999: in(s.P999), Max: in(s.Max)}
}

// poolWaitOf returns how long clients waited for shared connections; nil if unknown.
func poolWaitOf(h *history.History) *reports.PoolUse {
	if h.Trailer == nil || h.Trailer.Pool == nil || h.Trailer.Pool.Sent <= 0 {
		return nil
	}
	p := h.Trailer.Pool
	mean := func(d time.Duration) float64 { return Round(float64(d) / 1e6 / float64(p.Sent)) }
	return &reports.PoolUse{Sent: p.Sent, Waited: p.Waited, Took: mean(p.Took), Wait: mean(p.Wait)}
}
