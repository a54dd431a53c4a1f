// Package faults injects faults, counts them, and heals them.
//
// A [Fault] is a sentence: what happens, to whom, and when.
//
//	crash after SETNX 1%
//	freeze holder 3s every 2s
//	drop-reply DECR nth 7
//	restart node 3 empty at 1s
//
// [Parse] reads it; [Kinds] lists the kinds of faults, one file each. A kind fires at one of three levels: a client,
// between two of its commands ([Client], a hook on its connections); the wire, in a proxy that knows the protocol
// (package wire); or a server, where many kinds need servers that this program started.
//
// An [Injector] carries out the faults of one run. It counts how often each fault fired and whom it hit, because a
// fault that never fired has shown nothing; it heals the faults, and reports a system that did not recover.
package faults

import (
	"context"
	"time"

	"oversell/server"
	"oversell/variant"
	"oversell/wire"
)

// Level is where a fault fires.
type Level string

// The levels.
const (
	// OnClient: between two commands of a client.
	OnClient Level = "client"
	// OnWire: between a client and a server.
	OnWire Level = "wire"
	// OnServer: at a server, or several.
	OnServer Level = "server"
)

// Fault is one parsed sentence of the language. The zero values of Where and When mean "anywhere" and "once, at the
// first opportunity".
type Fault struct {
	// Text is the given sentence, with single spaces. It names the
	// fault in histories and reports.
	Text string
	Kind Kind
	// Amount is the kind's own duration: the length of a pause, the delay of a reply, the step of a clock (which may be
	// negative), the downtime of a restarted server.
	Amount time.Duration
	// Empty says of a restart that the server forgets its data.
	Empty bool
	Where Where
	When  When
}

// forGood is longer than any run.
const forGood = 1000 * time.Hour

// lasts returns how long the fault is in force before it is healed.
func (f Fault) lasts() time.Duration {
	switch {
	case f.When.ForGood:
		return forGood
	case f.When.For > 0:
		return f.When.For
	case f.Kind.Lasts != nil:
		return f.Kind.Lasts(f)
	}
	return 0
}

// Moment is when a fault fires, relative to a command.
type Moment string

// The moments.
const (
	AnyMoment Moment = ""
	Before    Moment = "before" // the command is sent
	After     Moment = "after"  // the command was answered, and the client has not seen the answer
)

// State is what a client is doing with the lock.
type State string

// The states.
const (
	AnyState State = ""
	// Idle: the client neither waits for a lock nor holds one.
	Idle State = "idle"
	// Waiting: in an acquisition.
	Waiting State = "waiter"
	// Holding: from the return of the acquisition to the call of the release.
	Holding State = "holder"
)

// Where narrows a fault to some commands, clients or servers.
type Where struct {
	Moment Moment
	// Command is a command's name in capitals, as SETNX; empty: any. SET with NX
	// also answers to SETNX, and EVALSHA to EVAL.
	Command string
	// Key is a pattern with * and ? that the command's first key must match;
	// empty: any.
	Key string
	// During is the client's operation (acquire, buy, release, …), as named in histories; empty: any.
	During string
	// State is the state of the clients that are hit; empty: any.
	State State
	// Client and Node are numbers, counted from 1; 0: any. Servers are numbered as
	// server.Target.Servers lists them.
	Client, Node int
	// Direction is the direction that a cut stops: wire.Requests, wire.Replies or, empty, both. For a trickle it is the
	// direction that trickles, and empty means wire.Replies.
	Direction wire.Direction
	// First narrows the fault to the first command that is answered after a grant.
	First bool
}

// When says how often and from when on a fault fires. The zero value means once.
type When struct {
	// At is when the fault first may fire, since the start of the load.
	At time.Duration
	// Every repeats it; 0: never.
	Every time.Duration
	// For is how long the fault lasts; 0: the kind's own time.
	For time.Duration
	// ForGood says that the fault lasts to the end of the run.
	ForGood bool
	// Nth is the only opportunity at which it fires, counted from 1; 0: any.
	Nth int64
	// Chance is the probability at each opportunity; 0: 1.
	Chance float64
	// Times is how often the fault may fire; 0: once, or without limit if Every
	// or Chance is given.
	Times int64
}

