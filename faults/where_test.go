package faults

import (
	"slices"
	"testing"

	"oversell/internal/rediscmd"
	"oversell/wire"
)

func TestMatches(t *testing.T) {
	p := point{
		moment: After, names: []string{"SET", "SETNX"}, key: "Lock:{run}order", during: []string{"release", "buy"},
		state: Holding, client: 3, node: 2, first: true,
	}
	for _, c := range []struct {
		where Where
		want  bool
	}{
		{Where{}, true},
		{Where{Moment: After}, true}, {Where{Moment: Before}, false},
		{Where{Command: "SETNX"}, true}, {Where{Command: "SET"}, true}, {Where{Command: "GET"}, false},
		{Where{Key: "Lock:*"}, true}, {Where{Key: "Lock"}, false},
		{Where{During: "buy"}, true}, {Where{During: "release"}, true}, {Where{During: "acquire"}, false},
		{Where{State: Holding}, true}, {Where{State: Waiting}, false},
		{Where{Client: 3}, true}, {Where{Client: 1}, false},
		{Where{Node: 2}, true}, {Where{Node: 1}, false},
		{Where{First: true}, true},
		{Where{Command: "SETNX", Client: 3, During: "buy", State: Holding, Node: 2, Moment: After, Key: "*"}, true},
	} {
		if got := c.where.matches(p); got != c.want {
			t.Errorf("%+v matches: %v; want %v", c.where, got, c.want)
		}
	}
	if (Where{First: true}).matches(point{}) {
		t.Error("a command that is not the first matches First")
	}
	if (Where{Client: 1}).matches(point{}) {
		t.Error("an unknown client is client 1")
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b{c}[d]", true}, {"?", "", false}, {"?", "锁", true}, {"??", "锁", false},
		{"Lock:*", "Lock:", true}, {"Lock:*", "lock:", false}, {"*order", "Lock:{x}order", true}, {"*{x}*", "Lock:{x}order", true},
		{"a*b*c", "aXbXbXc", true}, {"a*b*c", "aXbXbX", false}, {"a**c", "abc", true}, {"*?c", "c", false}, {"*?c", "锁c", true},
		{"[ab]", "a", false}, {"[ab]", "[ab]", true}, {`\*`, `\x`, true}, {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	} {
		if got := like(c.pattern, c.text); got != c.want {
			t.Errorf("%q is like %q: %v; want %v", c.text, c.pattern, got, c.want)
		}
	}
}

func args(words ...any) []any { return words }

func TestNamesAndKeys(t *testing.T) {
	for _, c := range []struct {
		args  []any
		names []string
		key   string
	}{
		{nil, nil, ""},
		{args("ping"), []string{"PING"}, ""},
		{args("get", "stock"), []string{"GET"}, "stock"},
		{args("set", "k", "v"), []string{"SET"}, "k"},
		{args("set", "k", "nx"), []string{"SET"}, "k"},
		{args("set", "k", "v", "nx"), []string{"SET", "SETNX"}, "k"},
		{args("SET", []byte("k"), "v", "ex", int64(10), "nx"), []string{"SET", "SETNX", "SETEX"}, "k"},
		{args("Set", "k", "v", "PX", 10, "NX"), []string{"SET", "SETNX", "PSETEX", "SETEX"}, "k"},
		{args("evalsha", "abc", 1, "Lock:a", "token"), []string{"EVALSHA", "EVAL"}, "Lock:a"},
		{args("evalsha", "abc", 0, "token"), []string{"EVALSHA", "EVAL"}, ""},
		{args("eval", "return 1", "2", "a", "b"), []string{"EVAL"}, "a"},
		{args("decrby", "stock", 2), []string{"DECRBY", "DECR"}, "stock"},
		{args("decr", "stock"), []string{"DECR", "DECRBY"}, "stock"},
		{args("pexpire", "k", 10), []string{"PEXPIRE", "EXPIRE"}, "k"},
		{args("xreadgroup", "group", "g", "c", "streams", "s1", "s2", ">", ">"), []string{"XREADGROUP"}, "s1"},
		{args("xgroup", "create", "s", "g", "0"), []string{"XGROUP", "XGROUP|CREATE"}, "s"},
		{args("script", "load", "return 1"), []string{"SCRIPT", "SCRIPT|LOAD"}, ""},
		{args("bzmpop", 0, 1, "z", "min"), []string{"BZMPOP"}, "z"},
		{args("zmpop", 1, "z", "min"), []string{"ZMPOP"}, "z"},
		{args("bf.add", "k", "v"), []string{"BF.ADD"}, "k"},
		{args("ts.mget", "filter", "a=b"), []string{"TS.MGET"}, ""},
		{args("nosuch", "k"), []string{"NOSUCH"}, "k"},
		{args("migrate", "host", 6379, "", 0, 100, "keys", "k"), []string{"MIGRATE"}, "k"},
		{args("xreadgroup", "group", "streams", "c", "streams", "s1", ">"), []string{"XREADGROUP"}, "s1"},
		{args("eval", "return 1", "one", "k"), []string{"EVAL"}, ""},
		{args("pfdebug", "getreg", "k"), []string{"PFDEBUG"}, "k"},
		{args("get"), []string{"GET"}, ""},
	} {
		if got := namesOf(c.args); !slices.Equal(got, c.names) {
			t.Errorf("%v answers to %v; want %v", c.args, got, c.names)
		}
		if got := keyOf(c.args); got != c.key {
			t.Errorf("%v has the key %q; want %q", c.args, got, c.key)
		}
		onWire := wire.Command{}
		for _, a := range c.args {
			onWire.Args = append(onWire.Args, []byte(text(a)))
		}
		if len(c.args) > 0 {
			onWire.Name = c.names[0]
			if got := namesOnWire(onWire); !slices.Equal(got, c.names) {
				t.Errorf("on the wire, %v answers to %v; want %v", c.args, got, c.names)
			}
		}
	}
}

// TestAliasesAreCommands checks that all names in alsoAnswersTo are commands.
func TestAliasesAreCommands(t *testing.T) {
	for name, also := range alsoAnswersTo {
		for _, n := range append(also, name) {
			if _, known := rediscmd.Find(n); !known {
				t.Errorf("%s is not in the table", n)
			}
		}
	}
}

func TestNamesAllocateNothing(t *testing.T) {
	set, get := args("set", "Lock:a", "token", "px", "10000", "nx"), args("evalsha", "abc", "1", "Lock:a")
	if n := testing.AllocsPerRun(100, func() {
		namesOf(set)
		namesOf(get)
		keyOf(get)
	}); n != 0 {
		t.Errorf("looking at two commands allocates %v times", n)
	}
}
