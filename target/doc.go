// Package target gets a Redis to test against.
//
// A [Spec] says which one is wanted: a redis-server started as a child of this
// program, an in-memory emulation inside it, or servers that run already. [Open]
// finds or starts it and hands back a [Target], which makes clients, says in
// words what was chosen and why, and stops what it started, and only that.
//
// Three ideas shape the package.
//
// A verdict is worth nothing if it was reached against the wrong server. A child
// is therefore recognised by its process id, not by the fact that something
// answers on the port, and an address is asked who it is: a replica, a cluster
// node and the same server given twice are refused.
//
// Nothing outlives the program. A child leaves no files and dies with its
// parent, even when the parent is killed with SIGKILL (on Linux).
//
// The driver must not act on its own. A client that silently repeats a command
// applies it twice, and a client that dials in mid-run measures dialling. Both
// are settled once, in [Target.Options] and [Warm]. What remains is a fact of
// networks: after an error on the wire nobody knows whether the command was
// executed, so such an outcome is unknown, never refused.
//
// Load goes to loopback only, unless [Spec.AllowRemote] is set. Passwords appear
// in no message and no exported field but the user's own [Spec.Target].
package target
