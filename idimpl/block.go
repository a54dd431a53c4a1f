package idimpl

import (
	"context"
	"fmt"

	"oversell/lockimpl"
	"oversell/variant"
)

// blockSize is how many numbers a client fetches at once.
const blockSize = 20

// block fetches numbers in blocks and hands them out without a command. Numbers are unique, but have gaps and are not
// in the order of the calls.
type block struct {
	env       variant.Env
	key       string
	next, end int64 // the rest of the block: next..end
}

func newBlock(env variant.Env, counter string) Generator {
	return &block{env: env, key: keyOf(counter), next: 1}
}

func (g *block) Next(ctx context.Context, _ string, _ lockimpl.Lock) (int64, error) {
	if g.next > g.end {
		end, err := g.env.Redis[0].IncrBy(ctx, g.key, blockSize).Result()
		if err != nil {
			return 0, fmt.Errorf("fetch a block of numbers: %w", err)
		}
		g.next, g.end = end-blockSize+1, end
	}
	n := g.next
	g.next++
	return n, nil
}

func (g *block) Last(ctx context.Context) (int64, error) { return last(ctx, g.env.Redis[0], g.key) }
