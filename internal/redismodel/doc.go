// Package redismodel models a Redis server as a value, for a search over the interleavings of its
// clients. A [State] is immutable: a command returns the state that follows and a reply, which
// equals that of Redis 7.0 in RESP2, byte for byte.
//
// The model never guesses. [Info] names a command, an option or a Lua function that it does not know, and a search that
// meets one is inconclusive.
//
// Redis does not define the order of some replies (HGETALL, HKEYS, HVALS, SMEMBERS, SINTER, SUNION,
// SDIFF). Here they are in the order of fields or members, and [Info.Unordered] tells which parts of a
// reply may come in another order. In Redis the order depends on the encoding and, for a small
// hash, on the order of insertion, which is not part of a state here.
package redismodel
