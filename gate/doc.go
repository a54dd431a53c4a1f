// Package gate guards a repository: it carries out a plan of what must hold, what must break and what must be fast,
// and reports green or red.
//
// # Safety is absolute
//
// One unexpected violation makes the gate red, whatever a baseline says. Nothing passes by default: a run that
// decided nothing is repeated once and then reported as undecided; a fault that never fired makes a run
// inconclusive; and a run in which no client ever waited for another shows nothing.
//
// # Controls
//
// The absence of violations means something only if a violation would have been seen. So every entry has a control:
// a variant known to break, run in the same configuration, that must be caught. Unless the plan names a control,
// the gate tries variants that declare to break the guarded promises: up to two under the entry's own faults or, if
// there is none, up to four under load alone. If no control is caught, the gate had no power, and is red.
//
// # Speed is relative
//
// Numbers of two machines, or of one machine on two days, cannot be compared. So the candidate and its baseline run
// in turns, in rounds of three: the candidate once and the baseline twice, in random order. The difference between
// the two runs of the baseline is the noise. The decision is an exact signed-rank test, which assumes only the
// random order (see signs); its error rates hold over all measures and all looks of a plan together.
package gate
