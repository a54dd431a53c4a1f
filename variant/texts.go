package variant

// The texts that systems and claims come from, each by what it is about. Their titles and
// authors are not recorded here: the first is found in several copies, for one
// blog.csdn.net/NetSnake_/article/details/81227269 (2018), one of them damaged; of the
// others no copy with a date is known.
const (
	// TextListing prints a PHP class for a lock (SETNX, EXPIRE, takeover) and one for a queue
	// in a sorted set. Its opening lines and comments speak of a flash sale.
	TextListing = "PHP lock and queue listing"
	// TextLease prints the same lock with the right lease, and a release that compares.
	TextLease = "PHP lock, second listing"
	// TextScripts is about mistakes in locks, Lua scripts and Redlock.
	TextScripts = "notes on locks and Lua scripts"
	// TextDispatch is about editing tasks that one user at a time may hold.
	TextDispatch = "notes on task dispatch"
)
