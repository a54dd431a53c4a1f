package explore

import (
	"oversell/history"
	"oversell/scenarios"
	"oversell/variant"
)

// entryKind returns the kind of operation that shows that a scenario tested something.
func entryKind(s scenarios.Scenario) history.Kind {
	switch {
	case s.Uses(variant.Sale):
		return history.Buy
	case s.Uses(variant.Queue):
		return history.Pop
	case s.Uses(variant.IDs):
		return history.NextID
	}
	return history.Acquire
}

// tally returns how many operations of kind x.entry, and how many purchases, an event completes: 0
// or 1.
func (x *search) tally(e Event) (entered, sold uint8) {
	if e.End && e.Op.Outcome == history.OK {
		return flag(e.Op.Kind == x.entry), flag(e.Op.Kind == history.Buy)
	}
	return 0, 0
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func flagged(b bool) int64 { return int64(flag(b)) }
