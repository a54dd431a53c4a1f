// Package wire is a proxy for the Redis protocol that delays, drops and interrupts traffic on request.
//
// It stands between any client, in any language, and one server. It understands
// RESP2 and RESP3 well enough to know where a command and its reply begin and
// end, so that it can act on one command among many in a pipeline: drop it, or
// apply it and drop its answer, or apply it late. All other bytes pass unchanged,
// although they may be split into different pieces.
//
// [Listen] opens a [Proxy]. Its [Options.Judge] sees every command, in order on
// each connection, and answers with an [Action]: the caller decides which
// actions to take, and how often. [Options.Fired] is called for each action that took
// effect. [Proxy.Cut], [Proxy.Restore] and [Proxy.Sever] act on all connections
// at once, as a partition of the network does.
//
// The proxy follows three rules.
//
// In a pipeline, the commands before the one that is hit are executed and
// answered normally: an action that ends a connection waits until those answers
// have been delivered. The commands after it never reach the server.
//
// The proxy passes on a close as a close and a reset as a reset. The end of a stream passes on
// in each direction by itself, and a connection that one side
// reset is reset on the other.
//
// What the proxy cannot follow, it passes on. A connection that stops carrying
// commands and their replies (MONITOR, replication, the debugger, bytes that are
// not RESP, subscribing inside a transaction) passes untouched from there on, and
// is not judged any more.
package wire

import "time"

// Direction is one of the two ways that bytes travel.
type Direction string

// The directions. The zero value means both.
const (
	Both     Direction = ""
	Requests Direction = "requests" // from the client to the server
	Replies  Direction = "replies"  // from the server to the client
)

// Verb is the kind of action on a command.
type Verb string

// The verbs. The zero value passes the command on unaltered, and so does a verb
// that is not listed here.
//
// DropReply, ResetAfter and a Trickle of the reply need a reply: they do nothing
// to a command that has none (CLIENT REPLY OFF), nor to one after which the proxy
// does not follow the connection any more (MONITOR).
const (
	Pass Verb = ""
	// Delay holds the request back for a time, and everything behind it on the
	// same connection, the end of the stream included. Replies are not held.
	Delay Verb = "delay"
	// DropRequest swallows the command: the server never sees it, nor anything
	// behind it. The client's connection is closed as soon as the commands before
	// it are answered.
	DropRequest Verb = "drop-request"
	// DropReply lets the server execute the command, waits for its reply, and
	// swallows that. The client's connection is closed then. What the client sent
	// behind the command does not reach the server.
	DropReply Verb = "drop-reply"
	// Late closes the client's connection as soon as the commands before it are
	// answered, and has the server execute the command after a time, when the
	// client has given up: on the client's old connection to the server, so under
	// the same login, database, transaction and watched keys. The reply goes
	// nowhere. Closing the proxy, or severing its connections, before that time
	// cancels the command. In a transaction that is still open, a late command is
	// only queued late, which has no effect; make EXEC late instead.
	Late Verb = "late"
	// Reset answers with a real TCP reset, the command not executed, as soon as
	// the commands before it are answered.
	Reset Verb = "reset"
	// ResetAfter is Reset after the server has executed the command.
	ResetAfter Verb = "reset-after"
	// HalfOpen leaves the connection open, and nothing passes on it any more in
	// either direction, this command included, for a time; 0: forever. With a
	// direction, HalfOpen stops that direction only: with Replies the server
	// executes this command and the next ones, and the client gets no answer.
	// After the time, the held bytes are sent on.
	HalfOpen Verb = "half-open"
	// Trickle sends the bytes of the reply, or of the request, one by one with a
	// pause after each.
	Trickle Verb = "trickle"
)

// Action is what a proxy does to one command.
type Action struct {
	Verb Verb
	// After is the time of Delay, Late and HalfOpen, and Trickle's pause.
	After time.Duration
	// Direction is HalfOpen's and Trickle's. Trickle takes Both for Replies.
	Direction Direction
}

// Command is a request as the proxy saw it.
//
// Of a request longer than 64 KB the proxy sees only the beginning, and the rest
// streams through: Args are the arguments within the first 64 KB, the last of
// them cut short, and Key is empty if it is not among the whole ones.
type Command struct {
	// Conn is the number of the client's connection, from 1 in order of arrival,
	// and Client that connection's address as the proxy sees it.
	Conn   int64
	Client string
	// Name is the command in capitals. Key is its first key, or empty if it has none;
	// for a command that the proxy does not know, it is the first argument. Args are
	// all arguments as sent, the command's name first; they are valid only during the
	// call of Judge.
	Name, Key string
	Args      [][]byte
}
