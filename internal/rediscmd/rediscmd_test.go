package rediscmd

import (
	"slices"
	"strings"
	"testing"
)

// line splits a command into words. EMPTY stands for an empty word.
func line(text string) []string {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "EMPTY", "")
	}
	return words
}

func TestKeys(t *testing.T) {
	for text, want := range map[string]string{
		"get k":                                   "GET k",
		"GeT k":                                   "GET k",
		"SET k v NX EX 5":                         "SET k",
		"DEL a b c":                               "DEL a b c",
		"MSET a 1 b 2":                            "MSET a b",
		"MSETEX 2 a 1 b 2 EX 5":                   "MSETEX a b",
		"BITOP AND dest a b":                      "BITOP dest a b",
		"EVAL return(1) 0":                        "EVAL",
		"EVAL return(1) 0 argument":               "EVAL",
		"EVAL return(1) 2 a b c":                  "EVAL a b",
		"EVALSHA abc 1 a":                         "EVALSHA a",
		"EVALSHA abc -1 a":                        "EVALSHA",
		"EVALSHA abc x a":                         "EVALSHA",
		"EVALSHA abc":                             "EVALSHA",
		"FCALL f 1 a":                             "FCALL a",
		"FCALL_RO f 1 a":                          "FCALL_RO a",
		"SCRIPT LOAD return(1)":                   "SCRIPT",
		"XREAD COUNT 2 STREAMS a b 0 0":           "XREAD a b",
		"xread block 0 streams a $":               "XREAD a",
		"XREADGROUP GROUP g c STREAMS a >":        "XREADGROUP a",
		"XREADGROUP GROUP streams c STREAMS a >":  "XREADGROUP a",
		"XREADGROUP GROUP g streams STREAMS a >":  "XREADGROUP a",
		"XREADGROUP GROUP g c ſtreams a >":        "XREADGROUP",
		"XGROUP CREATE a g $":                     "XGROUP a",
		"XINFO STREAM a":                          "XINFO a",
		"XINFO HELP":                              "XINFO",
		"XADD a * f v":                            "XADD a",
		"BLPOP a b 0":                             "BLPOP a b",
		"LMPOP 2 a b LEFT":                        "LMPOP a b",
		"BLMPOP 0 2 a b LEFT":                     "BLMPOP a b",
		"ZMPOP 1 a MIN":                           "ZMPOP a",
		"BZMPOP 1.5 1 a MIN":                      "BZMPOP a",
		"ZUNIONSTORE dest 2 a b":                  "ZUNIONSTORE dest a b",
		"ZUNIONSTORE dest":                        "ZUNIONSTORE dest",
		"ZUNION 2 a b":                            "ZUNION a b",
		"SINTERCARD 2 a b":                        "SINTERCARD a b",
		"SORT a BY w LIMIT 0 5 STORE b":           "SORT a b",
		"GEORADIUS a 1 2 3 m STORE b STOREDIST c": "GEORADIUS a c",
		"MIGRATE host 6379 a 0 100":               "MIGRATE a",
		"MIGRATE keys 6379 EMPTY 0 100 KEYS a b":  "MIGRATE a b",
		"MIGRATE host 6379 EMPTY 0 100 COPY":      "MIGRATE",
		"OBJECT ENCODING a":                       "OBJECT a",
		"OBJECT HELP":                             "OBJECT",
		"MEMORY USAGE a":                          "MEMORY a",
		"MEMORY DOCTOR":                           "MEMORY",
		"PUBLISH channel m":                       "PUBLISH",
		"SPUBLISH channel m":                      "SPUBLISH channel",
		"SSUBSCRIBE channel":                      "SSUBSCRIBE channel",
		"SUBSCRIBE channel":                       "SUBSCRIBE",
		"WATCH a b":                               "WATCH a b",
		"MULTI":                                   "MULTI",
		"GET":                                     "GET",
		"PING hello":                              "PING",
		"NOSUCH a b":                              "NOSUCH a",
		"json.get a $":                            "JSON.GET a",
		"JSON.DEBUG MEMORY a":                     "JSON.DEBUG",
		"TS.MGET FILTER a=b":                      "TS.MGET",
		"BF.ADD a x":                              "BF.ADD a",
		"FT.SEARCH index q":                       "FT.SEARCH",
		"a" + strings.Repeat("very", 10) + "long": "A" + strings.Repeat("VERY", 10) + "LONG",
	} {
		words := line(text)
		word := func(i int) string { return words[i] }
		c, _ := Find(words[0])
		got := []string{c.Name}
		keys := c.Keys(len(words), word)
		for _, at := range keys {
			got = append(got, words[at])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is %q; want %q", text, got, want)
		}
		first := c.Key(len(words), word)
		if len(keys) > 0 && keys[0] != first || len(keys) == 0 && first != 0 {
			t.Errorf("%q has its keys at %d, and the first of them at %d", text, keys, first)
		}
	}
}

func TestEveryCommandOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.Name] {
			t.Errorf("%s is in the table twice", c.Name)
		}
		seen[c.Name] = true
		if len(c.Name) > longest || c.Name != strings.ToUpper(c.Name) {
			t.Errorf("Find does not find %s", c.Name)
		}
		if container, _, within := strings.Cut(c.Name, "|"); within && !Is(container, Container) {
			t.Errorf("%s is within %s, which has no commands within it", c.Name, container)
		}
		if c.Does(Reads) && c.Does(Writes|Expires) {
			t.Errorf("%s reads only, and writes", c.Name)
		}
	}
}

func TestFindInAnyCase(t *testing.T) {
	for _, name := range []string{"get", "GET", "gEt"} {
		if c, known := Find(name); !known || c.Name != "GET" {
			t.Errorf("Find(%q) = %v, %v", name, c, known)
		}
		if c, known := Find([]byte(name)); !known || c.Name != "GET" {
			t.Errorf("Find([]byte(%q)) = %v, %v", name, c, known)
		}
	}
	for _, name := range []string{"", "gett", "ſet", strings.Repeat("get", 20)} { // the upper case of long s is S
		if c, known := Find(name); known {
			t.Errorf("Find(%q) = %v", name, c)
		}
	}
}

func TestOtherScript(t *testing.T) {
	for name, want := range map[string]string{"EVAL": "EVALSHA", "evalsha": "EVAL", "eval_ro": "EVALSHA_RO", "EVALSHA_RO": "EVAL_RO", "FCALL": "", "GET": ""} {
		got := ""
		if c, _ := Find(name); c.OtherScript != nil {
			got = c.OtherScript.Name
		}
		if got != want {
			t.Errorf("what runs the script of %s otherwise is %q; want %q", name, got, want)
		}
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	words := [][]byte{[]byte("evalsha"), []byte("abc"), []byte("1"), []byte("lock")}
	if n := testing.AllocsPerRun(100, func() {
		c, _ := Find(words[0])
		c.Key(len(words), func(i int) string { return string(words[i]) })
		Find("pexpire")
	}); n != 0 {
		t.Errorf("finding two commands allocates %v times", n)
	}
}

func BenchmarkFind(b *testing.B) {
	name := []byte("evalsha")
	for b.Loop() {
		Find(name)
	}
}

func names(effect Effect) (all []string) {
	for _, c := range All() {
		if c.Does(effect) {
			all = append(all, c.Name)
		}
	}
	slices.Sort(all)
	return all
}

// TestRareEffects checks which commands have the effects about which a server says nothing.
func TestRareEffects(t *testing.T) {
	for effect, want := range map[Effect]string{
		Greets: "HELLO", Begins: "MULTI", Ends: "DISCARD EXEC", Watches: "WATCH", Unwatches: "DISCARD EXEC RESET UNWATCH",
		Subscribes: "PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE",
		Mutes:      "CLIENT", Debugs: "SCRIPT", Resets: "RESET", Leaves: "MONITOR PSYNC SYNC",
		RunsText: "EVAL EVAL_RO", RunsHash: "EVALSHA EVALSHA_RO",
		Opens: "AUTH CLIENT COMMAND HELLO INFO PING SELECT",
	} {
		if got := strings.Join(names(effect), " "); got != want {
			t.Errorf("effect %d is that of %q; want %q", effect, got, want)
		}
	}
}
