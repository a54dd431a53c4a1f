// Package lua runs the scripts that Redis runs: Lua 5.1 with the libraries of Redis
// 7.0, by the interpreter gopher-lua, whose differences from the one in Redis it
// levels.
//
// It knows what scripts of locks, sales and queues need, and never guesses. A script
// that uses something else is told to the [Redis] that it calls as unknown, and has no
// reply.
package lua
