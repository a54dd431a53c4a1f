package rediscmd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
)

func dial(t *testing.T) *redis.Client {
	addr, _ := servertest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

// info is what a server says about a command.
type info struct {
	name              string
	arity             int
	flags             []string
	first, last, step int
	subs              []info
}

func infoFrom(v any) info {
	parts := v.([]any)
	in := info{
		name: strings.ToUpper(parts[0].(string)), arity: int(parts[1].(int64)),
		first: int(parts[3].(int64)), last: int(parts[4].(int64)), step: int(parts[5].(int64)),
	}
	for _, f := range parts[2].([]any) {
		in.flags = append(in.flags, f.(string))
	}
	if len(parts) > 9 {
		for _, sub := range parts[9].([]any) {
			in.subs = append(in.subs, infoFrom(sub))
		}
	}
	return in
}

// differs lists how the table's entry for a command differs from what the server says. An entry may say less than the
// server, but nothing else.
func (in info) differs(c *Command) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if c.Arity != 0 && c.Arity != in.arity {
		add("it takes %d words; the table says %d", in.arity, c.Arity)
	}
	for flag, effect := range map[string]Effect{"readonly": Reads, "write": Writes, "blocking": Blocks, "noscript": NoScript} {
		if is := slices.Contains(in.flags, flag); is != c.Does(effect) && c.Arity != 0 {
			add("%s: %v; the table says %v", flag, is, c.Does(effect))
		}
	}
	if len(in.subs) > 0 && !c.Does(Container) {
		add("there are commands within it")
	}
	k := c.keys
	switch {
	case slices.Contains(in.flags, "movablekeys"):
		if k.rule == ranges && in.name != "SORT_RO" { // the keys by which it sorts cannot be told from its arguments
			add("its keys are not at fixed places")
		}
		if in.first > 0 && k.from != int8(in.first) && k.rule != stores && k.rule != countsBehindFirst {
			add("its first key is at %d; the table says %d", in.first, k.from)
		}
	case len(in.subs) > 0: // the subcommands have the details
	case (in.first > 0 || k.rule != ranges || k.from != 0) && (k != keys{ranges, int8(in.first), int8(in.last), int8(in.step)}):
		add("its keys are at %d, %d, step %d; the table says %+v", in.first, in.last, in.step, k)
	}
	for _, sub := range in.subs {
		if sub.first > 0 && sub.first != int(k.from) {
			add("the first key of %s is at %d; the table says %d", sub.name, sub.first, k.from)
		}
		if within, known := Find(sub.name); known {
			all = append(all, sub.differs(within)...)
		}
	}
	return all
}

func TestTableAgreesWithServer(t *testing.T) {
	c := dial(t)
	said, err := c.Do(t.Context(), "COMMAND", "INFO").Slice()
	if err != nil {
		t.Fatal(err)
	}
	if len(said) < 200 {
		t.Fatalf("the server knows %d commands only", len(said))
	}
	for _, one := range said {
		in := infoFrom(one)
		cmd, known := Find(in.name)
		if !known {
			t.Errorf("%s is not in the table", in.name)
			continue
		}
		for _, d := range in.differs(cmd) {
			t.Errorf("%s: %s", in.name, d)
		}
	}
}

