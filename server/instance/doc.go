// Package instance is one Redis server: how to address, query and break it.
//
// An [Endpoint] is the address of a server with its credentials, and [Options] are the
// settings with which every client of this program talks to one. A [Server] is one that
// a target uses, and knows whether it was killed or frozen. A [Host] starts our own servers, each a [Machine] that can
// be broken and healed; [NewProcessHost] starts them as children of this program, and package container in containers.
package instance
