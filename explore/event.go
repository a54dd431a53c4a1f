package explore

import (
	"oversell/history"
	"oversell/variant"
)

// Event is the call or the end of an operation of a client.
type Event struct {
	// End tells the end from the call.
	End bool
	// Op is the operation; its outcome counts only at the end. Of its times only Until
	// is set, since the epoch.
	Op history.Op
}

// breach is a promise that was broken.
type breach struct {
	of       variant.Object
	property variant.Property
	// why says in a sentence what happened.
	why string
}
