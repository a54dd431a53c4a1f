// Package server provides the Redis under test, and breaks it on request.
//
// A [Spec] says which one: a redis-server started as a child of this program or in a container, an in-memory emulation
// inside it, or running servers; and in which topology: one server, several independent masters, or servers that can
// replace each other. [Open] finds or starts it and returns a [Target], which makes clients, describes what was chosen
// and why, and stops only what it started.
//
// These ideas shape the package.
//
// A verdict about the wrong server is worthless. So a child is recognized by its process id, not by an answer on its
// port, and a server at a given address is asked for its identity: a server that does not match the topology is
// refused, and so is the same server given twice.
//
// Nothing outlives the program. A child dies with its parent, even when the parent
// is killed with SIGKILL (on Linux); files are removed at the end, or by the next
// program.
//
// The driver must not act on its own. A client that silently repeats a command applies it twice, and a client that
// dials during a run measures dialling. [Target.Options] and [Warm] prevent both. One uncertainty remains: after an
// error on the wire it is unknown whether the command was executed, so such an outcome is unknown, never refused.
//
// A client is routed like the clients of users. On a sentinel topology and a cluster it is the driver's own client for
// these, with three corrections on a cluster: no command is repeated after an error on the wire; a client that cannot
// reach a node asks at once which node has replaced it; and a command that a node refuses without executing it (MOVED,
// ASK, READONLY, CLUSTERDOWN, TRYAGAIN, LOADING) is tried again at most twice. A pipeline that found no connection is
// also sent again, since nothing of it was sent. On a replica topology, where nothing tells clients of a new primary,
// new connections lead to it, and existing ones do not move.
//
// A broken server must be able to recover; otherwise a broken lock could not be distinguished from a broken server.
// [Target.Kill] and similar methods do not end a target; an unexpected death of a server does. [Target.AwaitHealthy]
// says whether the target has recovered, and if not, what is wrong.
//
// Load goes to loopback only, unless [Spec.AllowRemote] is set. Passwords appear in no message and in no exported field
// except the user's own [Spec.Target].
package server
