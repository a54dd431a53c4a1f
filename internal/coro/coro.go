// Package coro runs a client as a coroutine: ordinary code that is stopped before every command and every wait, and
// given its observation there.
//
// A client acts only through its variant.Env. Here every command that goes through Env.Redis, every reading of
// Env.Clock and every wait parks the client; the driver looks at [Client.Pending], decides what happens, and resumes it
// with an [Observation]. Nothing else moves the client, so its state is a function of its observations: the same
// observations, given to the same code again, bring it to the same place.
package coro

import "time"

// Kind is the kind of a thread's request.
type Kind uint8

// The kinds of requests.
const (
	// Command: a command, a pipeline or a transaction for a server.
	Command Kind = iota
	// Clock: a reading of the clock.
	Clock
	// Sleep: the thread sleeps until Until at least, or to its Deadline.
	Sleep
	// Pause: the thread goes on when the driver resumes it: a client's start, a critical section, a wait for a lock.
	Pause
	// Boundary: the client is between two rounds, and Label describes its whole memory.
	Boundary
)

// Request is the request at which one thread of a client is parked.
type Request struct {
	// Thread is 0 for the client's own thread. Each thread made by Env.Go gets the lowest number that is not in use.
	Thread int
	Kind   Kind
	// Label is the purpose of a Pause, or the client's memory at a Boundary. For a Sleep that is
	// the time limit of a join it is "join"; for a Clock reading that the program does not see it
	// is ForLimit or ForSleep.
	Label string
	// Node is the number of the server that gets Commands.
	Node int
	// Commands are names and arguments as they go on the wire; several are one MULTI … EXEC if Tx, and otherwise a
	// pipeline. A client of [Start] makes a request of each command of a pipeline. A script is always an EVALSHA, in lower
	// case, whose text is in Options.Scripts.
	Commands [][]string
	Tx       bool
	// Conn is the number, from 1, of a connection of this client on which keys are watched, from
	// WATCH to EXEC or UNWATCH; 0 is any other connection, which has no state. If a command gets no
	// answer, the client library closes its connection.
	Conn int
	// Until is the end of a Sleep, since the epoch of the clock.
	Until time.Duration
	// Deadline is when the request's context ends, since the epoch of the clock; 0: never. The
	// driver ends it by an Observation whose Now is not before it.
	Deadline time.Duration
}

// The purposes of a Clock whose time the program does not see.
const (
	ForLimit = "limit"
	ForSleep = "sleep"
)

// Failure says how a command fails for its client.
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

// Observation is the answer to a thread's request.
type Observation struct {
	// Now is the time, since the epoch of the clock. A thread sees it only at a Clock, but it ends contexts in every
	// kind of observation; 0 ends none.
	Now time.Duration
	// Reply is the answer to a Command in RESP2, as a server writes it: for several
	// commands one reply after the other, for a transaction the replies to MULTI, to
	// each command and to EXEC.
	Reply string
	// Failure, for a Command, is an error instead of a Reply.
	Failure Failure
}
