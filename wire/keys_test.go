package wire

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func keyOf(line string) (name, key string) {
	var args [][]byte
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(strings.ReplaceAll(w, "EMPTY", "")))
	}
	k := know(args[0])
	at := k.key(args)
	if at == 0 {
		return k.name, ""
	}
	return k.name, string(args[at])
}

func TestKeys(t *testing.T) {
	for line, want := range map[string]string{
		"get k":                                   "GET k",
		"GeT k":                                   "GET k",
		"SET k v NX EX 5":                         "SET k",
		"DEL a b c":                               "DEL a",
		"MSET a 1 b 2":                            "MSET a",
		"BITOP AND dest a b":                      "BITOP dest",
		"EVAL return(1) 0":                        "EVAL",
		"EVAL return(1) 0 argument":               "EVAL",
		"EVAL return(1) 2 a b c":                  "EVAL a",
		"EVALSHA abc 1 a":                         "EVALSHA a",
		"EVALSHA abc -1 a":                        "EVALSHA",
		"EVALSHA abc x a":                         "EVALSHA",
		"EVALSHA abc":                             "EVALSHA",
		"FCALL f 1 a":                             "FCALL a",
		"FCALL_RO f 1 a":                          "FCALL_RO a",
		"SCRIPT LOAD return(1)":                   "SCRIPT",
		"XREAD COUNT 2 STREAMS a b 0 0":           "XREAD a",
		"xread block 0 streams a $":               "XREAD a",
		"XREADGROUP GROUP g c STREAMS a >":        "XREADGROUP a",
		"XREADGROUP GROUP streams c STREAMS a >":  "XREADGROUP a",
		"XREADGROUP GROUP g streams STREAMS a >":  "XREADGROUP a",
		"XGROUP CREATE a g $":                     "XGROUP a",
		"XINFO STREAM a":                          "XINFO a",
		"XINFO HELP":                              "XINFO",
		"XADD a * f v":                            "XADD a",
		"BLPOP a b 0":                             "BLPOP a",
		"LMPOP 2 a b LEFT":                        "LMPOP a",
		"BLMPOP 0 2 a b LEFT":                     "BLMPOP a",
		"ZMPOP 1 a MIN":                           "ZMPOP a",
		"BZMPOP 1.5 1 a MIN":                      "BZMPOP a",
		"ZUNIONSTORE dest 2 a b":                  "ZUNIONSTORE dest",
		"ZUNION 2 a b":                            "ZUNION a",
		"SINTERCARD 2 a b":                        "SINTERCARD a",
		"MIGRATE host 6379 a 0 100":               "MIGRATE a",
		"MIGRATE keys 6379 EMPTY 0 100 KEYS a b":  "MIGRATE a",
		"MIGRATE host 6379 EMPTY 0 100 COPY":      "MIGRATE",
		"OBJECT ENCODING a":                       "OBJECT a",
		"OBJECT HELP":                             "OBJECT",
		"MEMORY USAGE a":                          "MEMORY a",
		"MEMORY DOCTOR":                           "MEMORY",
		"PUBLISH channel m":                       "PUBLISH",
		"SPUBLISH channel m":                      "SPUBLISH channel",
		"SSUBSCRIBE channel":                      "SSUBSCRIBE channel",
		"SUBSCRIBE channel":                       "SUBSCRIBE",
		"WATCH a b":                               "WATCH a",
		"MULTI":                                   "MULTI",
		"GET":                                     "GET",
		"PING hello":                              "PING",
		"NOSUCH a":                                "NOSUCH",
		"json.get a $":                            "JSON.GET a",
		"JSON.DEBUG MEMORY a":                     "JSON.DEBUG",
		"TS.MGET FILTER a=b":                      "TS.MGET",
		"BF.ADD a x":                              "BF.ADD a",
		"a" + strings.Repeat("very", 10) + "long": "A" + strings.Repeat("VERY", 10) + "LONG",
	} {
		name, key := keyOf(line)
		if got := strings.TrimSpace(name + " " + key); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

// TestKeysAgreeWithRedis compares the table with what the server itself says.
func TestKeysAgreeWithRedis(t *testing.T) {
	addr, _ := startRedis(t)
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	all, err := c.Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 200 {
		t.Fatalf("the server knows %d commands only", len(all))
	}
	for name, info := range all {
		k := know([]byte(name))
		if info.FirstKeyPos > 0 && (k.rule != keyAt || k.place != int(info.FirstKeyPos)) && k.rule != keyMoved {
			t.Errorf("%s has its first key at %d; the table says rule %d, place %d", name, info.FirstKeyPos, k.rule, k.place)
		}
		movable := false
		for _, f := range info.Flags {
			movable = movable || f == "movablekeys"
		}
		if movable && k.rule == noKey {
			t.Errorf("%s has keys, which the table does not know", name)
		}
	}
}
