package server

import (
	"github.com/redis/go-redis/v9"
)

// Options returns the settings with which every client of this program talks to a
// master. It is the only place that sets them, and returns a fresh copy, so that a caller can put a proxy's address
// into it. It contains the password: never print it. It panics if there is no such node.
//
// On a topology with replicas, new connections to the address of the first master lead to the server that is the
// master when they are opened. On a cluster they lead to its first master, which serves only its share of the keys.
//
// An error on the wire leaves the outcome of its command unknown: the server may
// have executed it, may do so later, or never.
func (t *Target) Options(node int, o ConnOptions) *redis.Options {
	return t.shape.Options(node, o)
}

// Client makes a client of one node, with the settings of [Target.Options], that follows the target's topology; see the
// package comment. It does not connect yet; see [Warm]. The caller closes it.
func (t *Target) Client(node int, o ConnOptions) redis.UniversalClient {
	return t.shape.Client(node, o)
}

// Clients makes one client for each node. The caller closes them.
func (t *Target) Clients(o ConnOptions) []redis.UniversalClient {
	all := make([]redis.UniversalClient, t.Nodes())
	for i := range all {
		all[i] = t.Client(i, o)
	}
	return all
}

// Addresses returns the addresses of the nodes (host:port) for programs with their own Redis client: the proxy's where
// connections go through one (see [Target.Route]).
func (t *Target) Addresses() []string {
	all := make([]string, t.Nodes())
	for i := range all {
		all[i] = t.Options(i, ConnOptions{}).Addr
		if via := t.group.Routed(); via != nil {
			all[i] = via(all[i])
		}
	}
	return all
}
