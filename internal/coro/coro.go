// Package coro runs a client as a coroutine: ordinary code that is stopped
// before every command and every wait, and told what it observes there.
//
// A client's only contact with the world is its variant.Env. Here every command that goes
// through Env.Redis, every reading of Env.Clock and every wait parks the client; the driver
// looks at [Client.Pending], decides what happens, and lets it go on with an [Observation].
// Nothing else moves the client, so its state is a function of what it has observed: the same
// observations, fed to the same code again, bring it to the same place.
package coro

import "time"

// Kind is what a thread stands before.
type Kind uint8

// The kinds of requests.
const (
	// Command: a command, a pipeline or a transaction for a server.
	Command Kind = iota
	// Clock: a reading of the clock.
	Clock
	// Sleep: the thread sleeps until Until at least, or to its Deadline.
	Sleep
	// Pause: the thread goes on whenever it is let: a client's start, a critical
	// section, a wait for a lock.
	Pause
	// Boundary: the client is between two rounds, and Label is all that it remembers.
	Boundary
)

// Request is what one thread of a client stands before.
type Request struct {
	// Thread is 0 for the client's own. Each that is made by Env.Go has the lowest number
	// that no other has which has not ended.
	Thread int
	Kind   Kind
	// Label says what a Pause is for, or what a client remembers at a Boundary. It is
	// "join" for a Sleep that is the time limit of a wait for another thread, and for a Clock
	// ForLimit or ForSleep if the program does not see the time, but only what it is for.
	Label string
	// Node is the number of the server for which Commands are.
	Node int
	// Commands are names and arguments as they go on the wire; several are a
	// pipeline, or, if Tx, one MULTI … EXEC. A script is always an EVALSHA, in lower
	// case, whose text is in Options.Scripts.
	Commands [][]string
	Tx       bool
	// Conn numbers, from 1, the connections of this client on which something is watched, from
	// WATCH to EXEC or UNWATCH; 0 is any other, which has no state. When there is no answer the
	// library closes the connection.
	Conn int
	// Until is the end of a Sleep, since the epoch of the clock.
	Until time.Duration
	// Deadline is when the request's context ends, since the epoch of the clock; 0:
	// never. It is for the driver to bring about, by a Now that is not before it.
	Deadline time.Duration
}

// What a Clock is for if the program does not get to see the time.
const (
	ForLimit = "limit"
	ForSleep = "sleep"
)

// Failure is how a command fails for its client.
type Failure uint8

// The failures.
const (
	// Answered: it does not fail.
	Answered Failure = iota
	// NoAnswer: the client gives up waiting for an answer.
	NoAnswer
	// TimedOut: the request's context ended first.
	TimedOut
)

// Observation is what a thread gets to see.
type Observation struct {
	// Now is the time, since the epoch of the clock. A thread learns it from Clock alone, but
	// it ends contexts in every kind of observation; 0 ends none.
	Now time.Duration
	// Reply is the answer to a Command in RESP2, as a server writes it: for several
	// commands one reply after the other, for a transaction the replies to MULTI, to
	// each command and to EXEC.
	Reply string
	// Failure, for a Command, is an error instead of a Reply.
	Failure Failure
}
