// Package replay drives the schedule of a counterexample against real servers. It runs the
// same code as the search, stops it before every command, and sends each command when its
// turn comes.
package replay
