package lockimpl

import "oversell/variant"

// newPHPLockAtomic returns the documents' lock with its idea kept: SETNX, then an
// expiry, and takeover of a dead owner, in one script with the server's time.
func newPHPLockAtomic(env variant.Env) Locker {
	return scripted{
		env:       env,
		onAcquire: phpLockAtomicAcquireScript,
		onExtend:  phpLockAtomicExtendScript,
		onRelease: phpLockAtomicReleaseScript,
		via:       map[int64]string{1: "script (SETNX, PEXPIRE)", 2: "script (takeover of a dead owner)"},
	}
}
