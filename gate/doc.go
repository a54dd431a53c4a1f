// Package gate guards a repository: it carries out a plan of what must hold, what must
// break and what must be fast, and says green or red.
//
// # Safety is absolute
//
// One broken promise where none may be broken makes the gate red, whatever a baseline
// says. Nothing passes by default: a run that decided nothing is made once more and is
// then reported as such, a fault that never fired is no test, and where nobody ever
// waited for anybody nothing was shown.
//
// # Controls
//
// That nothing was seen means something only if it would have been seen. So every entry
// has a control: something known to be broken, run in the same configuration, that must
// be caught. Unless the plan names one, it is found from the flaws that the variants
// declare: one that breaks what the entry guards by the entry's own faults, or else by
// load alone. Without a control that is caught the gate had no power, and is red.
//
// # Speed is relative
//
// Numbers of two machines, or of one machine on two days, cannot be compared. So the
// candidate and its baseline are run in turns, in rounds of three: the candidate once
// and the baseline twice, in an order that is drawn by chance. What the baseline differs
// from itself is the noise. The decision is an exact signed-rank test, for which the
// drawing is all that it takes (see signs), with error rates that hold over all measures
// and all looks of a plan together.
package gate
