package history

import (
	"slices"
	"time"

	"oversell/variant"
)

// Schema names the format of a header; its number changes when old readers
// would misread it.
const Schema = "oversell-history/1"

// Header describes the run of a history, and holds everything that judging it needs, so that a file can be judged again
// on another machine, by another build in which the variants may have changed.
type Header struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	Lock     string `json:"lock,omitempty"`
	Sale     string `json:"sale,omitempty"`
	Queue    string `json:"queue,omitempty"`
	IDs      string `json:"ids,omitempty"`
	Dispatch string `json:"dispatch,omitempty"`
	// Objects are the kinds of objects of the history's operations. A variant named above, or a promise, implies its
	// object; see [Header.Has].
	Objects []variant.Object `json:"objects,omitempty"`
	// SQL is the kind and version of the database, if there was one.
	SQL string `json:"sql,omitempty"`

	Target        string `json:"target"`
	Topology      string `json:"topology"`
	ServerVersion string `json:"server_version"`
	Engine        string `json:"engine"`
	// RTT is the mean of the virtual round-trip time by which the engine mux held back every
	// reply; 0: none. Pipelines is how many connections its clients shared, to all servers.
	RTT       time.Duration `json:"rtt_ns,omitempty"`
	Pipelines int           `json:"pipelines,omitempty"`
	Waiting   string        `json:"waiting"`
	Seed      uint64        `json:"seed"`
	Clients   int           `json:"clients"`
	// Pool is the number of shared connections; 0: a connection each.
	Pool    int       `json:"pool"`
	Started time.Time `json:"started"`

	// Stock is the pieces on sale. A header in JSON about a sale must have it, even if it is 0: without it every
	// purchase would be an oversell.
	Stock    int64 `json:"stock"`
	Quantity int   `json:"quantity,omitempty"` // the largest order
	// Resend and Refund are probabilities per order.
	Resend float64 `json:"resend,omitempty"`
	Refund float64 `json:"refund,omitempty"`
	// RefuseStale says that an optimistic sale refused orders whose data was stale,
	// instead of trying them again.
	RefuseStale bool `json:"refuse_stale,omitempty"`

	// Visibility is how long a consumer has for a task, Delay the longest time after which one is due, Attempts the
	// most deliveries of one.
	Visibility time.Duration `json:"visibility_ns,omitempty"`
	Delay      time.Duration `json:"delay_ns,omitempty"`
	Attempts   int           `json:"attempts,omitempty"`
	// Repeat and Die are probabilities: that an id is enqueued again, and that a consumer dies while it has a task.
	// Overwrite lets a repeated id replace its entry.
	Repeat    float64 `json:"repeat,omitempty"`
	Die       float64 `json:"die,omitempty"`
	Overwrite bool    `json:"overwrite,omitempty"`
	// Abandon is how many tasks of a dispatch are never submitted by their first users.
	Abandon int `json:"abandon,omitempty"`
	// Batch is the most ids of an enqueue and the most tasks of a pop; 0: one. Withdraw and Peek are probabilities:
	// that a producer withdraws the task it enqueued, and that a consumer peeks before it takes one.
	Batch    int     `json:"batch,omitempty"`
	Withdraw float64 `json:"withdraw,omitempty"`
	Peek     float64 `json:"peek,omitempty"`

	TTL   time.Duration `json:"ttl_ns,omitempty"`
	Wait  time.Duration `json:"wait_ns,omitempty"`
	Retry time.Duration `json:"retry_ns,omitempty"`
	Hold  time.Duration `json:"hold_ns,omitempty"`
	// Duration ends the run after this time, Ops after so many steps of all clients; 0: no such end. Timeout is how
	// long a client waits for an answer; 0: as usual. A run with a Duration of less than 20 ms does not pass.
	Duration time.Duration `json:"duration_ns,omitempty"`
	Ops      int64         `json:"ops,omitempty"`
	Timeout  time.Duration `json:"timeout_ns,omitempty"`
	// Rate is the rate of arrivals of an open load, as --rate or --stages reads it, and
	// Arrival how they are spread; empty: the load is closed.
	Rate    string `json:"rate,omitempty"`
	Arrival string `json:"arrival,omitempty"`
	// Grace is the time that the progress property adds to the TTL.
	Grace time.Duration `json:"grace_ns,omitempty"`
	// Drift is how far the clients' clock and the servers' may disagree, and how late a server may expire a key:
	// refusals stay legal this long after a lease has run out.
	Drift time.Duration `json:"drift_ns,omitempty"`

	// Renews says that the lock prolongs its lease in the background. Histories show only the renewals that the holder
	// learned of.
	Renews bool `json:"renews,omitempty"`
	// Faults are the faults that the run injects, a sentence each.
	Faults []string `json:"faults,omitempty"`
	// Redial is how long after the end of a server's fault clients may take to notice: progress is judged from then on.
	Redial time.Duration `json:"redial_ns,omitempty"`

	// Promises are the properties that fail the run if broken; every other one is measured and reported as not claimed.
	Promises []Promise `json:"promises"`
	// Expected is the declared outcome of this combination: "pass", or
	// "violated" with the flaws that lead there.
	Expected      string   `json:"expected"`
	ExpectedFlaws []string `json:"expected_flaws,omitempty"`
	// Declared are the promises that flaws declare broken under the conditions of this run.
	Declared []Promise `json:"declared,omitempty"`
	// KnownToBreak are conditions that this run lacks, under which flaws declare that promises break: a pass says
	// nothing about them.
	KnownToBreak []Untried `json:"known_to_break,omitempty"`
}

