package redismodel

import (
	"strings"
	"testing"

	"oversell/internal/rediscmd"
)

func TestCommandsAreInTheSharedTable(t *testing.T) {
	for name, c := range table {
		if _, known := rediscmd.Find(name); !known || c.Arity == 0 {
			t.Errorf("package rediscmd does not know %s, or how many words it takes", name)
		}
	}
}

// TestScriptsAreRefusedAsAServerDoes checks that the model, like a server, first counts the arguments of a command, and
// then asks whether scripts may call it.
func TestScriptsAreRefusedAsAServerDoes(t *testing.T) {
	for call, want := range map[string]string{
		"redis.pcall('watch')":      "-ERR Wrong number of args calling Redis command from script\r\n",
		"redis.pcall('watch', 'k')": "-ERR This Redis command is not allowed from script\r\n",
		"redis.pcall('get')":        "-ERR Wrong number of args calling Redis command from script\r\n",
		"redis.pcall('nosuch')":     "-ERR Unknown Redis command called from script\r\n",
		"redis.pcall('script')":     "-ERR Wrong number of args calling Redis command from script\r\n",
	} {
		_, reply, info := Empty().Do(benchNow, 0, []string{"eval", "return " + call, "0"})
		if string(reply) != want || info.Unknown != "" {
			t.Errorf("%s: %q, unknown: %q; want %q", call, reply, info.Unknown, strings.TrimSpace(want))
		}
	}
}
