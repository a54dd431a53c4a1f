// Package servers models the Redis servers of a search.
//
// [Servers] gives a number to every state of the servers, to every call that a client makes
// and to every answer. It remembers the effect of a call on a state, what happens in a state as time passes, and the
// state that results when clients are exchanged. Package [oversell/internal/redismodel] executes the commands.
//
// Servers and clients share one clock. It starts at [Epoch], counts in units of [TickUnit] and ends at [Horizon].
package servers
