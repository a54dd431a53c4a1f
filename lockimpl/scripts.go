package lockimpl

import (
	_ "embed" // the scripts
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts, one file each. They run by their SHA and are loaded on demand.
var (
	//go:embed release.lua
	releaseLua    string
	releaseScript = redis.NewScript(releaseLua)

	//go:embed extend.lua
	extendLua    string
	extendScript = redis.NewScript(extendLua)

	//go:embed php_lock_atomic_acquire.lua
	phpLockAtomicAcquireLua    string
	phpLockAtomicAcquireScript = redis.NewScript(phpLockAtomicAcquireLua)

	//go:embed php_lock_atomic_extend.lua
	phpLockAtomicExtendLua    string
	phpLockAtomicExtendScript = redis.NewScript(phpLockAtomicExtendLua)

	//go:embed php_lock_atomic_release.lua
	phpLockAtomicReleaseLua    string
	phpLockAtomicReleaseScript = redis.NewScript(phpLockAtomicReleaseLua)

	//go:embed setnx_expire_atomic.lua
	setnxExpireAtomicLua    string
	setnxExpireAtomicScript = redis.NewScript(setnxExpireAtomicLua)

	//go:embed incr_atomic_acquire.lua
	incrAtomicAcquireLua    string
	incrAtomicAcquireScript = redis.NewScript(incrAtomicAcquireLua)

	//go:embed incr_atomic_extend.lua
	incrAtomicExtendLua    string
	incrAtomicExtendScript = redis.NewScript(incrAtomicExtendLua)

	//go:embed incr_atomic_release.lua
	incrAtomicReleaseLua    string
	incrAtomicReleaseScript = redis.NewScript(incrAtomicReleaseLua)

	//go:embed fenced.lua
	fencedLua    string
	fencedScript = redis.NewScript(fencedLua)

	//go:embed fair_acquire.lua
	fairAcquireLua    string
	fairAcquireScript = redis.NewScript(fairAcquireLua)

	//go:embed fair_leave.lua
	fairLeaveLua    string
	fairLeaveScript = redis.NewScript(fairLeaveLua)
)

// ms returns a duration as a script's argument, in whole milliseconds.
func ms(d time.Duration) int64 { return d.Milliseconds() }
