package reports

import "oversell/variant"

// ExplorationSchema identifies the format of an Exploration.
const ExplorationSchema = "oversell-exploration/1"

// Exploration is the result of a search of all interleavings: a schedule that breaks a promise, or that
// there is none within bounds. It holds what is needed to replay the schedule.
type Exploration struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	Lock     string `json:"lock,omitempty"`
	Sale     string `json:"sale,omitempty"`
	Queue    string `json:"queue,omitempty"`
	IDs      string `json:"ids,omitempty"`
	// System is the file of the system that replaces one of these, if its code is outside of oversell.
	System string `json:"system,omitempty"`
	// SystemFrom is the same file, relative to the directory of the file that holds this document; empty if it is not in a
	// file of explore.
	SystemFrom string `json:"system_from,omitempty"`
	// Masters is the number of independent servers.
	Masters int   `json:"masters"`
	Stock   int64 `json:"stock,omitempty"`
	// Quantity is how many pieces each order is for.
	Quantity int     `json:"quantity,omitempty"`
	TTLMS    float64 `json:"ttl_ms,omitempty"`
	// HoldMS is the length of a section of mutex; the lock is extended after every half lease.
	HoldMS float64 `json:"hold_ms,omitempty"`
	// VisibilityMS is how long a consumer has for a task, if there is such a limit.
	VisibilityMS float64 `json:"visibility_ms,omitempty"`

	Bounds Bounds `json:"bounds"`

	// Verdict is Pass, Violated or Inconclusive; Why says what was proved, or why it is inconclusive.
	Verdict     string     `json:"verdict"`
	Why         string     `json:"why"`
	Expected    string     `json:"expected"`
	ExpectedWhy []string   `json:"expected_why,omitempty"`
	Properties  []Property `json:"properties"`

	// Counterexample is nil unless a promise was broken.
	Counterexample *Counterexample `json:"counterexample,omitempty"`

	Stats Effort `json:"stats"`
	// NotChecked are sentences about what this search does not cover.
	NotChecked []string `json:"not_checked"`

	// Command is the command line that repeats this search.
	Command string `json:"command,omitempty"`
}

// ExplorationsSchema identifies the format of Explorations.
const ExplorationsSchema = "oversell-explorations/1"

// Explorations is what --json prints: one or more searches.
type Explorations struct {
	Schema       string        `json:"schema"`
	Explorations []Exploration `json:"explorations"`
}

// ExitCode returns the exit code of all searches together.
func (e Explorations) ExitCode() int {
	d := Document{}
	for _, x := range e.Explorations {
		d.Runs = append(d.Runs, Run{Verdict: x.Verdict})
	}
	return d.ExitCode()
}

// Bounds are the limits of a search.
type Bounds struct {
	Clients  int `json:"clients"`
	Tries    int `json:"tries"`    // acquisitions, or rounds, of each client
	Crashes  int `json:"crashes"`  // clients that may die
	Lost     int `json:"lost"`     // messages, requests or replies, that may be lost
	Late     int `json:"late"`     // requests that may be executed after their client gave up
	Advances int `json:"advances"` // times that the clock moves while a client could run
	// Resends is how often a buyer without an answer sends the same order again.
	Resends int `json:"resends"`
	// Stalls is how often a client may be held up between reading the clock and its next action: another reading,
	// or a command. Before its first reading after a reply or a wait, and everywhere else, it may be held up at any
	// time. A command with a time limit may be on its way for that long without a stall.
	Stalls int `json:"stalls"`
	// Waits is how often a client waits within one acquisition before it is told to stop; 0: as often as it will.
	Waits int `json:"waits,omitempty"`
	Depth int `json:"depth,omitempty"`
	// TimeMS and MemoryMB end the search; 0: no limit.
	TimeMS   float64 `json:"time_ms,omitempty"`
	MemoryMB int     `json:"memory_mb,omitempty"`
}

