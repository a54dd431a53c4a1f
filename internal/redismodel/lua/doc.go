// Package lua runs the scripts that Redis runs: Lua 5.1 with the libraries of Redis 7.0. It uses the interpreter
// gopher-lua and corrects its differences from the one in Redis.
//
// It supports what scripts of locks, sales and queues need, and never guesses. It reports anything else to the [Redis]
// that the script calls as unknown, and then there is no reply.
package lua
