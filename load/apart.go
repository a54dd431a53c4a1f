package load

import (
	"math/rand/v2"

	"oversell/variant"
)

// Apart is a client that no engine drives: its world is what it is given. Nothing is
// left to chance in it: every draw of its Rand is the highest that there is, so that
// it remembers nothing, and what has the probability 1 happens.
func Apart(id int32, env variant.Env) *Client {
	return &Client{ID: id, Env: env, Rand: rand.New(highest{}), end: func() {}}
}

// highest is a source without chance and without memory.
type highest struct{}

func (highest) Uint64() uint64 { return 1<<64 - 1 }