// TestKeysAgreeWithServer compares the keys in commands of every form with those that the server finds in them.
func TestKeysAgreeWithServer(t *testing.T) {
	c := dial(t)
	var lines []string
	for _, cmd := range All() {
		if cmd.Arity == 0 || cmd.keys.rule != ranges || cmd.keys.from == 0 || cmd.Does(Container) || strings.Contains(cmd.Name, "|") {
			continue
		}
		if cmd.Does(Subscribes) || cmd.Name == "SPUBLISH" { // channels of shards are at the places of keys, but are not keys
			continue
		}
		for more := range 4 { // further arguments beyond the minimum
			n := max(cmd.Arity, -cmd.Arity+more)
			if cmd.Name == "PFMERGE" && n == 2 { // the server refuses to say
				continue
			}
			text := cmd.Name
			for i := 1; i < n; i++ {
				text += fmt.Sprintf(" %d", i)
			}
			if lines = append(lines, text); cmd.Arity > 0 {
				break
			}
		}
	}
	lines = append(lines,
		"EVAL text 0", "EVAL text 2 a b c", "EVAL_RO text 1 a b", "EVALSHA sha 1 a", "EVALSHA_RO sha 1 a", "FCALL f 2 a b c", "FCALL_RO f 1 a", "EVAL text x a", "EVAL text -1 a",
		"XREAD COUNT 2 STREAMS a b 0 0", "XREAD BLOCK 0 streams a $", "XREADGROUP GROUP g c STREAMS a b > >",
		"XREADGROUP GROUP streams c STREAMS a >", "XREADGROUP GROUP g streams STREAMS a >",
		"XGROUP CREATE a g $", "XINFO STREAM a", "OBJECT ENCODING a", "MEMORY USAGE a SAMPLES 5",
		"LMPOP 2 a b LEFT", "BLMPOP 0 2 a b LEFT", "ZMPOP 1 a MIN", "BZMPOP 1.5 1 a MIN", "ZUNION 2 a b WITHSCORES", "ZINTER 2 a b",
		"ZDIFF 2 a b", "ZINTERCARD 2 a b LIMIT 1", "SINTERCARD 2 a b", "ZUNIONSTORE dest 2 a b AGGREGATE MAX", "ZINTERSTORE dest 1 a", "ZDIFFSTORE dest 2 a b",
		"SORT a BY w LIMIT 0 5 STORE b", "SORT a", "GEORADIUS a 1 2 3 m STORE b", "GEORADIUS a 1 2 3 m", "GEORADIUSBYMEMBER a m 3 km STOREDIST b", "GEORADIUSBYMEMBER a m 3 km",
		"MIGRATE host 6379 a 0 100", "MIGRATE keys 6379 EMPTY 0 100 KEYS a b",
		"PING x", "CONFIG GET save", "SUBSCRIBE a",
	)
	asked := map[rule]bool{}
	for _, text := range lines {
		words := line(text)
		args := []any{"COMMAND", "GETKEYS"}
		for _, w := range words {
			args = append(args, w)
		}
		want, err := c.Do(t.Context(), args...).StringSlice()
		if err != nil && !strings.Contains(err.Error(), "no key arguments") && !strings.Contains(err.Error(), "Invalid arguments") { // what a server says about a command without keys, and about EVAL with a wrong number of keys
			t.Fatalf("%s: %v", text, err)
		}
		cmd, _ := Find(words[0])
		var got []string
		for _, at := range cmd.Keys(len(words), func(i int) string { return words[i] }) {
			got = append(got, words[at])
		}
		if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("the keys of %q are %q; the server says %q, %v", text, got, want, err)
		}
		asked[cmd.keys.rule] = true
	}
	if len(asked) != int(migrates)+1 {
		t.Errorf("commands of the rules %v only were asked for", asked)
	}
}

// TestExpiring sends one command of each kind that may set the time to live of a key.
func TestExpiring(t *testing.T) {
	c := dial(t)
	dump := c.Set(t.Context(), "dumped", "v", 0)
	if dump.Err() != nil {
		t.Fatal(dump.Err())
	}
	value := c.Dump(t.Context(), "dumped").Val()
	for name, args := range map[string][]any{
		"SET": {"k", "v", "PX", 100_000}, "SETEX": {"k", 100, "v"}, "PSETEX": {"k", 100_000, "v"}, "GETEX": {"k", "EX", 100},
		"EXPIRE": {"k", 100}, "PEXPIRE": {"k", 100_000}, "EXPIREAT": {"k", 99_999_999_999}, "PEXPIREAT": {"k", 99_999_999_999_999},
		"RESTORE": {"k", 100_000, value, "REPLACE"}, "RESTORE-ASKING": {"k", 100_000, value, "REPLACE"},
	} {
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), append([]any{name}, args...)...).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if left := c.PTTL(t.Context(), "k").Val(); left <= 0 || !Is(name, Expires) {
			t.Errorf("behind %s the time to live is %v; in the table it sets one: %v", name, left, Is(name, Expires))
		}
	}
}