// Effort is the effort of a search. It counts transitions, not schedules: one transition stands for all schedules
// that share it.
type Effort struct {
	States      int64 `json:"states"`
	Transitions int64 `json:"transitions"`
	Depth       int   `json:"depth"` // steps of the longest schedule
	// Executions is how often real code was run to learn its next action, and Observed how many different
	// observations a client can have made.
	Executions int64 `json:"executions"`
	Observed   int64 `json:"observed"`
	// Entered counts entries into the critical section (for queues deliveries, for id generators numbers).
	Entered  int64 `json:"entered"`
	Sold     int64 `json:"sold,omitempty"`
	Advances int64 `json:"advances"`
	Expiries int64 `json:"expiries"`
	// Lapses counts leases, as granted to clients, that ended before their release.
	Lapses  int64 `json:"lapses"`
	Crashes int64 `json:"crashes"`
	Lost    int64 `json:"lost"`
	Late    int64 `json:"late"`
	// Ends counts the end states in which the final state of the server was judged.
	Ends int64 `json:"ends"`
	// Collision bounds the probability that two different states were taken for one.
	Collision     float64 `json:"collision_probability"`
	BytesPerState float64 `json:"bytes_per_state"`
	ElapsedMS     float64 `json:"elapsed_ms"`
	// Waiting is the number of states still to be examined; 0 at the end.
	Waiting int64 `json:"waiting,omitempty"`
	// Random describes the random schedules tried after the exhaustive search was ended.
	Random *RandomEffort `json:"random,omitempty"`
}

// RandomEffort counts random schedules.
type RandomEffort struct {
	Schedules int64 `json:"schedules"`
	// Faultless counts those without faults, which Chances applies to. In them time passes only when no client can
	// go on.
	Faultless int64 `json:"faultless"`
	Steps     int   `json:"steps"` // of the longest one
	// Chances are lower bounds on the probability that they show a bug that needs no fault and one step, or two, or
	// three steps in one order.
	Chances []float64 `json:"chances"`
}

// Counterexample is a schedule that breaks a promise: a shortest one, unless it was found at random.
type Counterexample struct {
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
	// Sentence describes the violation, without a full stop.
	Sentence string `json:"sentence"`
	// Clients are the titles of the columns.
	Clients []string `json:"clients"`
	Steps   []Step   `json:"steps"`
	// Naming is the kind of client names in Steps; 0: short ones, like token0.1.
	Naming int `json:"naming,omitempty"`
	// Repeat means that the producer of a queue enqueues its first id again in each further try.
	Repeat bool `json:"repeat,omitempty"`
}

// TheClock is the Step.Client of steps that belong to no client.
const TheClock = -1

// Kinds of steps.
const (
	StepStart   = "start"    // a client begins
	StepCommand = "command"  // a command takes effect and gets its reply
	StepPause   = "pause"    // a client continues after a section or a wait
	StepLook    = "look"     // a client reads the clock, and may then be held up
	StepAdvance = "advance"  // time passes
	StepLost    = "lost"     // a request is lost; its client gives up
	StepNoReply = "no-reply" // a command takes effect, and its reply is lost
	StepLate    = "late"     // a client gives up on a request that is still in flight
	StepArrive  = "arrive"   // such a request arrives
	StepCrash   = "crash"    // a client stops for ever
	StepEnd     = "end"      // the final state of the server is judged
)

// The marks of entry into and exit from the critical section.
const (
	MarkEnter = "ENTER"
	MarkLeave = "LEAVE"
)

// Step is one step of a schedule.
type Step struct {
	// AtMS is the time since the start, before the step.
	AtMS float64 `json:"at_ms"`
	Kind string  `json:"kind"`
	// Client is the index of the column, or TheClock.
	Client int `json:"client"`
	Thread int `json:"thread,omitempty"` // of the client, by its position among the clients that could go on
	// Text describes the step, like "set lock exp nx -> OK", without the client, the thread or the node, which are
	// added if needed. For a request without a reply, it is the command, with or without the lost reply; for
	// StepAdvance the consequence, such as "lock expires", or nothing; for StepEnd the finding.
	Text string `json:"text"`
	// Marks are results of the client's operation, like "SOLD 1"; MarkEnter and MarkLeave mark the critical
	// section.
	Marks []string `json:"marks,omitempty"`
	// Redis is what the server holds after the step.
	Redis string `json:"redis,omitempty"`

	// Node, Commands and Reply are the request and its reply in RESP.
	Node     int        `json:"node,omitempty"`
	Commands [][]string `json:"commands,omitempty"`
	Tx       bool       `json:"tx,omitempty"`
	// Conn identifies one of the client's connections that watch keys, from 1; 0: another one.
	Conn  int    `json:"conn,omitempty"`
	Reply string `json:"reply,omitempty"`
	// Clock means that the reply depends on the server's clock.
	Clock bool `json:"clock,omitempty"`
	// Looks is how often, in a StepLook, the client reads the clock; 0: until its next action is something else.
	Looks int `json:"looks,omitempty"`
	// AdvanceMS is how far the clock moves.
	AdvanceMS float64 `json:"advance_ms,omitempty"`
	// Of is, for StepArrive, the number (from 0) of the step that sent the request.
	Of int `json:"of,omitempty"`
}
