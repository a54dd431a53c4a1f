package campaign

import "oversell/variant"

// Failure is a way in which such systems fail: what triggers it, and in what runs it shows. The same trigger must
// break some variants and leave others intact.
type Failure struct {
	// Mode names it, and Trigger says in a sentence what has to happen.
	Mode, Trigger string
	Cells         []Cell
}

// Cell is one run with a failure's trigger, and its expected result.
type Cell struct {
	// Args are the flags of "oversell run".
	Args []string
	// Of and Property are the property that the cell is about.
	Of       variant.Object
	Property variant.Property
	// Breaks says that the property must be violated; otherwise it must hold.
	Breaks bool
	// Whole says that, in addition, no promise of the run may be broken.
	Whole bool
}

func breaks(of variant.Object, p variant.Property, args ...string) Cell {
	return Cell{Args: args, Of: of, Property: p, Breaks: true}
}

func holds(of variant.Object, p variant.Property, args ...string) Cell {
	return Cell{Args: args, Of: of, Property: p}
}

// each returns a cell for every variant in names, which is the value of flag.
func each(cell func(of variant.Object, p variant.Property, args ...string) Cell, of variant.Object, p variant.Property, flag string, names []string, args ...string) (cells []Cell) {
	for _, name := range names {
		cells = append(cells, cell(of, p, append([]string{flag, name}, args...)...))
	}
	return cells
}

func join(groups ...[]Cell) (all []Cell) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// The settings that the rows share. Leases are short so that they run out within a run; they are whole seconds for
// locks that count only those.
var (
	mutexOf1s = []string{"--scenario", "mutex", "--clients", "16", "--ttl", "1s", "--wait", "500ms"}
	slowSale  = []string{"--sale", "lua", "--clients", "16", "--stock", "30", "--hold", "30ms"}
	shortSale = []string{"--clients", "16", "--stock", "300", "--ttl", "100ms"}
	splitHold = []string{"--scenario", "mutex", "--clients", "8", "--ttl", "8s", "--wait", "3s", "--hold", "3s", "--timeout", "1s", "--duration", "3s", "--topology", "sentinel"}
	longHolds = []string{"--scenario", "mutex", "--clients", "8", "--ttl", "6s", "--wait", "3s", "--hold", "2500ms", "--timeout", "1s", "--duration", "3s"}
)

func with(base []string, more ...string) []string {
	return append(base[:len(base):len(base)], more...)
}

