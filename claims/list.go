package claims

import (
	"oversell/reports"
	"oversell/variant"
)

// All lists the claims in the order of the published table. The numbers are stable.
var All = []Claim{
	{
		Number: "C1", From: variant.TextListing, Declared: reports.Confirmed,
		Words:       "Without protection, concurrent decrements oversell",
		Method:      "Flash sales of 200 pieces: 32 buyers GET the stock and SET it to one less, without a lock. Controls: one buyer alone, and 32 buyers that decrement in one script.",
		NotMeasured: "How much other machines oversell: it depends on the machine and its load.",
		measure:     unprotected,
	},
	{
		Number: "C2", From: variant.TextListing, Declared: reports.Refuted,
		Words:   "The printed lock prevents oversell",
		Method:  "The same sale under the lock exactly as printed. Controls: a sale without a lock, which must oversell, and one under lua-release, which must not. A search of all interleavings of two clients finds the shortest schedule that oversells.",
		measure: printedLockPrevents,
	},
	{
		Number: "C3", From: variant.TextLease, Declared: reports.Refuted,
		Words:   "The second listing's lock prevents oversell",
		Method:  "As C2, under the lock of the second listing.",
		measure: phpLockPrevents,
	},
	{
		Number: "C4", From: variant.TextListing + ", " + variant.TextLease, Declared: reports.Refuted,
		Words:       "The TTL<0 takeover only fires when the owner crashed before EXPIRE",
		Method:      "16 clients take and release each lock for a second without crashes; takeovers in the history are counted. Control: the takeover of a lock after its owner died. A search finds the shortest schedule that takes the lock from a live owner, which is replayed against a real server.",
		NotMeasured: "How often it happens at other loads.",
		measure:     takeovers,
	},
	{
		Number: "C5", From: variant.TextListing + ", " + variant.TextLease, Declared: reports.Depends,
		Words:       "A long lease makes a crashed holder's lock garbage for the rest of the lease; a short one heals",
		Method:      "A holder dies after it acquired the lock, with a lease of 1 s and of 3 s; another client tries every 5 ms. The TTL on the server is read.",
		NotMeasured: "The printed lease to its end.",
		measure:     crashedHolder,
	},
	{
		Number: "C6", From: variant.TextListing + ", " + variant.TextLease, Declared: reports.Depends,
		Words:   "expire() in a loop lets a long job keep its lock",
		Method:  "A job of three leases calls expire() five times per lease, while another client tries every 5 ms. Control: without expire(), where the other client must get the lock. Then with one pause longer than the lease, after which expire() is called once more.",
		measure: renewing,
	},
	{
		Number: "C7", From: variant.TextListing, Declared: reports.Refuted,
		Words:   "The queue keeps one entry per id; a later enqueue overwrites the earlier",
		Method:  "An id is enqueued with due time now, and again for a minute later, under the lock that the queue was printed with; and with --overwrite (as the text describes it), which must show the later time. Then runs of 16 clients that enqueue half of the ids again, under that lock and under lua-release.",
		measure: enqueuedTwice,
	},
	{
		Number: "C8", From: variant.TextListing, Declared: reports.Refuted,
		Words:   "The lock keeps enqueue and dequeue consistent; a stale score cannot dequeue",
		Method:  "Six clients enqueue tasks and withdraw them at once, six others pop; an entry that was taken twice is an error. Without a lock (the control), under the lock that the queue was printed with (the subject of the claim), and under lua-release; and a run of producers and consumers under the latter two. Under the printed lock, one task is enqueued again for later, and withdrawn with the old score, then with the new one.",
		measure: consistent,
	},
	{
		Number: "C9", From: variant.TextScripts + ", " + variant.TextDispatch, Declared: reports.Confirmed,
		Words:       "SETNX then EXPIRE deadlocks if the client dies in between",
		Method:      "Runs with a lease of 1 s in which one client dies after the reply to SETNX and before it sends EXPIRE. Control: it dies after EXPIRE.",
		NotMeasured: "Locks that take over keys without expiry: see C4 for their cost.",
		measure:     diesBetween,
	},
	{
		Number: "C10", From: variant.TextDispatch, Declared: reports.Depends,
		Words:       "INCR with a maximum of tries can never deadlock",
		Method:      "An owner dies between INCR and EXPIRE; another client tries until it has the lock, or only three times. Control: the same without a maximum. Then runs of 64 clients without deaths.",
		NotMeasured: "Maxima other than 5: the text does not give the number.",
		measure:     countingUp,
	},
	{
		Number: "C11", From: variant.TextScripts + ", " + variant.TextDispatch, Declared: reports.Confirmed,
		Words:       "SET NX EX needs no second command and cannot deadlock",
		Method:      "The client counts the commands of an acquisition. Runs in which clients die right after SET; control: a crash between SETNX and EXPIRE, after which the lock must be stuck. A search of every schedule of three clients, two of which may die.",
		NotMeasured: "Server failures: see oversell run --fault.",
		measure:     oneCommand,
	},
	{
		Number: "C12", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "Releasing by DEL, or by GET then DEL, can remove another's lock; the script cannot",
		Method:  "Sales in which every fifth holder outlives its lease, or every fifth release pauses between its commands, with each of the three releases; and searches of every schedule of two clients. Counterexamples are replayed against a real server.",
		measure: anothersLock,
	},
	{
		Number: "C13", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:       "Redis runs a script atomically and caches it; the cache is lost at restart",
		Method:      "A script writes two keys with work between them, while another client reads both with one command; control: the same writes as two commands, where the reader must see only one written. EVALSHA before and after a restart (kill) of the server, which has an append-only file.",
		NotMeasured: "Functions (FUNCTION LOAD), which are persisted with the data.",
		measure:     atomicAndCached,
	},
	{
		Number: "C14", From: variant.TextScripts, Declared: reports.Confirmed, DeclaredToo: reports.Refuted,
		Words:   "Inlining arguments in the script text grows the server's memory without bound; KEYS/ARGV does not",
		Method:  "Thousands of scripts that differ in one number, and as many again; control: one script with the number in ARGV. INFO memory shows the number of cached scripts, and the memory of the cache and of the interpreter.",
		measure: inlined,
	},
	{
		Number: "C15", From: variant.TextScripts, Declared: reports.Depends,
		Words:       "EVALSHA saves bandwidth but not much speed",
		Method:      "Pipelines of 20 calls of the same script with EVAL and with EVALSHA, in turns, one client on loopback, at three lengths (padded with comments); the bytes that the client sent are counted. The ratio is the median of the rounds; brackets show the middle half. The speed differs much if EVAL takes at least 1.3 times as long; rounds that leave this open decide nothing.",
		NotMeasured: "Networks on which bandwidth is the bottleneck.",
		alone:       true, measure: bySHA,
	},
	{
		Number: "C16", From: variant.TextScripts, Declared: reports.Depends,
		Words:       "A script is about 30–40 % faster than a pipeline of the same commands",
		Method:      "3, 30 and 300 commands of three kinds, as a pipeline and in a script by EVALSHA, in turns, one client on loopback; ratios as in C15. 30 to 40 % faster means that the pipeline takes 1.3 to 1.67 times as long, with a tolerance of a tenth.",
		NotMeasured: "Networks with a notable round-trip time, which both pay once; drivers other than go-redis, whose overhead is part of the result.",
		alone:       true, measure: pipelined,
	},
	{
		Number: "C17", From: variant.TextDispatch, Declared: reports.Depends,
		Words:       "Pessimistic locking costs throughput against optimistic under few conflicts, and wins under many",
		Method:      "The same stock in two ways, in turns; the ratio is the median of the rounds. Few conflicts: one buyer, under lua-release and with WATCH, MULTI, EXEC; 16 clients that read, and buy once in 20 operations (with the lock, readers take it, too); one buyer in SQLite, with SELECT FOR UPDATE (there: a transaction that writes) and with a version column. Many: 64 buyers in Redis, 16 in SQLite.",
		NotMeasured: "Sections much longer than their commands, optimistic retries with backoff, and other databases.",
		alone:       true, measure: pessimistic,
	},
	{
		Number: "C18", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:       "Redlock keeps working while a minority of masters is down",
		Method:      "Five masters, two of which are killed, or stopped so that they do not answer, while clients take and release the lock; control: three of five.",
		NotMeasured: "Masters that restart without their data, and clock jumps: both break Redlock (see docs/faults.md).",
		measure:     minorityDown,
	},
	{
		Number: "C19", From: variant.TextDispatch, Declared: reports.Depends,
		Words:       "With the lock, a dispatched task is never held by two users, and never stuck",
		Method:      "100 tasks in SQLite, of 20 ms each, and 16 users, one in ten of which submits after the limit; three runs under each of the three locks in the text. Controls: no lock, where two users must hold a task at once, and fencing tokens, where nothing may break. Then a user dies after it took a task with a limit of 1 s, or during the acquisition, between SETNX or INCR and EXPIRE: does another user get the task within 2.5 s?",
		NotMeasured: "Other databases; limits as long as in the text.",
		measure:     dispatching,
	},
	{
		Number: "C20", From: variant.TextLease, Declared: reports.Depends,
		Words:       "Redis is single-threaded, so client connections never compete",
		Method:      "16 connections together count to 8,000 with INCR: the total is exact if commands are atomic; control: GET and SET, which must lose counts. Then 1, 4 and 16 connections, in turns, send a command that takes the server a fraction of a millisecond (BITCOUNT); the latency of one of them is measured. They do not compete for time if it grows by at most a fifth in every round, and do if it doubles in every round.",
		NotMeasured: "More io-threads, which read and write concurrently but still execute one command at a time.",
		alone:       true, measure: competing,
	},
	{
		Number: "C21", From: variant.TextScripts, Declared: reports.Depends,
		Words:       "A millisecond time stamp plus a client id is unique enough as a token",
		Method:      "One client takes and releases a lock on a real server as fast as it can, and then at most once in two milliseconds; two threads of one client draw a token concurrently. Control: 128 random bits. With the same token twice, the first holder releases after its lease.",
		NotMeasured: "Clocks that are set back, which repeat time stamps by definition, and duplicate client ids.",
		measure:     timeStamps,
	},
	{
		Number: "C22", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:       "A long script stalls every other client",
		Method:      "A script counts for about 200 ms while four other connections send PING after PING. Each connection's longest PING is taken, and the shortest of these counts. Control: no script.",
		NotMeasured: "Scripts of more than five seconds, during which the server replies BUSY.",
		alone:       true, measure: stalled,
	},
	{
		Number: "C23", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "Script variables must be local; globals fail or are slower",
		Method:  "Scripts assign a global, define a global function and read an unknown global; control: the same with local. A loop reads a built-in global and a local copy of it, in turns; ratio as in C15.",
		alone:   true,
		measure: localOnly,
	},
	{
		Number: "C24", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "ARGV numbers arrive as strings",
		Method:  "A script gets the number 10 as an argument and returns its type, whether it equals 10, and how it compares; control: tonumber().",
		measure: argumentsAreText,
	},
	{
		Number: "C25", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "One changed byte in a script needs a new load; the same text always has the same SHA",
		Method:  "SCRIPT LOAD of a text twice; EVALSHA of it, and of the text with one more space, before and after loading that.",
		measure: byteByByte,
	},
	{
		Number: "C26", From: variant.TextScripts, Declared: reports.Refuted,
		Words:   "A persistent connection survives close() and is reused by the next request",
		Method:  "Requests to one PHP process, each reporting its CLIENT ID: after pconnect() and close(); after pconnect() alone, which must keep the connection; and after connect() and close(), which must not. Also, what go-redis does with a connection that is returned to a pool, and with a pool that is closed.",
		measure: survivesClose,
	},
}
