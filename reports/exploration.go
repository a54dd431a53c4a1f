package reports

import "oversell/variant"

// ExplorationSchema names the form of an Exploration.
const ExplorationSchema = "oversell-exploration/1"

// Exploration is what a search of all interleavings found: the shortest way to
// break a promise, or that there is none within bounds. It holds what is needed
// to drive the same schedule again.
type Exploration struct {
	Schema   string `json:"schema"`
	Scenario string `json:"scenario"`
	Lock     string `json:"lock,omitempty"`
	Sale     string `json:"sale,omitempty"`
	Queue    string `json:"queue,omitempty"`
	IDs      string `json:"ids,omitempty"`
	// System is the file of what takes the place of one of these, if its code is outside of oversell.
	System string `json:"system,omitempty"`
	// Masters is the number of independent servers.
	Masters int   `json:"masters"`
	Stock   int64 `json:"stock,omitempty"`
	// Quantity is how many pieces each order is for.
	Quantity int     `json:"quantity,omitempty"`
	TTLMS    float64 `json:"ttl_ms,omitempty"`
	// HoldMS is how long a section of mutex lasts, which is extended after every half lease.
	HoldMS float64 `json:"hold_ms,omitempty"`
	// VisibilityMS is how long a consumer has for a task, where there is such a limit.
	VisibilityMS float64 `json:"visibility_ms,omitempty"`

	Bounds Bounds `json:"bounds"`

	// Verdict is Pass, Violated or Inconclusive; Why says in a sentence what was
	// proved, or what makes it inconclusive.
	Verdict     string     `json:"verdict"`
	Why         string     `json:"why"`
	Expected    string     `json:"expected"`
	ExpectedWhy []string   `json:"expected_why,omitempty"`
	Properties  []Property `json:"properties"`

	// Counterexample is nil unless a promise was broken.
	Counterexample *Counterexample `json:"counterexample,omitempty"`

	Stats Effort `json:"stats"`
	// NotChecked are sentences that say what this search says nothing about.
	NotChecked []string `json:"not_checked"`

	// Command is the command line that runs this search again.
	Command string `json:"command,omitempty"`
}

// ExplorationsSchema names the form of Explorations.
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
	Advances int `json:"advances"` // times that the clock moves while some client could run
	// Resends is how often a buyer without an answer sends the same order again.
	Resends int `json:"resends"`
	// Stalls are the times that a client may be held up between a look at the clock and
	// what it does next: another look, or the command that it sends. Before its first look
	// after an answer or a wait, and everywhere else, it may be held up at any time.
	Stalls int `json:"stalls"`
	// Waits is how often a client waits within one acquisition before it is told to stop; 0: as often as it will.
	Waits int `json:"waits,omitempty"`
	Depth int `json:"depth,omitempty"`
	// TimeMS and MemoryMB end the search; 0: no limit.
	TimeMS   float64 `json:"time_ms,omitempty"`
	MemoryMB int     `json:"memory_mb,omitempty"`
}

// Effort says what a search did. The counts are of transitions, not of schedules:
// one transition stands for all the schedules that share it.
type Effort struct {
	States      int64 `json:"states"`
	Transitions int64 `json:"transitions"`
	Depth       int   `json:"depth"` // steps of the longest schedule
	// Executions is how often real code was run to learn what it does next, and
	// Observed how many different things a client can have seen.
	Executions int64 `json:"executions"`
	Observed   int64 `json:"observed"`
	// Entered counts entries into the critical section (for queues deliveries, for
	// numbers those given out).
	Entered  int64 `json:"entered"`
	Sold     int64 `json:"sold,omitempty"`
	Advances int64 `json:"advances"`
	Expiries int64 `json:"expiries"`
	// Lapses counts the leases, as promised to clients, that ended before they were given back.
	Lapses  int64 `json:"lapses"`
	Crashes int64 `json:"crashes"`
	Lost    int64 `json:"lost"`
	Late    int64 `json:"late"`
	// Ends counts the end states in which what the server holds was judged.
	Ends int64 `json:"ends"`
	// Collision bounds the probability that two different states were taken for one.
	Collision     float64 `json:"collision_probability"`
	BytesPerState float64 `json:"bytes_per_state"`
	ElapsedMS     float64 `json:"elapsed_ms"`
	// Waiting is how many states are still to be looked at; 0 at the end.
	Waiting int64 `json:"waiting,omitempty"`
	// Random is what was tried at random after the search of all schedules was ended.
	Random *RandomEffort `json:"random,omitempty"`
}

