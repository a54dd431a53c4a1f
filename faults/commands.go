package faults

import (
	"fmt"
	"strings"

	"oversell/wire"
)

// Commands answer to more than one name, so that a sentence need not know which
// of several ways a driver or a script library chose to say the same thing. SET
// answers to names by its options:
//
//	SET key value NX         SET and SETNX
//	SET key value EX 10      SET and SETEX
//	SET key value PX 10000   SET, PSETEX and SETEX
//
// and these to names that mean as much or the general case:
var alsoAnswersTo = map[string][]string{
	"EVALSHA":    {"EVAL"}, // which is what a driver sends when the server does not know the script
	"EVAL_RO":    {"EVAL"},
	"EVALSHA_RO": {"EVALSHA", "EVAL_RO", "EVAL"},
	"FCALL_RO":   {"FCALL"},
	"DECR":       {"DECRBY"},
	"DECRBY":     {"DECR"},
	"INCR":       {"INCRBY"},
	"INCRBY":     {"INCR"},
	"HMSET":      {"HSET"},
	"PSETEX":     {"SETEX"},
	"PEXPIRE":    {"EXPIRE"},
	"EXPIREAT":   {"EXPIRE"},
	"PEXPIREAT":  {"PEXPIRE", "EXPIRE"},
	"PTTL":       {"TTL"},
	"UNLINK":     {"DEL"},
}

// The options of SET that make it answer to further names.
const (
	withNX = 1 << iota
	withEX
	withPX
)

// setAnswersTo are the names of a SET with some of these options.
var setAnswersTo = [...][]string{
	0:                        {"SET"},
	withNX:                   {"SET", "SETNX"},
	withEX:                   {"SET", "SETEX"},
	withPX:                   {"SET", "PSETEX", "SETEX"},
	withNX | withEX:          {"SET", "SETNX", "SETEX"},
	withNX | withPX:          {"SET", "SETNX", "PSETEX", "SETEX"},
	withEX | withPX:          {"SET", "SETEX", "PSETEX"}, // which the server refuses
	withNX | withEX | withPX: {"SET", "SETNX", "SETEX", "PSETEX"},
}

// Where commands have their first key: nowhere, at a place counted from the name,
// or behind the number of keys that stands at such a place. XREAD and XREADGROUP
// have it behind a word.
const (
	noKeys   = "ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DBSIZE DEBUG DISCARD ECHO EXEC FAILOVER FLUSHALL FLUSHDB FUNCTION HELLO INFO KEYS LASTSAVE LATENCY LOLWUT MODULE MONITOR MULTI PING PSUBSCRIBE PSYNC PUBLISH PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY READONLY READWRITE REPLCONF REPLICAOF RESET ROLE SAVE SCAN SCRIPT SELECT SHUTDOWN SLAVEOF SLOWLOG SUBSCRIBE SWAPDB SYNC TIME UNSUBSCRIBE UNWATCH WAIT WAITAOF"
	keyAt1   = "APPEND BITCOUNT BITFIELD BITFIELD_RO BITPOS BLMOVE BLPOP BRPOP BRPOPLPUSH BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL DELEX DIGEST DUMP EXISTS EXPIRE EXPIREAT EXPIRETIME GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS INCR INCRBY INCRBYFLOAT LCS LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MGET MOVE MSET MSETNX PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PFADD PFCOUNT PFMERGE PSETEX PTTL RENAME RENAMENX RESTORE RPOP RPOPLPUSH RPUSH RPUSHX SADD SCARD SDIFF SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTER SINTERSTORE SISMEMBER SMEMBERS SMISMEMBER SMOVE SORT SORT_RO SPOP SPUBLISH SRANDMEMBER SREM SSCAN SSUBSCRIBE STRLEN SUBSTR SUNION SUNIONSTORE SUNSUBSCRIBE TOUCH TTL TYPE UNLINK WATCH XACK XACKDEL XADD XAUTOCLAIM XCLAIM XDEL XDELEX XLEN XPENDING XRANGE XREVRANGE XSETID XTRIM ZADD ZCARD ZCOUNT ZDIFFSTORE ZINCRBY ZINTERSTORE ZLEXCOUNT ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNIONSTORE"
	keyAt2   = "BITOP MEMORY OBJECT XGROUP XINFO"
	keyAt3   = "MIGRATE"
	countAt1 = "LMPOP MSETEX SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION"
	countAt2 = "BLMPOP BZMPOP EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO"
	streams  = "XREAD XREADGROUP"
)

