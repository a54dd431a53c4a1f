package campaign

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"oversell/campaign/judging"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// differenceOf reports what changed from one judged history to another.
func differenceOf(a, b *history.History, ja, jb judging.Result) (reports.Difference, error) {
	d := reports.Difference{A: ja.Run, B: jb.Run}
	var err error
	if d.Chosen, d.Unlike, err = settings(a.Header, b.Header); err != nil {
		return d, err
	}
	if d.Kind = ja.Run.MainKind(); jb.Run.MainKind() != d.Kind { // such as if one run has no lock
		d.Kind = ja.Run.UsefulKind()
	}
	if a.Header.Scenario == b.Header.Scenario {
		d.Measures = measures(blocksOf(a, &ja, d.Kind), blocksOf(b, &jb, d.Kind), &d)
	}
	return d, nil
}

// derived are the fields of a header that follow from settings or differ between any two runs.
var derived = []string{"schema", "objects", "seed", "started", "pipelines", "grace_ns", "drift_ns", "renews", "redial_ns", "promises", "expected", "expected_flaws", "declared", "known_to_break"}

// settings returns the fields that differ between two headers: settings, and all others.
func settings(a, b history.Header) (variants, others []reports.Setting, err error) {
	of, err := fieldsOf(a)
	if err != nil {
		return nil, nil, err
	}
	and, err := fieldsOf(b)
	if err != nil {
		return nil, nil, err
	}
	all := maps.Clone(of)
	maps.Copy(all, and)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := reports.Setting{Name: strings.ReplaceAll(strings.TrimSuffix(name, "_ns"), "_", " "), A: setting(a, name, of[name]), B: setting(b, name, and[name])}
		switch {
		case slices.Contains(derived, name) || s.A == s.B:
		case name == "duration_ns" && unsetDuration(a) && unsetDuration(b): // each follows from the settings
		case slices.Contains(variant.Objects, variant.Object(name)):
			variants = append(variants, s)
		default:
			others = append(others, s)
		}
	}
	return variants, others, nil
}

func fieldsOf(h history.Header) (fields map[string]any, err error) {
	text, err := json.Marshal(h)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// unsetDuration reports whether a run has its default duration.
func unsetDuration(h history.Header) bool { return h.Duration == completed(h, h.TTL).Duration }

// setting describes the value of a header field. Histories of other programs leave out fields that they do not
// know.
func setting(h history.Header, name string, v any) string {
	if h.Engine == "" && (v == nil || v == 0.0 || v == "") {
		return "not known"
	}
	switch v := v.(type) {
	case nil:
		return "none"
	case float64:
		if strings.HasSuffix(name, "_ns") {
			return time.Duration(v).String()
		}
		return fmt.Sprint(v)
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = fmt.Sprint(v[i])
		}
		return strings.Join(words, "; ")
	}
	return fmt.Sprint(v)
}

// Parameters of the block bootstrap; see reports.DifferenceMethod.
const (
	blocks    = 20
	resamples = 1000
	// bucket is the ratio of neighbouring latency buckets; tail is the number of operations that must be slower
	// than a quantile for its interval to mean anything.
	bucket = 1.01
	tail   = 10
)

// runBlocks is a run cut into parts of equal length, from the start of its load: its work up to the end of the work, its
// latencies up to the last return.
type runBlocks struct {
	kind string
	done [blocks]float64
	// slow counts latencies by part and bucket.
	slow  [blocks][]int32
	count int
	of    *judging.Result
}

// blocksOf cuts a run into parts.
func blocksOf(h *history.History, j *judging.Result, kind string) *runBlocks {
	b := &runBlocks{kind: kind, of: j}
	load := time.Duration(1)
	for op := range h.Each() {
		if judging.Measured(op) {
			load = max(load, op.Return-j.Work.Began)
		}
	}
	part := func(op *history.Op, of time.Duration) int {
		return min(int(float64(op.Return-j.Work.Began)/float64(of)*blocks), blocks-1)
	}
	for op := range h.Each() {
		if !judging.Measured(op) {
			continue
		}
		if judging.Done(op, j.Work.Kind) {
			b.done[part(op, max(j.Work.Within, 1))]++
		}
		if op.Kind.String() == b.kind {
			b.add(part(op, load), op.Return-op.Call)
		}
	}
	return b
}

