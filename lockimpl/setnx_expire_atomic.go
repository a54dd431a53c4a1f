package lockimpl

import "oversell/variant"

// newSetnxExpireAtomic returns setnxExpire with both steps in one script, a token, and
// compare-and-delete.
func newSetnxExpireAtomic(env variant.Env) Locker {
	return scripted{
		env:       env,
		onAcquire: setnxExpireAtomicScript,
		onExtend:  extendScript,
		onRelease: releaseScript,
		via:       map[int64]string{1: "script (SETNX, PEXPIRE)"},
	}
}
