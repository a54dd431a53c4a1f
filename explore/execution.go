package explore

import (
	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
)

// The names below serve programs that execute code other than as a coroutine: see [Config.Start].

// Execution is one run of a client's code, stepped from outside: a coro.Client, or anything else that can be brought to
// the same place twice.
type Execution = clients.Execution

// Who says which client's code an execution runs.
type Who = clients.ClientSpec

// Event is the call or the end of an operation of a client.
type Event = rules.Event

// Epoch is the time 0 of every search: a whole second, so that leases of whole seconds end on whole seconds.
var Epoch = servers.Epoch

// ErrNondeterministic reports that a client behaved differently after the same observations.
var ErrNondeterministic = clients.ErrNondeterministic
