package claims

import (
	"oversell/reports"
	"oversell/variant"
)

// All are the claims, in the order of the documents' table. The numbers are stable.
var All = []Claim{
	{
		Number: "C1", From: variant.TextListing, Declared: reports.Confirmed,
		Words:       "Without protection, concurrent decrements oversell",
		Method:      "Flash sales of 200 pieces: 32 buyers who GET the stock and SET it to one less, without a lock. Controls: one buyer alone, and 32 buyers whose decrement is one script.",
		NotMeasured: "How much is oversold elsewhere: that is a matter of the machine and its load.",
		measure:     unprotected,
	},
	{
		Number: "C2", From: variant.TextListing, Declared: reports.Refuted,
		Words:   "The printed lock prevents oversell",
		Method:  "The same sale under the lock exactly as printed, between a sale with no lock, which must oversell, and one under lua-release, which must not; and a search of all interleavings of two clients for the shortest way to oversell.",
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
		Method:      "16 clients take and release either lock for a second, and nobody crashes; the grants in the history that were takeovers are counted. Control: the takeover of a lock whose owner did die. The shortest schedule in which a live owner is robbed is searched for and driven against a real server.",
		NotMeasured: "How often it happens at other loads.",
		measure:     takeovers,
	},
	{
		Number: "C5", From: variant.TextListing + ", " + variant.TextLease, Declared: reports.Depends,
		Words:       "A long lease makes a crashed holder's lock garbage for the rest of the lease; a short one heals",
		Method:      "A holder is never heard of again after it acquired, with a lease of 1 s and of 3 s; another tries every 5 ms, and the expiry that the server was given is read.",
		NotMeasured: "The printed lease to its end.",
		measure:     crashedHolder,
	},
	{
		Number: "C6", From: variant.TextListing + ", " + variant.TextLease, Declared: reports.Depends,
		Words:   "expire() in a loop lets a long job keep its lock",
		Method:  "A job of three leases calls expire() five times a lease, while another tries every 5 ms; the same without expire(), where the other must get in; and with one pause of more than a lease, after which expire() is called once more.",
		measure: renewing,
	},
	{
		Number: "C7", From: variant.TextListing, Declared: reports.Refuted,
		Words:   "The queue keeps one entry per id; a later enqueue overwrites the earlier",
		Method:  "An id is enqueued for now, and again for a minute later, in the queue under the lock that it was printed with, and with --overwrite (the prose's way, which must show the later time); and runs of 16 clients in which half of the ids come again, under that lock and under lua-release.",
		measure: enqueuedTwice,
	},
	{
		Number: "C8", From: variant.TextListing, Declared: reports.Refuted,
		Words:   "The lock keeps enqueue and dequeue consistent; a stale score cannot dequeue",
		Method:  "Six clients enqueue tasks and withdraw them at once, six others pop: an entry that was taken twice is a mistake. Without a lock (which must show it), under the lock that the queue was printed with, which the claim speaks of, and under lua-release; and a run of producers and consumers under the latter two. Under the printed lock, one task is enqueued again for later, and withdrawn with the old score, then with the new one.",
		measure: consistent,
	},
	{
		Number: "C9", From: variant.TextScripts + ", " + variant.TextDispatch, Declared: reports.Confirmed,
		Words:       "SETNX then EXPIRE deadlocks if the client dies in between",
		Method:      "Runs in which one client dies after SETNX was answered and before EXPIRE is sent, the lease being 1 s; control: it dies after EXPIRE.",
		NotMeasured: "Locks that take over what has no expiry: see C4 for their price.",
		measure:     diesBetween,
	},
	{
		Number: "C10", From: variant.TextDispatch, Declared: reports.Depends,
		Words:       "INCR with a maximum of tries can never deadlock",
		Method:      "An owner dies between INCR and EXPIRE, and another tries: until it has the lock, and only three times. Control: the same without a maximum. And runs of 64 clients in which nobody dies.",
		NotMeasured: "Other maxima than 5: the text leaves the number open.",
		measure:     countingUp,
	},
	{
		Number: "C11", From: variant.TextScripts + ", " + variant.TextDispatch, Declared: reports.Confirmed,
		Words:       "SET NX EX needs no second command and cannot deadlock",
		Method:      "The commands of an acquisition are counted at the client. Runs in which clients die right after SET; control: a crash between SETNX and EXPIRE, which must stick. A search of every schedule of three clients of which two may die.",
		NotMeasured: "Servers that fail: oversell run --fault has those.",
		measure:     oneCommand,
	},
	{
		Number: "C12", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "Releasing by DEL, or by GET then DEL, can remove another's lock; the script cannot",
		Method:  "Sales in which every fifth holder outlives its lease, or every fifth release stands still between its commands, under each of the three; and searches of every schedule of two clients, whose counterexamples are driven against a real server.",
		measure: anothersLock,
	},
	{
		Number: "C13", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:       "Redis runs a script atomically and caches it; the cache is lost at restart",
		Method:      "A script writes two keys with work between them, while another client reads both at once; control: the same writes as two commands, of which the reader must see the middle. EVALSHA before and after the server, which keeps an append-only file, is killed and started again.",
		NotMeasured: "Functions (FUNCTION LOAD), which are kept with the data.",
		measure:     atomicAndCached,
	},
	{
		Number: "C14", From: variant.TextScripts, Declared: reports.Confirmed, DeclaredToo: reports.Refuted,
		Words:   "Inlining arguments in the script text grows the server's memory without bound; KEYS/ARGV does not",
		Method:  "Thousands of scripts that differ in one number, and as many again; control: one script with the number in ARGV. INFO memory tells the scripts in the cache, and the memory of the cache and of the interpreter.",
		measure: inlined,
	},
	{
		Number: "C15", From: variant.TextScripts, Declared: reports.Depends,
		Words:       "EVALSHA saves bandwidth but not much speed",
		Method:      "Pipelines of 20 calls of the same script with EVAL and with EVALSHA, in turns, one client on loopback, at three lengths (comments make up the rest); the bytes that the client sent are counted. The ratio is the median of the rounds; in brackets the middle half of them. A ratio of which the rounds leave open whether it is much decides nothing. Much is 1.3 times as long.",
		NotMeasured: "Networks on which the bytes themselves take long.",
		alone:       true, measure: bySHA,
	},
	{
		Number: "C16", From: variant.TextScripts, Declared: reports.Depends,
		Words:       "A script is about 30–40 % faster than a pipeline of the same commands",
		Method:      "3, 30 and 300 commands of three kinds, as a pipeline and in a script by EVALSHA, in turns, one client on loopback; ratios as in C15. 30 to 40 % faster is taken as 1.3 to 1.67 times as long for the pipeline, with a tenth to spare.",
		NotMeasured: "Networks with a round trip worth speaking of, which both pay once; other drivers than go-redis, whose work is a part of it.",
		alone:       true, measure: pipelined,
	},
	{
		Number: "C17", From: variant.TextDispatch, Declared: reports.Depends,
		Words:       "Pessimistic locking costs throughput against optimistic under few conflicts, and wins under many",
		Method:      "The same stock in two ways, in turns; the ratio is the median of the rounds. Few conflicts: one buyer, under lua-release and with WATCH, MULTI, EXEC; 16 clients who read and buy once in 20 times, where under the lock who reads takes it, too; one buyer in SQLite, with SELECT FOR UPDATE (there: a transaction that writes) and with a version column. Many: 64 buyers in Redis, 16 in SQLite.",
		NotMeasured: "Sections much longer than their commands, optimistic retries that back off, and other databases.",
		alone:       true, measure: pessimistic,
	},
	{
		Number: "C18", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:       "Redlock keeps working while a minority of masters is down",
		Method:      "Five masters, of which two are killed, or stopped so that they answer nothing, while clients take and release the lock; control: three.",
		NotMeasured: "Masters that come back without their data, and clocks that jump: those break it (see docs/faults.md).",
		measure:     minorityDown,
	},
	{
		Number: "C19", From: variant.TextDispatch, Declared: reports.Depends,
		Words:       "With the lock, a dispatched task is never held by two users, and never stuck",
		Method:      "100 tasks in SQLite, of 20 ms each, and 16 users, of whom one in ten comes back after the limit and submits, three times under each of the three locks that the text prints; controls: no lock, under which tasks must be held by two, and fencing tokens, under which nothing may go wrong. And a user who took a task under a limit of 1 s is never heard of again, or dies within the acquisition, between SETNX or INCR and EXPIRE: whether another is given the task within 2.5 s.",
		NotMeasured: "Other databases; limits of the text's length.",
		measure:     dispatching,
	},
	{
		Number: "C20", From: variant.TextLease, Declared: reports.Depends,
		Words:       "Redis is single-threaded, so client connections never compete",
		Method:      "16 connections count to 8,000 together with INCR: the total is exact if commands never run into each other; control: GET and SET, which must lose counts. And 1, 4 and 16 connections send a command that costs the server a fraction of a millisecond (BITCOUNT), in turns; the latency is that of one of them. They may never compete for time if it grows by no more than a fifth in every round, and do if it doubles in every one.",
		NotMeasured: "More io-threads, which read and write for many but still execute one command at a time.",
		alone:       true, measure: competing,
	},
	{
		Number: "C21", From: variant.TextScripts, Declared: reports.Depends,
		Words:       "A millisecond time stamp plus a client id is unique enough as a token",
		Method:      "One client takes and releases a lock on a real server as fast as it can, and once in at least two milliseconds; two threads of one client draw a token at once. Control: 128 random bits. With one token twice, the first holder releases after its lease.",
		NotMeasured: "Clocks that are set back, which give a time stamp again by definition, and client ids that are given twice.",
		measure:     timeStamps,
	},
	{
		Number: "C22", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:       "A long script stalls every other client",
		Method:      "A script counts for about 200 ms while four other connections send PING after PING; the longest of each, of which the shortest counts. Control: no script.",
		NotMeasured: "Scripts of more than five seconds, which others are told of (BUSY).",
		alone:       true, measure: stalled,
	},
	{
		Number: "C23", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "Script variables must be local; globals fail or are slower",
		Method:  "A script assigns a global, defines a global function, reads an unknown global; control: the same with local. A loop reads a built-in global and a local copy of it, in turns; ratio as in C15.",
		alone:   true,
		measure: localOnly,
	},
	{
		Number: "C24", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "ARGV numbers arrive as strings",
		Method:  "A script is given the number 10 and tells its type, whether it equals 10, and how it compares; control: tonumber().",
		measure: argumentsAreText,
	},
	{
		Number: "C25", From: variant.TextScripts, Declared: reports.Confirmed,
		Words:   "One changed byte in a script needs a new load; the same text always has the same SHA",
		Method:  "SCRIPT LOAD of a text twice, EVALSHA of it and of the same text with one more blank, before and after that was loaded.",
		measure: byteByByte,
	},
	{
		Number: "C26", From: variant.TextScripts, Declared: reports.Refuted,
		Words:   "A persistent connection survives close() and is reused by the next request",
		Method:  "Requests to one process of PHP, each telling its CLIENT ID: after pconnect() and close(), after pconnect() alone, which must survive, and after connect() and close(), which must not. Beside it, what go-redis does with a connection that is given back to a pool, and with a pool that is closed.",
		measure: survivesClose,
	},
}
