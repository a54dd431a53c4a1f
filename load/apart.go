package load

import (
	"math/rand/v2"

	"oversell/variant"
)

// NewDetached creates a client without an engine, in the given environment. Nothing in it is random: its Rand always
// returns the highest value and has no state, so events with probability 1 happen.
func NewDetached(id int32, env variant.Env) *Client {
	return &Client{ID: id, Env: env, Rand: rand.New(highest{}), end: func() {}}
}

// highest is a source that always returns the highest value.
type highest struct{}

func (highest) Uint64() uint64 { return 1<<64 - 1 }
