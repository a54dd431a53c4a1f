package variant

// The texts that systems and claims come from. None of them names its author or bears a
// date. The first is found under its title in several copies, one of them damaged, such as
// blog.csdn.net/NetSnake_/article/details/81227269 (of 2018) and kuaicheku.com/article/48893;
// of the others no copy with a title is known, so they are named by their subject.
const (
	// TextListing prints a PHP class for a lock (SETNX, EXPIRE, takeover) and one for a queue
	// in a sorted set. Its opening lines and comments speak of a flash sale.
	TextListing = "基于Redis实现分布式锁以及任务队列 (PHP lock and queue, copy of 2018)"
	// TextLease prints the same lock with the right lease, and a release that compares.
	TextLease = "PHP lock, second listing"
	// TextScripts is about mistakes in locks, Lua scripts and Redlock.
	TextScripts = "notes on locks and Lua scripts"
	// TextDispatch is about editing tasks that one user at a time may hold.
	TextDispatch = "notes on task dispatch"
)
