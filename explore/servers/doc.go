// Package servers models the Redis servers of a search.
//
// [Servers] gives a number to every state of the servers, to every call that a client makes
// and to every answer. It remembers what a call does to a state, what happens in a state as
// time passes, and what a state becomes when clients are exchanged. Package
// [oversell/internal/redismodel] executes the commands.
//
// Servers and clients go by one clock. It starts at [Epoch], counts in units of [TickUnit]
// and goes no further than [Horizon].
package servers