// RandomEffort counts schedules that were drawn at random.
type RandomEffort struct {
	Schedules int64 `json:"schedules"`
	// Faultless are those without faults of which Chances speaks. In them time passes only when
	// no client can go on.
	Faultless int64 `json:"faultless"`
	Steps     int   `json:"steps"` // of the longest
	// Chances are the least probabilities with which they show a bug that needs no fault, and one
	// step, two, three steps in one order.
	Chances []float64 `json:"chances"`
}

// Counterexample is a shortest schedule that breaks a promise.
type Counterexample struct {
	Of       variant.Object   `json:"of"`
	Property variant.Property `json:"property"`
	// Sentence names the mistake, without a full stop.
	Sentence string `json:"sentence"`
	// Clients are the columns' titles.
	Clients []string `json:"clients"`
	Steps   []Step   `json:"steps"`
	// Naming is the kind of names that the clients have in Steps; 0: short ones, like
	// token0.1.
	Naming int `json:"naming,omitempty"`
}

// TheClock is the Step.Client of steps that no client makes.
const TheClock = -1

// The kinds of steps.
const (
	StepStart   = "start"    // a client begins
	StepCommand = "command"  // a command takes effect and is answered
	StepPause   = "pause"    // a client goes on after a section or a wait
	StepLook    = "look"     // a client looks at the clock, and may be held up then
	StepAdvance = "advance"  // time passes
	StepLost    = "lost"     // a request that never arrives; its client gives up
	StepNoReply = "no-reply" // a command takes effect, and the reply never arrives
	StepLate    = "late"     // a client gives up on a request that is still under way
	StepArrive  = "arrive"   // such a request arrives
	StepCrash   = "crash"    // a client is never heard of again
	StepEnd     = "end"      // what the server holds at the end is judged
)

// The marks between which a client is inside its critical section.
const (
	MarkEnter = "ENTER"
	MarkLeave = "LEAVE"
)

// Step is one step of a schedule.
type Step struct {
	// AtMS is the time since the start, before the step.
	AtMS float64 `json:"at_ms"`
	Kind string  `json:"kind"`
	// Client is the column, or TheClock.
	Client int `json:"client"`
	Thread int `json:"thread,omitempty"` // of the client, by its place among the clients that could go on
	// Text is the step as people read it, like "set lock exp nx -> OK", without the client, the
	// thread or the node, which are added where they must be said. For a request without an
	// answer, it is the command, with or without the answer that was lost; for StepAdvance the
	// consequence, such as "lock expires", or nothing; for StepEnd what was found.
	Text string `json:"text"`
	// Marks are what the client's operation came to, like "SOLD 1"; MarkEnter and
	// MarkLeave are those of the critical section.
	Marks []string `json:"marks,omitempty"`
	// Redis is what the server holds after the step.
	Redis string `json:"redis,omitempty"`

	// Node, Commands and Reply are what was sent and answered, the reply in RESP.
	Node     int        `json:"node,omitempty"`
	Commands [][]string `json:"commands,omitempty"`
	Tx       bool       `json:"tx,omitempty"`
	// Conn is which of the client's connections that watch something, from 1; 0: another one.
	Conn  int    `json:"conn,omitempty"`
	Reply string `json:"reply,omitempty"`
	// Clock says that the reply depends on the server's clock.
	Clock bool `json:"clock,omitempty"`
	// Looks is how often, in a StepLook, the client looks at the clock; 0: until it stands before
	// something else.
	Looks int `json:"looks,omitempty"`
	// AdvanceMS is by how much the clock moves.
	AdvanceMS float64 `json:"advance_ms,omitempty"`
	// Of is, for StepArrive, the number (from 0) of the step in which the request was sent.
	Of int `json:"of,omitempty"`
}
