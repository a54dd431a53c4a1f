// Package adapters tests locks and queues of published libraries, separately from the core, which needs none of
// them. Each library has a directory with a system for oversell run --system (docs/systems.md), or a worker in
// queues and asynq. The test of this package runs them all and generates docs/peers.md.
package adapters