// Untried is a condition that a run lacks.
type Untried struct {
	// Under is a fault, or an option of a run, in the vocabulary of flaws.
	Under string `json:"under"`
	// Breaks are the promises known to break under it, and Why says how the first one does.
	Breaks []Promise `json:"breaks"`
	Why    string    `json:"why"`
}

// Promise is a property of one object.
type Promise struct {
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
}

// Promised reports whether the header holds this promise.
func (h *Header) Promised(of variant.Object, p variant.Property) bool {
	for _, q := range h.Promises {
		if q.Of == of && q.Property == p {
			return true
		}
	}
	return false
}

// Declares reports whether a flaw declares this promise broken under the conditions of the run. An older history has
// only the expected outcome; if it declares flaws, Declares returns true for every promise.
func (h *Header) Declares(of variant.Object, p variant.Property) bool {
	if len(h.Declared) == 0 {
		return len(h.ExpectedFlaws) > 0
	}
	return slices.Contains(h.Declared, Promise{Of: of, Property: p})
}

// PromisedOf reports whether the header holds any promise of an object. Reports do not
// mention the holder of a lock without promises: such a lock keeps no client out.
func (h *Header) PromisedOf(of variant.Object) bool {
	for _, q := range h.Promises {
		if q.Of == of {
			return true
		}
	}
	return false
}

// Has reports whether the history is about an object: the header lists it, names a
// variant of it, or holds a promise of it.
func (h *Header) Has(of variant.Object) bool {
	return slices.Contains(h.Objects, of) || h.Variant(of) != "" || h.PromisedOf(of)
}

// Variant is the name of the variant that the history is about, of this object; empty
// when there is none.
func (h *Header) Variant(of variant.Object) string {
	switch of {
	case variant.Lock:
		return h.Lock
	case variant.Sale:
		return h.Sale
	case variant.Queue:
		return h.Queue
	case variant.IDs:
		return h.IDs
	case variant.Dispatch:
		return h.Dispatch
	}
	return ""
}

// Trailer closes a history: a history file without one was cut off.
type Trailer struct {
	// Interrupted says that the user stopped the run before its end.
	Interrupted bool `json:"interrupted,omitempty"`
	// Aborted says what else ended the run early: a server that died, an answer that never came. Such a run never
	// passes.
	Aborted string `json:"aborted,omitempty"`
	// Elapsed is how long the load ran, from the start of the first client to
	// the end of the last.
	Elapsed time.Duration `json:"elapsed_ns"`
	// Commands is how many commands the clients sent in that time, including those within a pipeline, not those within
	// a script; 0: not counted.
	Commands int64 `json:"commands,omitempty"`
	// CommandMedian and CommandTail are the median and the 99th percentile of how long
	// commands took, from when clients asked for them until replies were delivered, in an
	// engine that measures it; 0: not measured.
	CommandMedian time.Duration `json:"command_p50_ns,omitempty"`
	CommandTail   time.Duration `json:"command_p99_ns,omitempty"`
	// Unrecovered says what had not recovered from a fault at the end of the run.
	Unrecovered string `json:"unrecovered,omitempty"`
	// Befell are faults, in the vocabulary of flaws, that somebody else brought about during the run.
	Befell []variant.Fault `json:"befell,omitempty"`
	// Notes are facts about the run that no operation shows, in sentences.
	Notes []string `json:"notes,omitempty"`
	// Faults are the results of the faults of the header, in that order.
	Faults []FaultCount `json:"faults,omitempty"`
	// Servers holds what the servers reported of their own work during the run. A server
	// that reports nothing is missing.
	Servers []ServerLoad `json:"servers,omitempty"`
	// Arrivals says how the arrivals of an open load were begun; nil: the load was closed.
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// Pool is the cost of sharing connections between clients; nil: it is not known, or
	// each client had its own.
	Pool *PoolUse `json:"pool,omitempty"`
}

