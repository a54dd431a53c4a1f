// Package checker decides from a recorded history whether promises were kept.
//
// Every judgement is a [Monitor]: it reads the operations once, in completion
// order, while a run goes on or from a saved file, and gives a [Verdict] of
// three values. Unknown is the zero value and never passes for Holds.
//
// [Judge] runs all monitors over a saved history; [Running] judges the promises of a run under way.
//
// # Certainty
//
// A verdict is Violated only if no correct object can have given these answers, whatever happened between a call and
// its return; each monitor's comment states the argument and shows the smallest bad history. Intervals are closed.
// Calls sort before returns at equal times, so that an operation called when another returns may come before it. An
// operation without an answer may have its effect at any time after its call, or never.
//
// # Missing operations
//
// A monitor judges the operations that it has seen. Some violations rest on a missing operation, such as a refusal that
// no client's grant explains. They are reported once no such operation can come any more: when Advance has passed them,
// or at the Verdict, which assumes that the history is over. So a verdict during a run may be premature about
// operations in flight; the last verdict is right. In a history that was cut off, where operations in flight are lost,
// such violations are Unknown.
//
// # How it is checked
//
// Every procedure is compared with an oracle on random small histories: porcupine for
// locks without leases and for stocks, a search of all orders in real time for
// leases, the definition itself for the rest.
package checker
