// Package bubbletest runs the code of the clients of a search in bubbles of
// testing/synctest, for code that starts goroutines and reads the time by itself, and so cannot be stepped as a
// coroutine.
//
// In a bubble, a client is ordinary code: it starts goroutines, the schedule controls time.Now and timers, and
// connections end in the search. It is stepped when all of its goroutines wait, for an answer or for time. It must
// satisfy:
//
//   - After the same observations it does the same, except for random values that are new
//     each time, like tokens; pauses between tries have a fixed length. Every run repeats an
//     earlier one and is compared with it, so a difference is most likely noticed, and ends
//     the search with an error.
//   - It waits for nothing but commands, time, channels and what else counts as durably
//     blocked in testing/synctest. That is not so for a sync.Mutex that one goroutine
//     holds during a command and another waits for.
//   - Its connections are those in Env.Redis. They send each command once, keep to the
//     deadlines of contexts, and have no time limit of their own.
//
// After each answer a client is assumed to read the clock next:
// it may be held up before that, and between that and the next command as often as
// Bounds.Stalls says. This is not covered:
//
//   - A client is not held up between two readings of the clock after one answer, whatever Bounds.Stalls says: the search
//     does not notice that code in a bubble reads the clock.
//   - When a client is held up, all of its goroutines are, with their requests in flight.
//   - A goroutine that a timer wakes runs at that moment; it is held up only before its
//     command arrives. If an answer comes at the same moment, the timer is first; when
//     several timers end at one moment, or two goroutines send the same command to the
//     same server at once, one order of them is tried.
//   - Goroutines that sleep again and again after their client has ended: two sleeps are followed.
//   - Whether the lock can still be obtained after a crash (progress). For the other
//     promises a crash is a client that is never let go on, which all searches try.
package bubbletest
