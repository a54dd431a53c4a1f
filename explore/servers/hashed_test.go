package servers

import (
	"testing"
	"time"

	"oversell/internal/coro"
	"oversell/internal/names"
)

// TestOrderOfNames checks that the order of a Lua table is unknown if a key stands for any token.
func TestOrderOfNames(t *testing.T) {
	for _, naming := range []names.Naming{0, names.Concrete} {
		s := New(time.Unix(1_700_000_000, 0), nil, &coro.Scripts{}, names.NewNamer(naming, 2))
		token := s.Names.Scheme(1).Token(0)
		for key, known := range map[string]bool{"owner": true, token: false, "lock:" + token: false, "1700000001": false} {
			for _, script := range []string{"return cjson.encode({[ARGV[1]] = 1, count = 2})", "return (next({[ARGV[1]] = 1, count = 2}))", "return #{[ARGV[1]] = 1, 1, nil, 3, x = 1, [4] = 4}"} {
				_, _, info := s.Do(s.Empty, 0, Call{Commands: [][]string{{"EVAL", script, "0", key}}})
				if (info.Unknown == "") != known {
					t.Errorf("naming %d: %q with the key %q: unknown %q", naming, script, key, info.Unknown)
				}
			}
			_, _, info := s.Do(s.Empty, 0, Call{Commands: [][]string{{"EVAL", "local t = {[ARGV[1]] = 1} t[1] = 5 return #t + t[ARGV[1]] + #cjson.encode({[ARGV[1]] = 1})", "0", key}}})
			if info.Unknown != "" {
				t.Errorf("naming %d: one key %q: unknown %q", naming, key, info.Unknown)
			}
		}
	}
}
