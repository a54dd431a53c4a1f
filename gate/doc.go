// Package gate guards a repository: it carries out a plan of what must hold, what must
// break and what must be fast, and says green or red.
//
// # Safety is absolute
//
// One broken promise where none may be broken makes the gate red, whatever a baseline
// says. Nothing passes by default: a run that decided nothing is repeated once and is
// then reported as undecided, a fault that never fired is not a test, and a run in which
// no client ever waited for another one shows nothing.
//
// # Controls
//
// That no violation was seen means something only if a violation would have been seen.
// So every entry has a control: something known to be broken, run in the same
// configuration, that must be caught. Unless the plan names a control, the gate chooses
// one by the flaws that the variants declare: a control that breaks the guarded promises
// under the entry's own faults or, if there is none, under load alone. If no control is
// caught, the gate had no power, and is red.
//
// # Speed is relative
//
// Numbers of two machines, or of one machine on two days, cannot be compared. So the
// candidate and its baseline are run in turns, in rounds of three: the candidate once
// and the baseline twice, in an order that is drawn by chance. The difference between
// the two runs of the baseline is the noise. The decision is an exact signed-rank test,
// which assumes nothing but the random order (see signs), with error rates that hold
// over all measures and all looks of a plan together.
package gate
