package explore

import "oversell/explore/rules"

// Event is the call or the end of an operation of a client.
type Event = rules.Event
