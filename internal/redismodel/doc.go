// Package redismodel is a Redis server as a value, for a search over the interleavings of its clients. A [State] never
// changes; a command makes a new one and a reply, which equals that of Redis 7.0 in RESP2, byte by byte.
//
// The model never guesses. [Info] names a command, an option or a Lua function that it does not know, and a search that
// meets one is inconclusive.
//
// Where Redis does not define the order of a reply (HGETALL, HKEYS, HVALS, SMEMBERS) the reply is sorted, and [Info]
// says which parts of it might be in another order: a small hash or set keeps the order of insertion, which is not part
// of a state here.
package redismodel
