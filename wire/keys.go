package wire

import (
	"bytes"
	"strconv"
	"strings"
)

// keyRule says where a command has its first key.
type keyRule uint8

const (
	noKey     keyRule = iota
	keyAt             // at a fixed place
	keyBehind         // a number of keys stands at that place, and the keys behind it
	keyStream         // behind the word STREAMS, which stands at that place or later
	keyMoved          // MIGRATE's: at its place, or, if that is empty, behind KEYS
)

// knownCommand is what the proxy knows about a command by its name.
type knownCommand struct {
	name  string // in capitals
	rule  keyRule
	place int // counted in arguments; 0 is the name
	// turn is what the command does to the connection beyond having one reply.
	turn turn
}

// knownCommands are the commands of Redis 8, Valkey and the common modules that
// have a key, and those that change what a connection is.
var knownCommands = buildCommands()

func buildCommands() map[string]*knownCommand {
	all := map[string]*knownCommand{}
	add := func(rule keyRule, place int, names string) {
		for name := range strings.FieldsSeq(names) {
			all[name] = &knownCommand{name: name, rule: rule, place: place}
		}
	}
	// Strings and keys in general.
	add(keyAt, 1, `APPEND BITCOUNT BITFIELD BITFIELD_RO BITPOS COPY DECR DECRBY DEL DELEX DELIFEQ DIGEST DUMP EXISTS EXPIRE
		EXPIREAT EXPIRETIME GET GETBIT GETDEL GETEX GETRANGE GETSET INCR INCRBY INCRBYFLOAT LCS MGET MOVE MSET MSETNX
		PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PSETEX PTTL RENAME RENAMENX RESTORE RESTORE-ASKING SET SETBIT SETEX SETNX
		SETRANGE SORT SORT_RO STRLEN SUBSTR TOUCH TTL TYPE UNLINK WATCH`)
	add(keyAt, 2, `BITOP PFDEBUG`)
	add(keyBehind, 1, `MSETEX`)
	add(keyMoved, 3, `MIGRATE`)
	// Hashes.
	add(keyAt, 1, `HDEL HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HINCRBY HINCRBYFLOAT HKEYS HLEN
		HMGET HMSET HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS`)
	// Lists.
	add(keyAt, 1, `BLMOVE BLPOP BRPOP BRPOPLPUSH LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM
		RPOP RPOPLPUSH RPUSH RPUSHX`)
	add(keyBehind, 1, `LMPOP`)
	add(keyBehind, 2, `BLMPOP`)
	// Sets, and what is counted with HyperLogLog.
	add(keyAt, 1, `SADD SCARD SDIFF SDIFFSTORE SINTER SINTERSTORE SISMEMBER SMEMBERS SMISMEMBER SMOVE SPOP SRANDMEMBER SREM
		SSCAN SUNION SUNIONSTORE PFADD PFCOUNT PFMERGE`)
	add(keyBehind, 1, `SINTERCARD`)
	// Sorted sets and places.
	add(keyAt, 1, `BZPOPMAX BZPOPMIN GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO
		GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE ZADD ZCARD ZCOUNT ZDIFFSTORE ZINCRBY ZINTERSTORE ZLEXCOUNT ZMSCORE ZPOPMAX
		ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK
		ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNIONSTORE`)
	add(keyBehind, 1, `ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION`)
	add(keyBehind, 2, `BZMPOP`)
	// Streams.
	add(keyAt, 1, `XACK XACKDEL XADD XAUTOCLAIM XCFGSET XCLAIM XDEL XDELEX XLEN XPENDING XRANGE XREVRANGE XSETID XTRIM`)
	add(keyAt, 2, `XGROUP XINFO`)
	add(keyStream, 1, `XREAD`)
	add(keyStream, 4, `XREADGROUP`)
	// Vector sets.
	add(keyAt, 1, `VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR VSIM`)
	// Scripts, introspection, and channels of shards, which are placed like keys.
	add(keyBehind, 2, `EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO`)
	add(keyAt, 2, `MEMORY OBJECT`)
	add(keyAt, 1, `SPUBLISH SSUBSCRIBE SUNSUBSCRIBE`)
	// Frequent ones without a key.
	add(noKey, 0, `ASKING AUTH CLUSTER COMMAND CONFIG DBSIZE ECHO INFO KEYS PING PUBLISH QUIT ROLE SCAN SELECT TIME UNWATCH WAIT`)
	for name, t := range turns {
		if all[name] == nil {
			add(noKey, 0, name)
		}
		all[name].turn = t
	}
	return all
}

// modules are the families of commands that have their key first.
var modules = []string{"JSON.", "BF.", "CF.", "CMS.", "TOPK.", "TDIGEST.", "TS."}

// keylessModules are the exceptions.
var keylessModules = []string{"TS.MGET", "TS.MRANGE", "TS.MREVRANGE", "TS.QUERYINDEX", "JSON.DEBUG"}

// know finds a command by its name as sent.
func know(name []byte) *knownCommand {
	var short [32]byte
	if len(name) > len(short) {
		return &knownCommand{name: strings.ToUpper(string(name))}
	}
	capitals := short[:0]
	for _, c := range name {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		capitals = append(capitals, c)
	}
	if k := knownCommands[string(capitals)]; k != nil {
		return k
	}
	return unknownCommand(string(capitals))
}

func unknownCommand(name string) *knownCommand {
	k := &knownCommand{name: name}
	for _, family := range modules {
		if strings.HasPrefix(name, family) {
			k.rule, k.place = keyAt, 1
		}
	}
	for _, exception := range keylessModules {
		if name == exception {
			k.rule = noKey
		}
	}
	return k
}

// key is the place of a command's first key among its arguments; 0 if it has
// none.
func (k *knownCommand) key(args [][]byte) int {
	place := 0
	switch k.rule {
	case keyAt:
		place = k.place
	case keyBehind:
		place = k.place + 1
		if place >= len(args) || !isPositive(args[k.place]) {
			return 0
		}
	case keyStream:
		place = behind(args, k.place, "STREAMS")
	case keyMoved:
		if place = k.place; place < len(args) && len(args[place]) == 0 {
			place = behind(args, k.place+1, "KEYS")
		}
	}
	if place >= len(args) {
		return 0
	}
	return place
}

// isPositive says that a command announces at least one key.
func isPositive(number []byte) bool {
	n, err := strconv.Atoi(string(number))
	return err == nil && n > 0
}

// behind is the place behind the first argument from a place on that is this
// word; 0 if there is none.
func behind(args [][]byte, from int, word string) int {
	for i := from; i < len(args); i++ {
		if isWord(args[i], word) {
			return i + 1
		}
	}
	return 0
}

// isWord compares an argument with a word in capitals.
func isWord(arg []byte, word string) bool {
	return len(arg) == len(word) && bytes.EqualFold(arg, []byte(word))
}
