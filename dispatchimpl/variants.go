package dispatchimpl

import "oversell/variant"

// promises lists what [variant.TextDispatch] demands of a dispatch.
var promises = []variant.Property{variant.OneHolderPerTask, variant.HolderCommits, variant.TaskReturns}

// The mechanisms behind the flaws.
const (
	whyTwoHolders = "two users find the same candidate, both are told that they locked it, and the later handover overwrites the earlier"
	whyUnchecked  = "two users find the same candidate, and it is handed to both without a check"
	whyTwoCommits = "a task that two users hold is submitted twice: the UPDATE uses only the task's id and checks no holder"
	whyNoReturn   = "the lock of a task whose holder went away is never obtained again, so that the task does not return"
	whyLateCommit = "a user who outlived the limit submits by the task's id, though the task has returned or another has it"
)

// Variants are all the dispatches, in the order in which reports show them.
var Variants = []Variant{
	{
		Name:     "dispatch-locked",
		Source:   variant.TextDispatch,
		Summary:  "a user who locks a candidate gets it, and submits it by its id; relies entirely on the lock",
		Promises: promises,
		Flaws: []variant.Flaw{
			{Property: variant.OneHolderPerTask, Fault: variant.NoFault, Under: variant.Unserialized, Why: whyTwoHolders},
			{Property: variant.HolderCommits, Fault: variant.NoFault, Under: variant.Unserialized, Why: whyTwoCommits},
			{Property: variant.HolderCommits, Fault: variant.Overrun, Why: whyLateCommit},
			{Property: variant.TaskReturns, Fault: variant.NoFault, Under: variant.Stuck, Why: whyNoReturn},
		},
		Needs: variant.Needs{SQL: true},
		New:   newLocked,
	},
	{
		Name:     "dispatch-fenced",
		Source:   "ours, dispatch-locked corrected",
		Summary:  "every UPDATE checks the lock's fencing token; after the end of a hold it finds no row",
		Promises: promises,
		Flaws:    []variant.Flaw{{Property: variant.TaskReturns, Fault: variant.NoFault, Under: variant.Stuck, Why: whyNoReturn}},
		Needs:    variant.Needs{SQL: true, Fence: true},
		New:      newFenced,
	},
	{
		Name:     "dispatch-unchecked",
		Source:   "ours, control",
		Summary:  "the first candidate is handed over without a lock or any other check",
		Promises: promises,
		Flaws: []variant.Flaw{
			{Property: variant.OneHolderPerTask, Fault: variant.NoFault, Why: whyUnchecked},
			{Property: variant.HolderCommits, Fault: variant.NoFault, Why: whyTwoCommits},
			{Property: variant.HolderCommits, Fault: variant.Overrun, Why: whyLateCommit},
		},
		Needs:   variant.Needs{SQL: true},
		Control: true,
		New:     newUnchecked,
	},
}

// Find returns the dispatch with this name.
func Find(name string) (Variant, bool) {
	return variant.First(Variants, func(v Variant) bool { return v.Name == name })
}
