// Package monitor holds the building blocks of the monitors of package checker: the interface of a monitor, its
// verdict, and the parts that monitors of several objects share, such as a state for each key, the stretches of time in
// which a lock is held, and the largest value so far.
//
// Its types are not safe for concurrent use: the monitors of one object belong to one goroutine.
package monitor
