// Package locks judges histories of locks: mutual exclusion, ownership, fencing tokens,
// order of service, progress, and linearizability without and with leases.
package locks

import (
	"oversell/checker/monitor"
	"oversell/variant"
)

// Factories lists the monitors of locks.
var Factories = []monitor.Factory{
	{Of: variant.Lock, Property: variant.MutualExclusion, New: lockJudge(variant.MutualExclusion, openCores, (*lock).exclusion, "nobody obtained the lock")},
	{Of: variant.Lock, Property: variant.OwnerOnlyRelease, New: lockJudge(variant.OwnerOnlyRelease, openOwners, (*lock).ownership, "nobody obtained the lock")},
	{Of: variant.Lock, Property: variant.Fencing, OnlyPromised: true, New: lockJudge(variant.Fencing, openTokens, (*lock).rise, "nobody obtained the lock")},
	{Of: variant.Lock, Property: variant.FIFO, OnlyPromised: true, New: lockJudge(variant.FIFO, openLine, (*lock).order, "nobody tried to obtain the lock")},
	{Of: variant.Lock, Property: variant.Progress, New: lockJudge(variant.Progress, openTurns, (*lock).progress, "nobody tried to obtain the lock")},
	{Of: variant.Lock, Property: variant.Linearizable, New: lockJudge(variant.Linearizable, openTryLock, (*lock).linearizable, "nobody tried to obtain the lock")},
}
