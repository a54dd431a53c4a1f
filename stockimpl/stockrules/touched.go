package stockrules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// Touched returns env with clients that note the keys of their commands, and a function that returns the keys so far that contain
// a name. Among them are those of locks and other keys that do not outlast a call. The name itself is not among them: a script may
// be given it in place of a key, and put keys together from it.
func Touched(env variant.Env, name string) (variant.Env, func() []string) {
	n := &noted{name: name}
	own := make([]redis.UniversalClient, len(env.Redis))
	for i, c := range env.Redis {
		if one, ok := c.(*redis.Client); ok {
			c = one.WithTimeout(one.Options().ReadTimeout) // the way to share a pool, with hooks of its own
		}
		c.AddHook(n)
		own[i] = c
	}
	env.Redis = own
	return env, n.all
}

// noted are keys that contain a name.
type noted struct {
	name string
	mu   sync.Mutex
	keys []string
}

func (n *noted) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.keys)
}

func (n *noted) note(cmds ...redis.Cmder) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, cmd := range cmds {
		for _, key := range keysOf(cmd.Args()) {
			if key != n.name && strings.Contains(key, n.name) && !slices.Contains(n.keys, key) {
				n.keys = append(n.keys, key)
			}
		}
	}
}

// keysOf returns the keys of a command: those that it names for a script, all arguments if it has only keys, and otherwise the first.
func keysOf(args []any) []string {
	if len(args) < 2 {
		return nil
	}
	var keys []string
	first, last := 1, 2
	switch command := strings.ToLower(fmt.Sprint(args[0])); command {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
		count := 0
		if len(args) > 2 {
			count, _ = args[2].(int)
		}
		first, last = min(3, len(args)), min(3+count, len(args))
	case "mget", "del", "unlink", "exists", "watch", "touch":
		last = len(args)
	}
	for _, arg := range args[first:last] {
		keys = append(keys, fmt.Sprint(arg))
	}
	return keys
}

// DialHook implements redis.Hook. It changes nothing.
func (*noted) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (n *noted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n.note(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (n *noted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		n.note(cmds...)
		return next(ctx, cmds)
	}
}