// Failures are the failures that this program can provoke, with a command for each variant that must break, and for
// variants that must not.
var Failures = []Failure{
	{
		Mode: "crash between SETNX and EXPIRE", Trigger: "a client dies after SETNX was answered, before it sends EXPIRE",
		Cells: []Cell{
			breaks(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "setnx-expire", "--fault", "crash before EXPIRE")...),
			breaks(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "incr", "--fault", "crash before EXPIRE")...),
			holds(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "set-nx-ex", "--fault", "crash after SETNX 5% times 20")...),
			holds(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "lua-release", "--fault", "crash after SETNX 5% times 20")...),
			holds(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "setnx-expire-atomic", "--fault", "crash after EVAL in acquire 5% times 20")...),
			holds(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "incr-atomic", "--fault", "crash after EVAL in acquire 5% times 20")...),
			holds(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "php-lock-atomic", "--fault", "crash after EVAL in acquire 5% times 20")...),
		},
	},
	{
		Mode: "live owner robbed", Trigger: "load alone: another client looks between SETNX and EXPIRE, or just after a release",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"php-lock-printed", "php-lock"}, "--scenario", "mutex"),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release", "php-lock-atomic"}, "--scenario", "mutex"),
		),
	},
	{
		Mode: "forced unlock", Trigger: "load alone: enough clients count between INCR and EXPIRE, as at a thundering start",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"incr-max"}),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"incr-atomic", "lua-release"}),
		),
	},
	{
		Mode: "another's lock deleted", Trigger: "a holder outlives its lease, another acquires, the first releases, a third acquires",
		Cells: join(
			each(breaks, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"set-nx-ex", "setnx-expire", "incr"}, with(slowSale, "--ttl", "1s", "--fault", "slow 1200ms 20%")...),
			each(breaks, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"token-del"}, with(slowSale, "--ttl", "100ms", "--fault", "slow 150ms 20%")...),
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"token-del"}, with(slowSale, "--ttl", "100ms", "--fault", "slow 150ms 20%")...),
			each(holds, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"lua-release", "setnx-expire-atomic", "incr-atomic"}, with(slowSale, "--ttl", "100ms", "--fault", "slow 150ms 20%")...),
		),
	},
	{
		Mode: "GET/DEL gap", Trigger: "the same, with the pause between the GET and the DEL of a release",
		Cells: join(
			each(breaks, variant.Lock, variant.Linearizable, "--lock", []string{"token-get-del"}, with(slowSale, "--ttl", "100ms", "--fault", "pause 150ms in release 20%")...),
			each(holds, variant.Lock, variant.Linearizable, "--lock", []string{"lua-release"}, with(slowSale, "--ttl", "100ms", "--fault", "pause 150ms in release 20%")...),
		),
	},
	{
		Mode: "same token twice", Trigger: "two clients call in one second and get the same token",
		Cells: join(
			each(breaks, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"php-lock"}, "--scenario", "mutex"),
			each(holds, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"lua-release"}, "--scenario", "mutex"),
		),
	},
	{
		Mode: "late release", Trigger: "a release is executed only after the same client has acquired the lock again",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"token-per-client"}, "--scenario", "mutex", "--clients", "2", "--hold", "50ms", "--ttl", "60ms", "--duration", "8s", "--fault", "late EVAL in release 40ms 50%"),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release"}, "--scenario", "mutex", "--clients", "2", "--hold", "50ms", "--ttl", "60ms", "--duration", "8s", "--fault", "late EVAL in release 40ms 50%"),
		),
	},
	{
		Mode: "pause longer than the lease", Trigger: "a holder stands still in its section until its lease is over",
		Cells: join(
			each(breaks, variant.Sale, variant.NoOversell, "--lock", []string{"lua-release", "fair", "watchdog"}, with(shortSale, "--sale", "plain", "--fault", "freeze holder 150ms 5%")...),
			// Redlock waits up to a twentieth of its lease for a node. A busy machine may need that long.
			each(breaks, variant.Sale, variant.NoOversell, "--lock", []string{"redlock"}, "--clients", "8", "--stock", "150", "--ttl", "300ms", "--sale", "plain", "--fault", "freeze holder 450ms 5%"),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release", "watchdog"}, with(shortSale, "--sale", "plain", "--fault", "freeze holder 150ms 5%")...),
			each(holds, variant.Sale, variant.NoOversell, "--sale", []string{"lua", "watch"}, with(shortSale, "--lock", "lua-release", "--fault", "freeze holder 150ms 5%")...),
			each(holds, variant.Sale, variant.NoOversell, "--lock", []string{"fenced"}, with(shortSale, "--sale", "fenced", "--fault", "freeze holder 150ms 5%")...),
			// A renewal must come in time, also on a busy machine.
			each(holds, variant.Sale, variant.NoOversell, "--lock", []string{"watchdog"}, "--clients", "16", "--stock", "150", "--ttl", "400ms", "--sale", "plain", "--fault", "slow 600ms 5%"),
		),
	},
	{
		Mode: "failover", Trigger: "a lock is granted by a master that is lost before it has told its replica",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"setnx-expire", "incr", "set-nx-ex", "token-del", "token-get-del", "lua-release", "php-lock-atomic", "setnx-expire-atomic", "incr-atomic", "watchdog", "fenced", "fair"},
				with(splitHold, "--fault", "split-brain at 300ms for 1s")...),
			each(breaks, variant.Sale, variant.NoOversell, "--sale", []string{"lua"}, "--lock", "none", "--clients", "16", "--stock", "3000", "--hold", "20ms", "--timeout", "1s", "--topology", "sentinel", "--fault", "split-brain at 600ms for 1s"),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"redlock"}, with(longHolds, "--topology", "masters:5", "--fault", "kill node 4 at 300ms for good", "--fault", "kill node 5 at 300ms for good")...),
			each(holds, variant.Lock, variant.Progress, "--lock", []string{"redlock"}, "--scenario", "mutex", "--clients", "16", "--ttl", "1s", "--timeout", "200ms", "--topology", "masters:5", "--fault", "kill node 4 at 300ms for good", "--fault", "kill node 5 at 300ms for good"),
		),
	},
	{
		Mode: "Redlock node restarts empty", Trigger: "nodes forget a lock that is held, and grant it again",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"redlock"}, with(longHolds, "--topology", "masters:3", "--fault", "kill node 3 at 0s for 300ms", "--fault", "restart node 2 empty after 0s at 600ms")...),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"redlock"}, with(longHolds, "--topology", "masters:3", "--fault", "kill node 3 at 0s for 300ms", "--fault", "restart node 2 empty after 6s at 600ms")...),
		),
	},
	{
		Mode: "server clock jump", Trigger: "the clock of one node jumps, while another was down when the lock was granted",
		Cells: []Cell{
			breaks(variant.Lock, variant.MutualExclusion, with(longHolds, "--lock", "redlock", "--topology", "masters:3", "--fault", "kill node 3 at 0s for 300ms", "--fault", "clock +60s on node 2 at 600ms")...),
			breaks(variant.Lock, variant.MutualExclusion, with(longHolds, "--lock", "fenced", "--fault", "clock +60s on node 1 at 600ms")...),
			holds(variant.Sale, variant.NoOversell, "--lock", "fenced", "--sale", "fenced", "--clients", "16", "--stock", "300", "--hold", "5ms", "--fault", "clock +60s on node 1 at 300ms"),
		},
	},
	{
		Mode: "lock key evicted", Trigger: "the server drops the key of a lock that is held, for want of memory",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release", "set-nx-ex"}, with(longHolds, "--fault", "evict at 300ms")...),
			each(holds, variant.Sale, variant.NoOversell, "--lock", []string{"fenced"}, "--sale", "fenced", "--clients", "16", "--stock", "100", "--hold", "10ms", "--fault", "evict at 300ms"),
		),
	},
	{
		Mode: "server restarts empty", Trigger: "a server without persistence is killed while a lock is held, and comes back",
		Cells: join(
			each(breaks, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release", "set-nx-ex", "php-lock-atomic"}, with(longHolds, "--fault", "restart empty at 600ms")...),
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release", "php-lock-atomic"}, "--scenario", "mutex", "--clients", "8", "--ttl", "6s", "--wait", "3s", "--hold", "800ms", "--timeout", "1s", "--duration", "5s", "--aof", "--fault", "restart at 600ms"),
			each(holds, variant.Sale, variant.NoOversell, "--sale", []string{"lua"}, "--lock", "none", "--clients", "16", "--stock", "1000", "--hold", "20ms", "--aof", "--fault", "kill at 300ms for 200ms"),
		),
	},
	{
		Mode: "reply lost", Trigger: "a command counts, its reply is lost, and the buyer sends the order again",
		Cells: []Cell{
			breaks(variant.Sale, variant.NoUndersell, "--lock", "none", "--sale", "decr", "--clients", "16", "--fault", "drop-reply DECRBY 5%"),
			holds(variant.Sale, variant.OncePerOrder, "--lock", "none", "--sale", "lua", "--clients", "16", "--fault", "drop-reply EVAL 5%"),
			holds(variant.Lock, variant.Progress, with(mutexOf1s, "--lock", "lua-release", "--fault", "drop-reply SETNX 2%")...),
		},
	},
	{
		Mode: "driver retries by itself", Trigger: "a command is sent again though the first was executed, and the second answer is the one that counts",
		Cells: join(
			each(breaks, variant.Lock, variant.Linearizable, "--lock", []string{"lua-release"}, "--scenario", "mutex", "--clients", "8", "--ttl", "1s", "--fault", "resend 2%"),
			[]Cell{breaks(variant.Sale, variant.NoUndersell, "--lock", "none", "--sale", "decr", "--clients", "16", "--fault", "resend DECRBY 5%")},
			[]Cell{
				holds(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--clients", "16", "--queue", "zset-atomic", "--fault", "resend EVAL in pop 3%"),
				breaks(variant.IDs, variant.NoGaps, "--scenario", "ids", "--clients", "8", "--lock", "none", "--ids", "incr", "--fault", "resend INCR 2%"),
				holds(variant.IDs, variant.NoGaps, "--scenario", "ids", "--clients", "8", "--lock", "none", "--ids", "script", "--fault", "resend EVAL in next-id 2%"),
			},
			each(holds, variant.Lock, variant.MutualExclusion, "--lock", []string{"lua-release"}, "--scenario", "mutex", "--clients", "8", "--ttl", "1s", "--fault", "resend 2%"),
			each(holds, variant.Sale, variant.NoOversell, "--sale", []string{"lua"}, "--lock", "none", "--clients", "16", "--fault", "resend 2%"),
		),
	},
	{
		Mode: "extend after loss", Trigger: "a lease ends, another holds the lock, and the first client extends it",
		Cells: join(
			each(breaks, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"watchdog-naive"}, "--scenario", "mutex", "--clients", "4", "--ttl", "200ms", "--hold", "250ms", "--duration", "2s", "--fault", "freeze holder 380ms"),
			each(holds, variant.Lock, variant.OwnerOnlyRelease, "--lock", []string{"watchdog"}, "--scenario", "mutex", "--clients", "4", "--ttl", "200ms", "--hold", "250ms", "--duration", "2s", "--fault", "freeze holder 380ms"),
		),
	},
	{
		Mode: "renewal outlives release", Trigger: "a renewal that is still at work prolongs the lock of a client that died",
		Cells: join(
			each(breaks, variant.Lock, variant.Progress, "--lock", []string{"watchdog-naive"}, "--scenario", "mutex", "--clients", "8", "--ttl", "300ms", "--wait", "200ms", "--hold", "20ms", "--fault", "crash holder 10%"),
			each(holds, variant.Lock, variant.Progress, "--lock", []string{"watchdog"}, "--scenario", "mutex", "--clients", "8", "--ttl", "300ms", "--wait", "200ms", "--hold", "20ms", "--fault", "crash holder 10%"),
		),
	},
	{
		Mode: "oversell", Trigger: "load alone: a small stock and many buyers",
		Cells: join(
			each(breaks, variant.Sale, variant.NoOversell, "--lock", []string{"none", "php-lock-printed", "php-lock", "incr-max"}, "--sale", "plain"),
			each(holds, variant.Sale, variant.NoOversell, "--lock", []string{"set-nx-ex", "lua-release", "fair"}, "--sale", "plain"),
			each(holds, variant.Sale, variant.NoOversell, "--sale", []string{"lua", "watch"}, "--lock", "none"),
			each(holds, variant.Sale, variant.NoOversell, "--sale", []string{"fenced"}, "--lock", "fenced"),
		),
	},
	{
		Mode: "undersell", Trigger: "a buyer who is told that too little is left dies before giving back what DECRBY took",
		Cells: join(
			each(breaks, variant.Sale, variant.Linearizable, "--sale", []string{"decr"}, "--lock", "none", "--clients", "16", "--quantity", "200", "--fault", "crash before INCRBY"),
			each(holds, variant.Sale, variant.Linearizable, "--sale", []string{"lua", "reserve"}, "--lock", "none", "--clients", "16", "--quantity", "200", "--fault", "crash after EVAL in buy"),
		),
	},
	{
		Mode: "double order", Trigger: "the same request twice at once",
		Cells: join(
			each(breaks, variant.Sale, variant.OncePerOrder, "--sale", []string{"check-then-act", "watch"}, "--lock", "none", "--resend", "0.3"),
			each(holds, variant.Sale, variant.OncePerOrder, "--sale", []string{"lua"}, "--lock", "none", "--resend", "0.3"),
		),
	},
	{
		Mode: "task lost", Trigger: "a consumer dies after the queue has given it a task",
		Cells: []Cell{
			breaks(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--clients", "16", "--queue", "zset-locked", "--lock", "lua-release", "--ttl", "300ms", "--fault", "crash after ZREM 3%"),
			breaks(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--clients", "16", "--queue", "zset-atomic", "--fault", "crash after EVAL in pop 3%"),
			holds(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--clients", "16", "--queue", "reliable", "--visibility", "300ms", "--fault", "crash after EVAL in pop 3%"),
			holds(variant.Queue, variant.NoLostTask, "--scenario", "queue", "--clients", "16", "--queue", "streams", "--visibility", "300ms", "--fault", "crash after XREADGROUP 3%"),
		},
	},
	{
		Mode: "task twice", Trigger: "two consumers look at once, or one is slower than the visibility timeout",
		Cells: []Cell{
			breaks(variant.Queue, variant.NoDuplicateDelivery, "--scenario", "queue", "--clients", "16", "--queue", "range-run-remove"),
			breaks(variant.Queue, variant.EffectOnce, "--scenario", "queue", "--clients", "16", "--queue", "range-run-remove"),
			breaks(variant.Queue, variant.NoDuplicateDelivery, "--scenario", "queue", "--clients", "16", "--queue", "reliable", "--visibility", "100ms", "--fault", "pause after HSETNX in effect 200ms 3%"),
			holds(variant.Queue, variant.EffectOnce, "--scenario", "queue", "--clients", "16", "--queue", "reliable", "--visibility", "100ms", "--fault", "pause after HSETNX in effect 200ms 3%"),
		},
	},
	{
		Mode: "early task", Trigger: "a worker's clock is ahead",
		Cells: []Cell{
			breaks(variant.Queue, variant.NotEarly, "--scenario", "queue", "--clients", "16", "--delay", "500ms", "--queue", "zset-locked", "--lock", "lua-release", "--fault", "clock +5s 30%"),
			holds(variant.Queue, variant.NotEarly, "--scenario", "queue", "--clients", "16", "--delay", "500ms", "--queue", "zset-atomic", "--fault", "clock +5s 30%"),
			holds(variant.Queue, variant.NotEarly, "--scenario", "queue", "--clients", "16", "--delay", "500ms", "--queue", "reliable", "--fault", "clock +5s 30%"),
		},
	},
	{
		Mode: "ids repeat", Trigger: "numbers were counted on a master that is lost before it has told its replica",
		Cells: []Cell{
			breaks(variant.IDs, variant.UniqueIDs, "--scenario", "ids", "--clients", "8", "--lock", "lua-release", "--ids", "get-set", "--timeout", "1s", "--ttl", "2s", "--topology", "sentinel", "--fault", "split-brain at 300ms for 1s"),
			breaks(variant.IDs, variant.UniqueIDs, "--scenario", "ids", "--clients", "8", "--lock", "none", "--ids", "incr", "--timeout", "1s", "--topology", "sentinel", "--fault", "split-brain at 300ms for 1s"),
			holds(variant.IDs, variant.UniqueIDs, "--scenario", "ids", "--clients", "8", "--lock", "none", "--ids", "incr", "--timeout", "1s", "--aof", "--fault", "kill at 300ms for 200ms"),
		},
	},
	{
		Mode: "starvation", Trigger: "the head of a fair lock's line dies",
		Cells: join(
			each(breaks, variant.Lock, variant.Progress, "--lock", []string{"fair-no-reap"}, with(mutexOf1s, "--fault", "crash waiter 5% times 5")...),
			each(holds, variant.Lock, variant.Progress, "--lock", []string{"fair"}, with(mutexOf1s, "--fault", "crash waiter 5% times 5")...),
		),
	},
	{
		Mode: "trouble that a sound system survives", Trigger: "scripts are forgotten, connections are killed, nothing is answered for a time, memory runs out, a master refuses writes, the wire delays, drops, trickles, resets and is cut",
		Cells: join(
			surviving("script-flush at 200ms every 200ms"), surviving("client-kill at 200ms every 300ms"), surviving("client-pause 200ms at 300ms"),
			surviving("freeze node 1 300ms at 300ms"), surviving("oom at 300ms for 200ms"), surviving("read-only at 300ms for 200ms"),
			surviving("delay 20ms 1%"), surviving("drop-request 1%"), surviving("drop-reply 1%"), surviving("late 20ms 1%"),
			surviving("reset 1%"), surviving("reset after EVAL 1%"), surviving("half-open nth 50"), surviving("trickle 1ms 1%"),
			surviving("cut replies at 300ms for 200ms"), surviving("cut requests at 300ms for 200ms"), surviving("cancel 1%"),
			[]Cell{breaks(variant.Sale, variant.NoOversell, "--clients", "16", "--stock", "300", "--lock", "php-lock", "--sale", "plain", "--fault", "delay 20ms 1%")},
		),
	},
}

// surviving returns a cell with a sale that must not oversell under a fault, and whose lock must keep its promises.
func surviving(fault string) []Cell {
	args := []string{"--clients", "16", "--stock", "300", "--hold", "2ms", "--timeout", "1s", "--ttl", "1s", "--lock", "lua-release", "--sale", "lua", "--fault", fault}
	c := holds(variant.Sale, variant.NoOversell, args...)
	c.Whole = true
	return []Cell{c}
}
