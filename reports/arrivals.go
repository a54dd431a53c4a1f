package reports

import (
	"fmt"
	"strconv"
	"strings"
)

// OpenLoad describes an open load, one fact per sentence: the offered rate, how late its steps began and why, and
// what this means for the latency. It is nil for a closed load.
func (r Run) OpenLoad() (sentences []string) {
	a := r.Arrivals
	if a == nil {
		return nil
	}
	begun := Count(a.Begun, "arrival") + " begun"
	if a.Missed > 0 {
		begun += ", " + Thousands(a.Missed) + " never"
	}
	sentences = append(sentences, fmt.Sprintf("%s, %s; %s, %s a second of %s", a.rate(), a.Process, begun, Rate(a.Achieved), Rate(a.Offered)))
	sentences = append(sentences, fmt.Sprintf("late p50/p99/p99.9 %s ms: because no client was free %s, because oversell was late %s", a.Late.three(), a.ForClient.three(), a.Driver.three()))
	if q := r.Request; q != nil && q.Due != nil {
		sentences = append(sentences, fmt.Sprintf("requests p50/p99/p99.9: response, from when due, %s ms; service, from when begun, %s ms", q.Due.three(), q.Call.three()))
	}
	return sentences
}

// PoolWaiting describes the cost of shared connections; empty if no client waited for one.
func (r Run) PoolWaiting() string {
	p := r.PoolWait
	if p == nil || p.Waited == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s waited for one of %s: on average %s of %s ms",
		Thousands(p.Waited), Count(p.Sent, "command"), Count(int64(r.Pool), "shared connection"), Short(p.Wait), Short(p.Took))
}

// rate formats the rate.
func (a Arrivals) rate() string {
	if strings.Contains(a.Rate, ":") {
		return "stages " + a.Rate
	}
	if n, err := strconv.ParseFloat(a.Rate, 64); err == nil {
		return Rate(n) + " a second"
	}
	return a.Rate
}

func (p Percentiles) three() string {
	return Short(p.P50) + " / " + Short(p.P99) + " / " + Short(p.P999)
}