// containers have commands within them, which answer to CLIENT|KILL and the like.
const containers = "ACL CLIENT CLUSTER COMMAND CONFIG DEBUG FUNCTION LATENCY MEMORY MODULE OBJECT PUBSUB SCRIPT SLOWLOG XGROUP XINFO"

// known is what is known of a command.
type known struct {
	names     []string // its own first
	key       int      // the place of its first key; 0: none
	counted   bool     // the number of keys stands in front of it
	streams   bool     // it stands behind the word STREAMS
	container bool
}

// commands are the known ones, in capitals and in small letters, which is how
// drivers spell them.
var commands = func() map[string]*known {
	all := map[string]*known{}
	add := func(list string, k known) {
		for name := range strings.FieldsSeq(list) {
			k.names = append([]string{name}, alsoAnswersTo[name]...)
			c := k
			all[name], all[strings.ToLower(name)] = &c, &c
		}
	}
	add(noKeys, known{})
	add(keyAt1, known{key: 1})
	add(keyAt2, known{key: 2})
	add(keyAt3, known{key: 3})
	add(countAt1, known{key: 2, counted: true})
	add(countAt2, known{key: 3, counted: true})
	add(streams, known{streams: true})
	for name := range strings.FieldsSeq(containers) {
		all[name].container = true
	}
	return all
}()

// lookUp finds a command in any spelling; nil if it is not known.
func lookUp(name string) *known {
	if k := commands[name]; k != nil {
		return k
	}
	return commands[strings.ToUpper(name)]
}

// namesOf are the names that a client's command answers to.
func namesOf(args []any) []string {
	if len(args) == 0 {
		return nil
	}
	return names(text(args[0]), args, func(arg any, word string) bool {
		s, ok := arg.(string)
		return ok && strings.EqualFold(s, word)
	}, text)
}

// namesOnWire are the names that a command answers to which a proxy has seen.
func namesOnWire(c wire.Command) []string {
	return names(c.Name, c.Args, func(arg []byte, word string) bool {
		return strings.EqualFold(string(arg), word)
	}, func(arg []byte) string { return string(arg) })
}

// names allocates nothing for the commands that locks and sales are made of.
func names[T any](name string, args []T, is func(T, string) bool, text func(T) string) []string {
	k := lookUp(name)
	switch {
	case k == nil:
		return []string{strings.ToUpper(name)}
	case k.container && len(args) > 1:
		return []string{k.names[0], k.names[0] + "|" + strings.ToUpper(text(args[1]))}
	case k.names[0] == "SET":
		return setAnswersTo[setOptions(args, is)]
	}
	return k.names
}

func setOptions[T any](args []T, is func(T, string) bool) (options int) {
	for _, arg := range args[min(3, len(args)):] { // behind the key and the value
		switch {
		case is(arg, "NX"):
			options |= withNX
		case is(arg, "EX"), is(arg, "EXAT"):
			options |= withEX
		case is(arg, "PX"), is(arg, "PXAT"):
			options |= withPX
		}
	}
	return options
}

// keyOf is the first key of a client's command; empty if it has none. Of a command
// that is not known it is the first argument.
func keyOf(args []any) string {
	if len(args) < 2 {
		return ""
	}
	k := lookUp(text(args[0]))
	at := 1
	switch {
	case k == nil:
	case k.streams:
		at = behindStreams(args)
	case k.counted && len(args) > k.key && text(args[k.key-1]) == "0":
		return ""
	default:
		at = k.key
	}
	if at == 0 || at >= len(args) {
		return ""
	}
	return text(args[at])
}

func behindStreams(args []any) int {
	for i, arg := range args {
		if s, ok := arg.(string); ok && strings.EqualFold(s, "STREAMS") {
			return i + 1
		}
	}
	return 0
}

// text is an argument as it goes over the wire, as far as names and keys need it.
func text(arg any) string {
	switch a := arg.(type) {
	case string:
		return a
	case []byte:
		return string(a)
	}
	return fmt.Sprint(arg)
}