// Kind is a type of fault. Kinds are listed in [Kinds]. Each level needs one function:
// Disrupt for a client, Rule for the wire, Inject for a server.
type Kind struct {
	// Name is unique: "crash", "freeze", "freeze-node".
	Name  string
	Level Level
	// Syntax is the sentence with its parts, for help texts, and Summary what it
	// does, in one line.
	Syntax, Summary string
	// Takes lists the parts of a sentence that this kind accepts; any other part is refused. Requires lists the parts
	// that it needs.
	Takes, Requires []Part
	// Complete fills in the defaults of a sentence of this kind; nil: there are none.
	Complete func(f *Fault)
	// OfLock says that the fault hits the key of the lock under test, and so needs a
	// lock.
	OfLock bool
	// HealLast says that a fault that lasts for good is healed only when all clients
	// have ended, because healing it disturbs them as much as the fault does.
	HealLast bool
	// Restarts says that the fault ends a server and starts it again.
	Restarts bool
	// Provokes returns the faults, in the vocabulary of the variants' flaws, that this
	// fault causes under a lease of this length.
	Provokes func(f Fault, lease time.Duration) []variant.Fault

	// Disrupt returns the disruption of a client at a command.
	Disrupt func(f Fault) Disruption
	// Rule returns the proxies' action on a command.
	Rule func(f Fault) wire.Action
	// Cuts says that a kind of the wire acts on all connections at once, not on
	// commands, and has no Rule.
	Cuts bool
	// Replica says that the fault needs a replica to promote. Needs checks that in
	// detail once the servers run.
	Replica bool
	// Needs says what the target must be able to do; nil: any target will do.
	Needs func(ctx context.Context, f Fault, t *server.Target) error
	// Lasts is how long the fault is in force before it is healed, if the sentence does not say "for"; nil: no time.
	Lasts func(f Fault) time.Duration
	// Inject breaks something, and returns how to heal it. heal is called once, at the
	// latest when the run ends; nil when nothing needs healing. heal may be non-nil even with an error, if the fault
	// was partly injected. heal returns nil only when the system has recovered.
	Inject func(ctx context.Context, f Fault, on Site) (heal func(context.Context) error, err error)
}

// Disruption is what happens to a client between two commands. The zero value does
// nothing.
type Disruption struct {
	// Crash ends the client: no command of it goes out any more.
	Crash bool
	// Cancel ends the operation under way as if its context had been cancelled.
	Cancel bool
	// Resend sends the command again; the client sees the second answer.
	Resend bool
	// Pause stops the client's thread, and Freeze all of the client.
	Pause, Freeze time.Duration
	// Clock moves the client's clock for good.
	Clock time.Duration
}

// needsCommand reports whether the disruption needs a command to act on.
func (b Disruption) needsCommand() bool { return b.Cancel || b.Resend || b.Clock != 0 }

// ofThread reports whether the disruption hits the client's own thread only, and not
// its background threads.
func (b Disruption) ofThread() bool { return b.Pause > 0 || b.Cancel }

// holdsUp reports whether the disruption takes time from the client.
func (b Disruption) holdsUp() bool { return b.Pause > 0 || b.Freeze > 0 }

// effect names the effect of the disruption on a client in this state.
func (b Disruption) effect(s State) string {
	switch {
	case b.Crash && s == Holding:
		return "clients that died while they held a lock or a task"
	case b.Crash:
		return "clients dead"
	case b.Cancel:
		return "operations cut short"
	case s == Holding:
		return "sections lengthened"
	case s == Waiting:
		return "acquisitions lengthened"
	}
	return "operations lengthened"
}

// Site is the environment of a server fault.
type Site struct {
	Target *server.Target
	// Key is the name of the lock's key under test; empty if there is none.
	Key string
	// Await waits until a client holds a lock granted after the call of Await, or until ctx ends.
	Await func(ctx context.Context) error
	// Chosen is the number of the server that the sentence names or, if it names none, of the server that now serves as
	// the first master.
	Chosen int
	// Kind.Inject calls Brought with an effect of the injection on the run and the number of times it occurred, and
	// Vain with the reason why an injection had no effect, which is then not counted. Both may also be called while the
	// fault is healed, and both may be nil.
	Brought func(what string, n int64)
	Vain    func(why string)
	// Over reports the time at which the fault was over, if that is before heal returns; may be nil.
	Over func(time.Time)
}

// Part is a part of a sentence.
type Part string

// The parts.
const (
	TakesMoment    Part = "before or after a command"
	TakesCommand   Part = "a command"
	TakesKey       Part = "key PATTERN"
	TakesDuring    Part = "in OPERATION"
	TakesState     Part = "holder or waiter"
	TakesClient    Part = "client N"
	TakesNode      Part = "node N"
	TakesAmount    Part = "a duration"
	TakesEmpty     Part = "empty"
	TakesDirection Part = "requests or replies"
	TakesFor       Part = "for D"
	TakesChance    Part = "P%"
	TakesNth       Part = "nth N"
	TakesAt        Part = "at D" // which every kind takes
)
