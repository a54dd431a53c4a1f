// Package monitor is what the monitors of package checker are made of: what a monitor
// and its verdict are, and the parts that monitors of several objects share, such as a
// state for each key, the stretches of time in which a lock is held, and the largest value
// so far.
//
// Nothing here is safe for concurrent use: the monitors of one object belong to one
// goroutine.
package monitor
