package idimpl

import (
	"context"
	_ "embed" // the script
	"fmt"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

//go:embed script.lua
var scriptLua string

var nextScript = redis.NewScript(scriptLua)

// script gives a request a number and stores both, in one step.
type script struct {
	env  variant.Env
	keys []string
}

func newScript(env variant.Env, counter string) Generator {
	return script{env, []string{keyOf(counter), "Requests:" + keyOf(counter)}}
}

func (g script) Next(ctx context.Context, request string, _ lockimpl.Lock) (int64, error) {
	n, err := nextScript.Run(ctx, g.env.Redis[0], g.keys, request).Int64()
	if err != nil {
		return 0, fmt.Errorf("number request %s: %w", request, err)
	}
	return n, nil
}

func (g script) Last(ctx context.Context) (int64, error) {
	return last(ctx, g.env.Redis[0], g.keys[0])
}
