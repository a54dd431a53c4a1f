// Package reports holds what is told about runs, searches, comparisons, gates and claims:
// the JSON documents, which runs and campaigns fill, their exit codes, and the sentences in
// which every drawing tells of them. What draws the documents is apart: reports/text for a
// terminal and in Markdown, reports/page as HTML, reports/ci for continuous integration.
package reports

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/variant"
)

// Schema names the form of a Document.
const Schema = "oversell-report/1"

// Document is what --json prints: one or more judged runs.
type Document struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// The verdicts of a run.
const (
	Pass         = "pass"
	Violated     = "violated"
	Inconclusive = "inconclusive"
)

// The results of a property.
const (
	Holds      = "holds"
	Broken     = "violated"
	Unknown    = "unknown"
	NotClaimed = "not-claimed"
)

// Run is one run with its judgement. All of it comes from the history, so that
// judging a saved history again gives the same bytes.
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
	// RTT is the mean of the virtual round-trip time, in ms, and Pipelines is how many
	// connections all clients shared, of the engine mux; 0: none.
	RTT       float64 `json:"rtt_ms,omitempty"`
	Pipelines int     `json:"pipelines,omitempty"`
	// Intervals says how wide recorded intervals are: the wider, the weaker a check.
	Intervals Intervals `json:"intervals"`

	// Operations is the number recorded, those of the clients only.
	Operations int     `json:"operations"`
	ElapsedMS  float64 `json:"elapsed_ms"`
	// Throughput is Operations per second of the load.
	Throughput float64 `json:"throughput_ops_per_s"`
	// Commands is how many commands the clients sent, those within a script not
	// counted; 0: not known. Acquired is how often the lock was obtained.
	Commands int64 `json:"commands,omitempty"`
	Acquired int64 `json:"acquired,omitempty"`
	// Latency is per kind of operation.
	Latency map[string]Latency `json:"latency"`
	// Request is the latency of what clients came for as they felt it: from when a client
	// asked for the lock, if there is one, until it had what it came for, or was told that
	// it gets nothing, or gave up; nil: no request ended.
	Request *Latency `json:"request,omitempty"`
	// Arrivals is how an open load was offered; nil: the load was closed.
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// PoolWait is what it cost clients to share connections; nil: they did not, or it is not
	// known.
	PoolWait *PoolWait `json:"pool_wait,omitempty"`
	Faults   []Fault   `json:"faults"`
	// Phases compare the times before, during and after the faults; absent when
	// none fired.
	Phases []Phase `json:"phases,omitempty"`

	Verdict string `json:"verdict"`
	// Why says what made the verdict inconclusive.
	Why string `json:"why,omitempty"`
	// Expected is the outcome that promises and flaws declare, and ExpectedWhy
	// the flaws that lead there.
	Expected    string   `json:"expected"`
	ExpectedWhy []string `json:"expected_why,omitempty"`
	// KnownToBreak are conditions under which flaws declare that promises break, and
	// which this run did not bring.
	KnownToBreak []history.Untried `json:"known_to_break,omitempty"`
	Properties   []Property        `json:"properties"`

	Stock *int64 `json:"stock,omitempty"`
	// Sold is the number of pieces surely sold and not given back; Returned how
	// many were given back; Unknown how many more may have been sold.
	Sold     *int64 `json:"sold,omitempty"`
	Returned int64  `json:"returned,omitempty"`
	Unknown  *int64 `json:"unknown,omitempty"`

	// Overruns counts sections that outlived their lease.
	Overruns int `json:"overruns"`
	// FirstOverrun tells of the first of them in a sentence.
	FirstOverrun string `json:"first_overrun,omitempty"`
	// Refusals counts declared refusals by reason.
	Refusals map[string]int64 `json:"refusals,omitempty"`
	// Fairness is Jain's index over the clients' grants: 1 when all had equally
	// many, 1/clients when one had them all.
	Fairness float64 `json:"fairness"`
	// Servers is how much the servers did, as they said themselves; absent where they do
	// not say.
	Servers []ServerLoad `json:"servers,omitempty"`
	// Interrupted says that the run was stopped before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Cut says where a damaged history ended.
	Cut   string   `json:"cut,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// Intervals are the times from call to return in ms.
type Intervals struct {
	// Operations are those that were answered, Commands what clients sent for them; nil: there
	// were none, or they were not measured.
	Operations *Widths `json:"operations,omitempty"`
	Commands   *Widths `json:"commands,omitempty"`
}

// Widths is a distribution of times in ms.
type Widths struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// Fault is an injected fault and what became of it, as the history has it.
type Fault history.FaultCount

// ServerLoad is how much a server did during a run, according to its INFO: CPU is the
// processor time of its process in per cent of one core, and Commands is how many commands
// it executed a second, those within scripts and those of other clients included.
type ServerLoad struct {
	Server    string         `json:"server"`
	CPU       float64        `json:"cpu_percent"`
	Commands  float64        `json:"commands_per_s"`
	Intervals []LoadInterval `json:"intervals"`
}

// LoadInterval is a ServerLoad between two moments.
type LoadInterval struct {
	FromMS   float64 `json:"from_ms"`
	ToMS     float64 `json:"to_ms"`
	CPU      float64 `json:"cpu_percent"`
	Commands float64 `json:"commands_per_s"`
}

// Arrivals is how an open load was offered: each is a step that a client was to begin at a time
// that was fixed in advance.
type Arrivals struct {
	// Rate is the rate a second, or its stages, and Process how arrivals were spread.
	Rate    string `json:"rate"`
	Process string `json:"process"`
	// Begun is how many a client began, Missed how many more were due, and Waited how many
	// of those begun were due when no client was free.
	Begun  int64 `json:"begun"`
	Missed int64 `json:"missed"`
	Waited int64 `json:"waited"`
	// Offered is how many a second were due, and Achieved how many were begun.
	Offered  float64 `json:"offered_per_s"`
	Achieved float64 `json:"achieved_per_s"`
	// Late is how much later than due they were begun, in milliseconds. That is ForClient,
	// for how long no client was free, and Driver, what passed from there until a client
	// began. Step is for how long one kept a client busy.
	Late      Percentiles `json:"late_ms"`
	ForClient Percentiles `json:"for_client_ms"`
	Driver    Percentiles `json:"driver_ms"`
	Step      Percentiles `json:"step_ms"`
}

// PoolWait is what it cost clients to share connections.
type PoolWait struct {
	// Sent is how many commands and pipelines they sent, and Waited how many of those had to
	// wait for a connection.
	Sent   int64 `json:"sent"`
	Waited int64 `json:"waited"`
	// Took is the mean time until the answer, in milliseconds, and Wait the part of it for
	// which there was no connection, over all that were sent.
	Took float64 `json:"took_mean_ms"`
	Wait float64 `json:"wait_mean_ms"`
}

// Phase is the part of a run before its first fault, from there to the end of the
// last, or after that.
type Phase struct {
	Name   string  `json:"name"`
	FromMS float64 `json:"from_ms"`
	ToMS   float64 `json:"to_ms"`
	// Operations counts those that were answered, refusals included, and
	// Throughput is that per second.
	Operations int     `json:"operations"`
	Throughput float64 `json:"throughput_ops_per_s"`
	// Latency is per kind of operation, of those that ended in the phase.
	Latency map[string]Latency `json:"latency"`
}

// Property is the judgement of one property of one object.
type Property struct {
	Name variant.Property `json:"name"`
	Of   variant.Object   `json:"of"`
	// Result is holds, violated or unknown for a promised property, and
	// not-claimed for one that nobody promised.
	Result string `json:"result"`
	// Measured is the result whether promised or not.
	Measured string `json:"measured"`
	// Declared says that a flaw declares it broken under what the run brought.
	Declared bool `json:"declared,omitempty"`
	// Count is how often the property was seen broken.
	Count int `json:"count"`
	// Opportunities is how many things in the history could have broken the property.
	// Nothing is concluded from none.
	Opportunities int64        `json:"opportunities"`
	Why           string       `json:"why"`
	Witness       []history.Op `json:"witness"`
}

// Latency is how long one kind of operation took, in milliseconds: every operation that
// ended, those that were refused after a wait and those that gave up included.
type Latency struct {
	Count int64 `json:"count"`
	// Call is measured from when the operation started, over all outcomes.
	Call Percentiles `json:"call"`
	// Due is measured from when it should have started; nil where the load is closed, so
	// that each started when it should.
	Due *Percentiles `json:"due,omitempty"`
	// Outcomes are the same as Call for those that ended "ok", "refused" or "unknown".
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

// ExitCode is the process's exit code for these runs: a violation weighs more
// than a run that decided nothing.
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

// Surprise reports whether a promise was broken that no flaw declares broken. Where nothing
// is declared, as of a history from elsewhere, nothing is a surprise.
func (r Run) Surprise() bool {
	undeclared := func(p Property) bool { return p.Result == Broken && !p.Declared }
	return r.Verdict == Violated && (r.Expected == Pass || r.Expected == Violated && slices.ContainsFunc(r.Properties, undeclared))
}

// NotSeen are the promises that flaws declare broken here and that held: a short run does
// not always show a flaw.
func (r Run) NotSeen() (names []string) {
	if r.Verdict == Violated {
		return nil // the flaws have shown, if not all that comes of them
	}
	for _, p := range r.Properties {
		if p.Declared && p.Result == Holds {
			names = append(names, p.Label(r))
		}
	}
	return names
}

// DemonstrationCode is the process's exit code for runs that show what is declared of
// many variants: ExitPass unless a promise was broken that no flaw declares broken, or a
// run decided nothing.
func (d Document) DemonstrationCode() int {
	if slices.ContainsFunc(d.Runs, Run.Surprise) {
		return ExitViolated
	}
	if len(d.Runs) == 0 || slices.ContainsFunc(d.Runs, func(r Run) bool { return r.Verdict != Pass && r.Verdict != Violated }) {
		return ExitInconclusive
	}
	return ExitPass
}

// WriteJSON writes v, indented, with a newline at the end. What does not print is
// escaped, as JSON has it, so that nothing is lost.
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
