// Package reports defines the documents about runs, searches, comparisons, gates and claims: their JSON form, which
// runs and campaigns fill, their exit codes, and the sentences that all renderings share. The renderings are
// elsewhere: reports/text for terminals and Markdown, reports/page for HTML, reports/ci for continuous integration.
package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/variant"
)

// Schema identifies the format of a Document.
const Schema = Schemas + "1"

// Schemas begins the schemas of all versions.
const Schemas = "oversell-report/"

// Document is what --json prints: one or more judged runs.
type Document struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// Verdicts of a run.
const (
	Pass         = "pass"
	Violated     = "violated"
	Inconclusive = "inconclusive"
)

// Verdicts are all verdicts of a run.
var Verdicts = []string{Pass, Violated, Inconclusive}

// Results of a property.
const (
	Holds      = "holds"
	Broken     = "violated"
	Unknown    = "unknown"
	NotClaimed = "not-claimed"
)

// Results are all results of a property.
var Results = []string{Holds, Broken, Unknown, NotClaimed}

// Run is one run with its judgement. It depends on the history alone, so judging a saved history again gives the
// same bytes.
type Run struct {
	Scenario      string `json:"scenario"`
	Lock          string `json:"lock,omitempty"`
	Sale          string `json:"sale,omitempty"`
	Queue         string `json:"queue,omitempty"`
	IDs           string `json:"ids,omitempty"`
	Dispatch      string `json:"dispatch,omitempty"`
	SQL           string `json:"sql,omitempty"`
	Target        string `json:"target"`
	Topology      string `json:"topology"`
	ServerVersion string `json:"server_version"`
	Engine        string `json:"engine"`
	Waiting       string `json:"waiting"`
	Seed          uint64 `json:"seed"`
	Clients       int    `json:"clients"`
	Pool          int    `json:"pool"`
	// RTT is the mean of the virtual round-trip time, in ms, and Pipelines the number of connections that all
	// clients shared, with the engine mux; otherwise 0.
	RTT       float64 `json:"rtt_ms,omitempty"`
	Pipelines int     `json:"pipelines,omitempty"`
	// Intervals are the widths of the recorded intervals: the wider, the weaker the check.
	Intervals Intervals `json:"intervals"`

	// Operations is the number of recorded operations of clients.
	Operations int     `json:"operations"`
	ElapsedMS  float64 `json:"elapsed_ms"`
	// Throughput is Operations per second of the load.
	Throughput float64 `json:"throughput_ops_per_s"`
	// Commands is the number of commands that clients sent, without those in scripts; 0: unknown. Acquired is the
	// number of grants of the lock.
	Commands int64 `json:"commands,omitempty"`
	Acquired int64 `json:"acquired,omitempty"`
	// Latency is by kind of operation.
	Latency map[string]Latency `json:"latency"`
	// Request is the latency of requests as clients see it: from asking for the lock, if there is one, to the
	// result, a refusal, or giving up; nil: no request ended.
	Request *Latency `json:"request,omitempty"`
	// Arrivals describes how an open load was offered; nil for a closed load.
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// PoolWait is the cost of shared connections; nil: there were none, or it is unknown.
	PoolWait *PoolUse `json:"pool_wait,omitempty"`
	Faults   []Fault  `json:"faults"`
	// Phases compares the times before, during and after the faults; absent if none fired.
	Phases []Phase `json:"phases,omitempty"`

	Verdict string `json:"verdict"`
	// Why explains an inconclusive verdict.
	Why string `json:"why,omitempty"`
	// Expected is the outcome that promises and flaws declare, and ExpectedWhy the flaws that lead to it.
	Expected    string   `json:"expected"`
	ExpectedWhy []string `json:"expected_why,omitempty"`
	// KnownToBreak are conditions under which flaws declare violations, and which are not part of this run.
	KnownToBreak []history.Untried `json:"known_to_break,omitempty"`
	Properties   []Property        `json:"properties"`

	Stock *int64 `json:"stock,omitempty"`
	// Sold is the number of pieces certainly sold and not refunded; Returned is the number refunded; Unknown is how
	// many more may have been sold.
	Sold     *int64 `json:"sold,omitempty"`
	Returned int64  `json:"returned,omitempty"`
	Unknown  *int64 `json:"unknown,omitempty"`

	// Overruns counts sections that outlived their lease.
	Overruns int `json:"overruns"`
	// FirstOverrun describes the first of them.
	FirstOverrun string `json:"first_overrun,omitempty"`
	// Refusals counts declared refusals by reason.
	Refusals map[string]int64 `json:"refusals,omitempty"`
	// Fairness is Jain's index over the clients' grants: 1 if all had equally many, 1/clients if one had them all.
	Fairness float64 `json:"fairness"`
	// Servers is the load of the servers by their own account; absent if they do not report it.
	Servers []ServerLoad `json:"servers,omitempty"`
	// Interrupted means that the run was stopped early.
	Interrupted bool `json:"interrupted,omitempty"`
	// Cut says where a damaged history ends.
	Cut   string   `json:"cut,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Intervals are the times from call to return in ms.
type Intervals struct {
	// Operations are the answered operations, Commands the commands that clients sent for them; nil: none, or not
	// measured.
	Operations *Widths `json:"operations,omitempty"`
	Commands   *Widths `json:"commands,omitempty"`
}

// Widths is a distribution of times in ms.
type Widths struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Fault is an injected fault with its injections, as recorded in the history.
type Fault history.FaultCount

// ServerLoad is the load of a server during a run, from its INFO: CPU is the CPU time of its process in percent of
// one core, and Commands is the number of commands executed per second, including those in scripts and of other
// clients.
type ServerLoad struct {
	Server    string         `json:"server"`
	CPU       float64        `json:"cpu_percent"`
	Commands  float64        `json:"commands_per_s"`
	Intervals []LoadInterval `json:"intervals"`
}

// LoadInterval is a ServerLoad between two times.
type LoadInterval struct {
	FromMS   float64 `json:"from_ms"`
	ToMS     float64 `json:"to_ms"`
	CPU      float64 `json:"cpu_percent"`
	Commands float64 `json:"commands_per_s"`
}

// Arrivals describes how an open load was offered: an arrival is a step that a client should begin at a time fixed
// in advance.
type Arrivals struct {
	// Rate is the rate per second, or its stages, and Process the distribution of arrivals.
	Rate    string `json:"rate"`
	Process string `json:"process"`
	// Begun is how many were begun, Missed how many more were due, and Waited how many of those begun were due when
	// no client was free.
	Begun  int64 `json:"begun"`
	Missed int64 `json:"missed"`
	Waited int64 `json:"waited"`
	// Offered is the rate per second at which the arrivals that were begun were due, and Achieved the rate at which
	// they were begun.
	Offered  float64 `json:"offered_per_s"`
	Achieved float64 `json:"achieved_per_s"`
	// Late is the delay from when arrivals were due until they were begun, in milliseconds. It is the sum of
	// ForClient, until a client was free, and Driver, from then until the client began. Step is how long an arrival
	// kept a client busy.
	Late      Percentiles `json:"late_ms"`
	ForClient Percentiles `json:"for_client_ms"`
	Driver    Percentiles `json:"driver_ms"`
	Step      Percentiles `json:"step_ms"`
}

// PoolUse is the cost of shared connections.
type PoolUse struct {
	// Sent is the number of commands and pipelines sent, and Waited how many of them waited for a connection.
	Sent   int64 `json:"sent"`
	Waited int64 `json:"waited"`
	// Took is the mean time until the reply, in milliseconds, and Wait the part of it spent waiting for a
	// connection, over all that were sent.
	Took float64 `json:"took_mean_ms"`
	Wait float64 `json:"wait_mean_ms"`
}

// Phase is the part of a run before its first fault, from there to the end of the
// last, or after that.
type Phase struct {
	Name   string  `json:"name"`
	FromMS float64 `json:"from_ms"`
	ToMS   float64 `json:"to_ms"`
	// Operations counts answered operations, including refusals, and Throughput is that per second.
	Operations int     `json:"operations"`
	Throughput float64 `json:"throughput_ops_per_s"`
	// Failed counts operations without an answer.
	Failed int `json:"failed,omitempty"`
	// Latency is by kind, of operations that were answered in the phase.
	Latency map[string]Latency `json:"latency"`
}

// Property is the judgement of one property of one object.
type Property struct {
	Name variant.Property `json:"name"`
	Of   variant.Object   `json:"of"`
	// Result is holds, violated or unknown for a promised property, and not-claimed for any other.
	Result string `json:"result"`
	// Measured is the result whether promised or not.
	Measured string `json:"measured"`
	// Declared means that a flaw declares it broken under the conditions of the run.
	Declared bool `json:"declared,omitempty"`
	// Count is the number of violations, or of what Unit names.
	Count int `json:"count"`
	// Unit names what Count counts: "piece", "order", "refusal" or "number". It is empty for violations.
	Unit string `json:"unit,omitempty"`
	// Opportunities is the number of situations in which the property could have been broken. Without any, nothing
	// is concluded.
	Opportunities int64        `json:"opportunities"`
	Why           string       `json:"why"`
	Witness       []history.Op `json:"witness"`
}

// Latency is the duration of one kind of operation, in milliseconds, over all that ended, including refusals after
// a wait and clients that gave up.
type Latency struct {
	Count int64 `json:"count"`
	// Call is measured from when the operation started, over all outcomes.
	Call Percentiles `json:"call"`
	// Due is measured from when it should have started; nil for a closed load, in which each starts when it should.
	Due *Percentiles `json:"due,omitempty"`
	// Outcomes are the same as Call by outcome: "ok", "refused" or "unknown".
	Outcomes map[string]OutcomeLatency `json:"outcomes,omitempty"`
}

// OutcomeLatency is the latency of the operations with one outcome.
type OutcomeLatency struct {
	Count int64 `json:"count"`
	Percentiles
}

// Percentiles of a latency, in milliseconds.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Exit codes of the command line.
const (
	ExitPass         = 0
	ExitViolated     = 1
	ExitUsage        = 2
	ExitInconclusive = 3
	ExitRegression   = 4
	ExitEnvironment  = 5
)

// ExitCode returns the process's exit code for these runs: a violation outweighs a run that decided nothing.
func (d Document) ExitCode() int {
	code := ExitPass
	for _, r := range d.Runs {
		switch r.Verdict {
		case Violated:
			return ExitViolated
		case Pass:
		default:
			code = ExitInconclusive
		}
	}
	if len(d.Runs) == 0 {
		return ExitInconclusive
	}
	return code
}

// Surprise reports whether a promise was broken that no flaw declares broken. Without declarations, as for a
// history from elsewhere, nothing is a surprise.
func (r Run) Surprise() bool {
	undeclared := func(p Property) bool { return p.Result == Broken && !p.Declared }
	return r.Verdict == Violated && (r.Expected == Pass || r.Expected == Violated && slices.ContainsFunc(r.Properties, undeclared))
}

// NotSeen returns the promises that flaws declare broken here and that held: a short run does not always show a
// flaw.
func (r Run) NotSeen() (names []string) {
	if r.Verdict == Violated {
		return nil // a flaw has shown, if not all its violations
	}
	for _, p := range r.Properties {
		if p.Declared && p.Result == Holds {
			names = append(names, p.Label(r))
		}
	}
	return names
}

// DemonstrationCode returns the process's exit code for runs that demonstrate the flaws of many variants: ExitPass
// unless a promise was broken that no flaw declares broken, or a run decided nothing.
func (d Document) DemonstrationCode() int {
	if slices.ContainsFunc(d.Runs, Run.Surprise) {
		return ExitViolated
	}
	if len(d.Runs) == 0 || slices.ContainsFunc(d.Runs, func(r Run) bool { return r.Verdict != Pass && r.Verdict != Violated }) {
		return ExitInconclusive
	}
	return ExitPass
}

// WriteJSON writes v, indented, with a final newline. Unprintable characters are escaped as in JSON, so nothing is
// lost.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printable.JSON(b.Bytes()))
	return err
}

// ToFile writes the output of write to a file. If it fails, a file that was there before is unchanged, and there is no new
// one; but a device or a pipe, and a file in a directory where none can be created, is written in place.
func ToFile(path string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o666)
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return overwrite(path, mode, write)
		}
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	part, err := beside(path, mode)
	if errors.Is(err, fs.ErrPermission) {
		return overwrite(path, mode, write)
	}
	if err != nil {
		return err
	}
	err = overwrite(part, mode, write)
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// beside creates an empty file whose name begins with path, and returns its path.
func beside(path string, mode fs.FileMode) (string, error) {
	for n := 0; ; n++ {
		part := path + ".part"
		if n > 0 {
			part += strconv.Itoa(n)
		}
		f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return "", err
		}
		return part, f.Close()
	}
}

func overwrite(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
