// Package checker decides from a recorded history whether promises were kept.
//
// Every judgement is a [Monitor]: it reads the operations once, in completion
// order, while a run goes on or from a saved file, and gives a [Verdict] of
// three values. Unknown is the zero value and never passes for Holds.
//
// [Judge] runs all monitors over a saved history; a run that is still going on
// feeds [Monitors] itself.
//
// # What certain means
//
// Violated is said only of what no correct object can have done, whatever happened between
// a call and its return; each monitor's comment states the argument and shows the
// smallest bad history. Intervals are closed. Calls sort before returns at equal
// times, so that an operation called when another returns may come before it.
// An operation without an answer may have its effect at any time after its call, or
// never.
//
// # Operations that are not there
//
// A monitor judges by what it has seen. Some violations rest on an operation that is
// missing, such as a refusal that no client's grant explains. They are reported once no
// such operation can come any more: when Advance has passed them, or at the Verdict, which
// takes the history to be over. A verdict that is asked for in the middle of a run may
// therefore be premature about operations in flight; the last verdict is right. In a
// history that was cut off, where operations in flight are lost for good, such violations
// are Unknown.
//
// # How it is checked
//
// Every procedure is compared with an oracle on random small histories: porcupine for
// locks without leases and for stocks, a search of all orders in real time for
// leases, the definition itself for the rest.
package checker