func (b *runBlocks) add(part int, d time.Duration) {
	i := int(math.Log(max(float64(d)/float64(time.Microsecond), 1)) / math.Log(bucket))
	for len(b.slow[part]) <= i {
		b.slow[part] = append(b.slow[part], 0)
	}
	b.slow[part][i]++
	b.count++
}

// quantiles are the quantiles that are compared.
var quantiles = []float64{0.5, 0.9, 0.99, 0.999}

// sample returns the rate and the quantiles in milliseconds of a selection of parts.
func (b *runBlocks) sample(parts []int) []float64 {
	done, all, total := 0.0, []int32{}, int32(0)
	for _, p := range parts {
		done += b.done[p]
		for len(all) < len(b.slow[p]) {
			all = append(all, 0)
		}
		for i, n := range b.slow[p] {
			all[i] += n
			total += n
		}
	}
	values := []float64{done / float64(len(parts)) * blocks / max(b.of.Work.Within.Seconds(), 1e-9)}
	seen, i := int32(0), 0
	for _, q := range quantiles {
		rank := int32(math.Ceil(q * float64(total)))
		for i < len(all) && seen+all[i] < rank {
			seen += all[i]
			i++
		}
		values = append(values, math.Pow(bucket, float64(i)+0.5)/1e3)
	}
	return values
}

// resampled returns the values of many random selections of parts. The seed makes them reproducible, so the same
// report has the same numbers.
func (b *runBlocks) resampled(seed uint64) (samples [][]float64) {
	random := rand.New(rand.NewPCG(seed, 0))
	parts := make([]int, blocks)
	for range resamples {
		for i := range parts {
			parts[i] = random.IntN(blocks)
		}
		samples = append(samples, b.sample(parts))
	}
	return samples
}

// told returns the values of the whole run.
func (b *runBlocks) told() []float64 {
	p := b.of.Run.Latency[b.kind].Call
	return []float64{b.of.Work.Rate(), p.P50, p.P90, p.P99, p.P999}
}

// measures compares two runs of one scenario.
func measures(a, b *runBlocks, d *reports.Difference) (all []reports.Measure) {
	as, bs := a.resampled(1), b.resampled(2)
	at, bt := a.told(), b.told()
	names := []string{a.of.Run.UsefulWork(), a.kind + " p50", a.kind + " p90", a.kind + " p99", a.kind + " p99.9"}
	for i, name := range names {
		m := reports.Measure{Name: name, Unit: "ms", Sure: min(a.count, b.count) >= blocks}
		if i == 0 {
			m.Unit = "a second"
		} else {
			m.Sure = float64(min(a.count, b.count))*(1-quantiles[i-1]) >= tail
		}
		m.A, m.B = spread(at[i], column(as, i)), spread(bt[i], column(bs, i))
		if m.Sure && d.Alike() && at[i] > 0 && bt[i] > 0 {
			ratios := make([]float64, resamples)
			for j := range ratios {
				ratios[j] = bs[j][i] / as[j][i]
			}
			if ratio := spread(bt[i]/at[i], ratios); !math.IsInf(ratio.High, 0) { // A did nothing in too many of its parts
				m.Ratio = &ratio
			}
		}
		all = append(all, m)
	}
	return all
}

func column(samples [][]float64, i int) []float64 {
	xs := make([]float64, len(samples))
	for j := range samples {
		xs[j] = samples[j][i]
	}
	return xs
}

// spread returns a value with the interval of the middle 95 % of its resamples, extended to include the value.
func spread(value float64, xs []float64) reports.Interval {
	for i, x := range xs {
		if math.IsNaN(x) { // 0/0 bounds nothing
			xs[i] = math.Inf(1)
		}
	}
	slices.Sort(xs)
	n := float64(len(xs))
	return reports.Interval{Value: value, Low: min(value, xs[int(0.025*n)]), High: max(value, xs[int(0.975*n)])}
}
