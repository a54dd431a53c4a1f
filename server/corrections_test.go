package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// claimCommands set up messages 1-0, 2-0 and 3-0, of which 3-0 is deleted, and claim them. The list of what is pending tells
// the consumer, whether the message was delivered long ago, and how often.
var claimCommands = func() []command {
	list := func(want string) command {
		return cmd(want, "EVAL", `local out = {} for _, p in ipairs(redis.call("XPENDING", KEYS[1], "g", "-", "+", 10)) do
			out[#out + 1] = p[1] .. " " .. p[2] .. " " .. tostring(p[3] > 50000) .. " " .. p[4] end return out`, 1, "q")
	}
	claim := func(want string, args ...any) command {
		return cmd(want, append([]any{"XCLAIM", "q", "g"}, args...)...)
	}
	return []command{
		cmd("OK", "XGROUP", "CREATE", "q", "g", 0, "MKSTREAM"),
		cmd("1-0", "XADD", "q", "1-0", "f", "a"),
		cmd("2-0", "XADD", "q", "2-0", "f", "b"),
		cmd("3-0", "XADD", "q", "3-0", "f", "c"),
		cmd("[[q [[1-0 [f a]]]]]", "XREADGROUP", "GROUP", "g", "me", "COUNT", 1, "STREAMS", "q", ">"),
		list("[1-0 me false 1]"),
		claim("[]", "you", 50000, "1-0"), // delivered a moment ago
		list("[1-0 me false 1]"),
		claim("[1-0]", "me", 0, "1-0", "IDLE", 60000, "JUSTID"),
		list("[1-0 me true 1]"),
		claim("[1-0]", "me", 50000, "1-0", "JUSTID"),
		list("[1-0 me false 1]"),
		claim("[[1-0 [f a]]]", "you", 0, "1-0", "IDLE", 60000),
		list("[1-0 you true 2]"),
		claim("[[1-0 [f a]]]", "you", 0, "1-0", "IDLE", 60000, "RETRYCOUNT", 7),
		list("[1-0 you true 7]"),
		cmd("[0-0 [1-0] []]", "XAUTOCLAIM", "q", "g", "me", 50000, "0-0", "JUSTID"),
		list("[1-0 me false 7]"),
		cmd("[0-0 [] []]", "XAUTOCLAIM", "q", "g", "me", 50000, "0-0"),
		cmd("[0-0 [[1-0 [f a]]] []]", "XAUTOCLAIM", "q", "g", "you", 0, "0-0", "COUNT", 5),
		list("[1-0 you false 8]"),
		claim("[]", "me", 0, "2-0"), // not pending
		claim("[2-0]", "me", 0, "2-0", "FORCE", "JUSTID"),
		list("[1-0 you false 8 2-0 me false 1]"),
		cmd("1", "XDEL", "q", "3-0"),
		claim("[]", "me", 0, "3-0", "FORCE"), // deleted
		list("[1-0 you false 8 2-0 me false 1]"),
		cmd("1", "XDEL", "q", "2-0"),
		claim("[1-0]", "me", 0, "1-0", "2-0", "JUSTID"),
		list("[1-0 me false 8]"),
		cmd("error: NOGROUP No such key 'none' or consumer group 'g'", "XCLAIM", "none", "g", "me", 0, "1-0"),
	}
}()

var ttlCommands = []command{
	cmd("OK", "SET", "t", "a", "PX", 59800),
	cmd("60", "TTL", "t"),
	cmd("1", "PEXPIRE", "t", 60300),
	cmd("60", "TTL", "t"),
	cmd("1", "PERSIST", "t"),
	cmd("-1", "TTL", "t"),
	cmd("-2", "TTL", "absent"),
}

// ways are how a client executes a command: by itself, in a script, and in a transaction.
var ways = map[string]func(redis.UniversalClient, *testing.T, []any) (any, error){
	"alone": func(c redis.UniversalClient, t *testing.T, args []any) (any, error) {
		return c.Do(t.Context(), args...).Result()
	},
	"in a script": func(c redis.UniversalClient, t *testing.T, args []any) (any, error) {
		if args[0] == "EVAL" || args[0] == "XREADGROUP" {
			return c.Do(t.Context(), args...).Result()
		}
		return c.Do(t.Context(), append([]any{"EVAL", "return redis.pcall(unpack(ARGV))", 0}, args...)...).Result()
	},
	"in a transaction": func(c redis.UniversalClient, t *testing.T, args []any) (any, error) {
		p := c.TxPipeline()
		got := p.Do(t.Context(), args...)
		_, _ = p.Exec(t.Context())
		return got.Result()
	},
}

// TestCorrections checks that commands which miniredis does not execute as Redis does have the same effect on both.
func TestCorrections(t *testing.T) {
	for _, kind := range []string{"embedded", "process"} {
		for name, do := range ways {
			t.Run(kind+" "+name, func(t *testing.T) {
				tg := mustOpen(t, Spec{Target: kind})
				c := tg.Client(0, ConnOptions{})
				defer c.Close()
				for _, step := range append(ttlCommands, claimCommands...) {
					got, err := do(c, t, slices.Clone(step.args))
					if err != nil {
						got = "error: " + err.Error()
					}
					if text := fmt.Sprint(got); text != step.want {
						t.Errorf("%v = %s; want %s", step.args, text, step.want)
					}
				}
			})
		}
	}
}