// PoolUse is the cost of sharing connections between clients.
type PoolUse struct {
	// Sent is how many commands and pipelines the clients sent, and Took the sum of their durations, until the answers.
	Sent int64         `json:"sent"`
	Took time.Duration `json:"took_ns"`
	// Waited is how many of them had to wait for a connection, and Wait the sum of these
	// waits, which is a part of Took.
	Waited int64         `json:"waited"`
	Wait   time.Duration `json:"wait_ns"`
}

// Arrivals says how the arrivals of an open load were begun: each is a step of a client.
type Arrivals struct {
	// Begun is how many arrivals were begun, and Missed how many were due but never begun.
	// Waited is how many of those begun were due when no client was free.
	Begun  int64 `json:"begun"`
	Missed int64 `json:"missed,omitempty"`
	Waited int64 `json:"waited,omitempty"`
	// All rates are per second. Offered is the rate at which the arrivals that were begun
	// were due, Achieved the rate at which they were begun, and Highest the highest rate of
	// the planned load.
	Offered  float64 `json:"offered_per_s"`
	Achieved float64 `json:"achieved_per_s"`
	Highest  float64 `json:"highest_per_s"`
	// Late is how much later than due the arrivals were begun. It is the sum of ForClient,
	// the wait until a client was free, and Driver, the time from then, or from the due
	// time, until the client began.
	Late      Spans `json:"late_ns"`
	ForClient Spans `json:"for_client_ns"`
	Driver    Spans `json:"driver_ns"`
	// Step is how long a client was busy with one arrival.
	Step Spans `json:"step_ns"`
}

// Spans are percentiles of durations.
type Spans struct {
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p999"`
	Max  time.Duration `json:"max"`
}

// ServerLoad is a server's own reports of its work during a run, in the order of time.
type ServerLoad struct {
	// Server names it: "server 1".
	Server  string       `json:"server"`
	Samples []LoadSample `json:"samples"`
}

// LoadSample is a server's work since it was started.
type LoadSample struct {
	// At is the time of the report, since the start of the run.
	At time.Duration `json:"at_ns"`
	// CPU is the processor time that its process has used.
	CPU time.Duration `json:"cpu_ns"`
	// Commands is how many commands it has executed, of all its clients and within scripts.
	Commands int64 `json:"commands"`
}

// FaultCount is the result of one fault in a run.
type FaultCount struct {
	// Name is the fault's sentence, Level where it fires: client, wire, server.
	Name  string `json:"name"`
	Level string `json:"level"`
	// Fired is how often it fired in a way that could matter. Holders and Waiters count the
	// injections that hit a client while it held the lock, or while it was trying to obtain
	// it; they are nil if that is unknown, as on connections that clients share.
	Fired   int64  `json:"fired"`
	Holders *int64 `json:"holders,omitempty"`
	Waiters *int64 `json:"waiters,omitempty"`
	// Vain is how often it was carried out without an effect; VainWhy is the reason the first time. Effect describes
	// the effect of the injections on the run.
	Vain    int64  `json:"vain,omitempty"`
	VainWhy string `json:"vain_why,omitempty"`
	// Matched is how often it might have fired, if it fires at one of these times or by chance.
	Matched int64 `json:"matched,omitempty"`
	// Partly is how often an error, or the end of the run, ended an injection that had begun to take effect.
	Partly int64  `json:"partly,omitempty"`
	Effect string `json:"effect,omitempty"`
	// Failed is the error of its injection or healing.
	Failed string `json:"failed,omitempty"`
}

// History is a recorded run, read back.
type History struct {
	Header Header
	// Ops are all operations in completion order: by Return, with an unknown operation where its client gave up. It is
	// nil if [Open] left the history on the disk: see [History.Each].
	Ops []Op
	// Trailer is nil if the history was cut off before it or is damaged, or if JSON lines had none that counts the
	// operations.
	Trailer *Trailer
	// Cut says, in a sentence, where and why reading stopped before the end; "" if it did not. All operations before
	// the cut are in Ops.
	Cut string
	// Damaged says that the history is not as it was written: a part was deleted, doubled, moved or altered. Then Cut
	// says what, Trailer is nil, and nothing follows from the operations: neither a pass nor a violation.
	Damaged bool
	// SHA256 is the digest of the bytes from which the history was read, in hexadecimal.
	SHA256 string
	// Remarks are facts about the file, in sentences.
	Remarks []string

	stream *stream // nil: all of it is in memory
}
