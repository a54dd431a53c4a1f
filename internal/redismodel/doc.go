// Package redismodel is a Redis server as a value, for a search over the
// interleavings of its clients. A [State] never changes; a command makes a new
// one and a reply, which is, byte by byte, that of Redis 7.0 in RESP2.
//
// The model never guesses. A command, an option or a Lua function that it does
// not know is named in [Info], and the search that met it is inconclusive.
//
// Where Redis leaves the order of a reply open (HGETALL, HKEYS, HVALS, SMEMBERS)
// the reply is sorted, and [Info] says which parts of it might be in another order: a
// small hash or set keeps the order of insertion, which is no part of a state here.
package redismodel
