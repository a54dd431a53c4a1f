// Package adapters puts locks and queues of published libraries to the test, apart from the core,
// which needs none of them. Each library stands in a directory of its own, as a system that
// oversell run --system takes (docs/systems.md), or as a worker in queues and asynq. The test of
// this package runs them all, and docs/peers.md is made from what came of it.
package adapters
