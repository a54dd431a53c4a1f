package lockimpl

import "oversell/variant"

// newIncrAtomic returns incr with count, owner and expiry set in one script.
func newIncrAtomic(env variant.Env) Locker {
	return scripted{
		env:       env,
		onAcquire: incrAtomicAcquireScript,
		onExtend:  incrAtomicExtendScript,
		onRelease: incrAtomicReleaseScript,
		via:       map[int64]string{1: "script (HINCRBY, PEXPIRE)"},
	}
}
