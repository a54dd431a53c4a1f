package redismodel

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// start is the time at which tests begin. It is not a whole millisecond.
const start = 1_700_000_000*time.Second + 123_456*time.Microsecond

// generator makes random commands. The method word says what the letters of a form stand for.
type generator struct {
	*rand.Rand
	// sent holds the SHA1s of the scripts that were sent.
	sent []string
	now  time.Duration
	// state is the state before the command, from which arguments that make sense are chosen.
	state *State
}

func pick[T any](g *generator, all ...T) T { return all[g.IntN(len(all))] }

var forms = strings.Split(strings.TrimSpace(`
GET K
SET K V
SET K V SO
SET K V SO SO
SET K V SO SO SO
SETNX K V
SETEX K N V
PSETEX K E V
GETSET K V
GETDEL K
GETEX K
GETEX K GO
GETEX K GO GO
APPEND K V
SETRANGE K I V
STRLEN K
SETBIT K BO I
SETBIT K BO 1
SETBIT K BO 0
GETBIT K BO
BITCOUNT K
BITCOUNT K I I
BITCOUNT K I I BU
BITPOS K BB
BITPOS K BB I
BITPOS K BB I I
BITPOS K BB I I BU
BITOP BN K K K
BITOP BN K K
BITOP and K K K K
GETRANGE K I I
SUBSTR K I I
MGET K K K
MSET K V K V
MSETNX K V K V
INCR K
DECR K
INCRBY K I
DECRBY K I
INCRBYFLOAT K D
INCRBYFLOAT K R
BITFIELD K FO
BITFIELD K FO FO FO
BITFIELD K OVERFLOW FAIL FO
BITFIELD_RO K FO
DEL K
DEL K K K
UNLINK K K
EXISTS K K K
TOUCH K K
TYPE K
EXPIRE K N
EXPIRE K N XO
EXPIRE K N XO XO
PEXPIRE K E
PEXPIRE K E XO
PEXPIRE K E XO XO
EXPIREAT K S
PEXPIREAT K A
PEXPIREAT K A XO
TTL K
PTTL K
EXPIRETIME K
PEXPIRETIME K
PERSIST K
RENAME K K
RENAMENX K K
COPY K K
COPY K K CO
TIME
PING
PING V
ECHO V
PUBLISH V V
HSET H F V
HSET H F V F V
HMSET H F V
HSETNX H F V
HGET H F
HMGET H F F
HGETALL H
HKEYS H
HVALS H
HDEL H F
HDEL H F F
HEXISTS H F
HLEN H
HSTRLEN H F
HINCRBY H F I
HINCRBYFLOAT H F R
ZADD Z D M
ZADD Z D M D M D M
ZADD Z ZO D M
ZADD Z ZO ZO D M
ZADD Z ZO ZO ZO D M
ZADD Z ZO D M D M
ZINCRBY Z D M
ZREM Z M
ZREM Z M M
ZSCORE Z M
ZMSCORE Z M M
ZCARD Z
ZCOUNT Z B B
ZRANK Z M
ZREVRANK Z M
ZRANGE Z I I
ZRANGE Z 0 -1 WITHSCORES
ZRANGE Z I I RO
ZRANGE Z B B BYSCORE RO
ZRANGE Z B B BYSCORE RO RO
ZRANGE Z B B REV BYSCORE LIMIT I I
ZREVRANGE Z I I
ZREVRANGE Z I I WITHSCORES
ZRANGEBYSCORE Z B B
ZRANGEBYSCORE Z B B WITHSCORES LIMIT I I
ZRANGEBYSCORE Z -inf B LIMIT 0 I
ZREVRANGEBYSCORE Z B B
ZREVRANGEBYSCORE Z B B LIMIT I I WITHSCORES
ZREMRANGEBYSCORE Z B B
ZREMRANGEBYRANK Z I I
ZADD N0 0 M 0 M 0 M
ZADD N0 0 M
ZREM N0 M
ZRANGE N0 NB NB BYLEX
ZRANGE N0 NB NB BYLEX RO
ZRANGE N0 NB NB BYLEX RO RO
ZRANGE N0 NB NB REV BYLEX LIMIT I I
ZRANGEBYLEX N0 NB NB
ZRANGEBYLEX N0 NB NB LIMIT I I
ZRANGEBYLEX N0 - + LIMIT 0 I
ZREVRANGEBYLEX N0 NB NB
ZREVRANGEBYLEX N0 + - LIMIT I I
ZREMRANGEBYLEX N0 NB NB
ZLEXCOUNT N0 NB NB
ZLEXCOUNT N0 - +
ZRANGESTORE Z Z I I
ZRANGESTORE Z Z I I RO
ZRANGESTORE Z Z B B BYSCORE RO
ZRANGESTORE N0 N0 NB NB BYLEX
ZRANGESTORE N0 N0 NB NB BYLEX RO
ZUNION 2 Z Z
ZUNION 2 Z Z UO
ZUNION 2 Z T UO UO
ZUNION 3 Z Z Z UO WITHSCORES
ZUNION I Z Z UO
ZINTER 2 Z Z WITHSCORES
ZINTER 2 Z Z UO
ZINTER 2 T Z UO UO
ZINTER 3 Z Z Z UO UO
ZDIFF 2 Z Z
ZDIFF 2 Z Z WITHSCORES
ZDIFF 3 Z Z T UO
ZDIFF I Z Z
ZUNIONSTORE Z 2 Z Z
ZUNIONSTORE Z 2 Z T UO
ZUNIONSTORE Z 3 Z Z Z UO UO
ZUNIONSTORE Z I Z Z UO
ZINTERSTORE Z 2 Z Z
ZINTERSTORE Z 2 Z T UO
ZINTERSTORE Z 2 Z Z UO UO
ZDIFFSTORE Z 2 Z Z
ZDIFFSTORE Z 2 Z T
ZDIFFSTORE Z I Z Z UO
ZINTERCARD 2 Z Z
ZINTERCARD 2 Z Z LIMIT I
ZINTERCARD I Z T LIMIT I
ZMPOP 1 Z MI
ZMPOP 2 Z Z MI COUNT I
ZMPOP I Z Z MI
ZMPOP 2 Z Z MI COUNT I MI
ZPOPMIN Z
ZPOPMIN Z I
ZPOPMAX Z
ZPOPMAX Z I
LPUSH L V
LPUSH L V V
RPUSH L V V
LPUSHX L V
RPUSHX L V
LPOP L
LPOP L I
RPOP L
RPOP L I
LLEN L
LRANGE L I I
LINDEX L I
LPOS L V
LPOS L V PO
LPOS L V PO PO
LPOS L V PO PO PO
LMPOP 1 L LR
LMPOP 2 L L LR COUNT I
LMPOP I L L LR
LMPOP 1 L LR COUNT I LR
LREM L I V
LTRIM L I I
LSET L I V
LINSERT L WH V V
LMOVE L L LR LR
RPOPLPUSH L L
SADD T M
SADD T M M
SREM T M
SREM T M M
SISMEMBER T M
SMISMEMBER T M M
SMOVE T T M
SMEMBERS T
SCARD T
SPOP T
SRANDMEMBER T
SINTER T T
SUNION T T
SDIFF T T T
SINTERSTORE T T T
SUNIONSTORE T T
SDIFFSTORE T T T
SINTERCARD I T T
SINTERCARD 2 T T LIMIT I
XADD X * F V
XADD X * F V F V
XADD X * F V
XADD X Y F V
XADD X NOMKSTREAM * F V
XADD X MAXLEN I * F V
XADD X MAXLEN = I NOMKSTREAM * F V
XADD X NOMKSTREAM MAXLEN 2 Y F V
XADD X MAXLEN ~ I * F V
XTRIM X MAXLEN I
XTRIM X MAXLEN ~ I
XTRIM X MAXLEN = I
XLEN X
XRANGE X P P
XRANGE X - +
XRANGE X P P COUNT I
XREVRANGE X P P
XDEL X Y
XGROUP CREATE X G P
XGROUP CREATE X G 0 MKSTREAM
XGROUP CREATE X G $ MKSTREAM
XREADGROUP GROUP G C STREAMS X >
XREADGROUP GROUP G C COUNT I STREAMS X >
XGROUP CREATE x1 g1 0 MKSTREAM
XADD x1 Y F V
XADD x1 Y F V
XREADGROUP GROUP g1 C STREAMS x1 >
XREADGROUP GROUP g1 C STREAMS x1 >
XREADGROUP GROUP G C COUNT I STREAMS X X > >
XREADGROUP GROUP G C NOACK STREAMS X >
XREADGROUP COUNT I GROUP G C STREAMS X >
XREADGROUP GROUP G C STREAMS X P
XREADGROUP GROUP G C STREAMS X 0
XREADGROUP GROUP G C COUNT I STREAMS X X > 0
XREADGROUP GROUP G C RX RX STREAMS X >
XREADGROUP RX GROUP G C RX STREAMS X P
XREADGROUP COUNT 1 NOACK STREAMS X > G
XREAD STREAMS X 0
XREAD STREAMS X Y
XREAD STREAMS X $
XREAD COUNT I STREAMS X X Y 0
XREAD RX STREAMS X Y
XREAD RX RX STREAMS X 0
XACK X G Y
XACK X G Y Y
XPENDING X G
XPENDING X G P P I
XPENDING X G P P I C
XPENDING X G - + 10
XPENDING X G IDLE E - + 10 C
XAUTOCLAIM X G C E P
XAUTOCLAIM X G C E - COUNT 2
XAUTOCLAIM X G C 0 P COUNT I
WATCH K
WATCH K K H
WATCH K X
UNWATCH
SCRIPT EXISTS W
SCRIPT LOAD Q
EVALSHA W 1 K V
EVALSHA V 1 K V
EVAL Q I K V
NS K V
NS K V K V
NS
`), "\n")

// command returns a random command.
func (g *generator) command() []string {
	words := strings.Fields(forms[g.IntN(len(forms))])
	cmd := []string{words[0]}
	if words[0] == "NS" { // commands that there are not
		cmd[0] = pick(g, "nosuch", "NOSUCH", "get ", "zadd2", "SCRIPT|LOAD", "xgroup|create", "", "é\r\n", "a\x00b", strings.Repeat("long", 40), "HELP")
	}
	for _, w := range words[1:] {
		cmd = append(cmd, g.word(w)...)
	}
	switch g.IntN(60) {
	case 0:
		cmd = cmd[:1+g.IntN(len(cmd))]
	case 1:
		cmd = append(cmd, pick(g, "a", "1", "limit", "withscores", "nx"))
	case 2:
		cmd[0] = strings.ToLower(cmd[0])
	}
	return cmd
}

// word returns what a word of a form stands for.
func (g *generator) word(w string) []string {
	one := func(s string) []string { return []string{s} }
	switch w {
	case "K":
		return one(g.key("s"))
	case "H", "Z", "L", "T", "X":
		return one(g.key(strings.ToLower(w)))
	case "V":
		return one(g.value())
	case "F", "M":
		return one(pick(g, "a", "b", "c", "1", "2", "10", "", "é\x00\r\n"))
	case "C", "G":
		return one(strings.ToLower(w) + pick(g, "1", "1", "2"))
	case "I":
		return one(pick(g, "0", "1", "1", "2", "2", "3", "-1", "-2", "-3", "5", "100", "01", "1.5", "x", "", "9223372036854775807", "-9223372036854775808"))
	case "N": // seconds
		return one(pick(g, "1", "2", "3", "10", "100", "0", "-1", "1.5", "x", "9223372036854775807", "9223372036854775"))
	case "E": // milliseconds
		return one(pick(g, "1", "50", "100", "1000", "1500", "3000", "2499", "10000", "0", "-5", "x", "", "9223372036854775807"))
	case "S": // seconds since 1970
		return one(strconv.FormatInt(int64(g.now/time.Second)+pick[int64](g, -3, -1, 1, 2, 5), 10))
	case "A": // milliseconds since 1970; never now, for the reason in tick
		return one(strconv.FormatInt(g.now.Milliseconds()+pick[int64](g, -1000, -1, 1, 50, 1000, 1700, 4000), 10))
	case "D":
		return one(g.score())
	case "B":
		return one(pick(g, "", "", "(", "(") + pick(g, g.score(), g.score(), "-inf", "+inf", "inf"))
	case "N0": // a sorted set whose scores are equal
		return one(g.key("n"))
	case "NB": // a bound of a range of names
		return one(pick(g, "-", "+", "-", "+", "[", "(", "[", "(", "", "x", "+x", "-\x00x", "(a", "[c", "[a", "(b") + pick(g, "", "", "a", "b", "c", "1", "10", "é"))
	case "UO": // an option of a union
		return g.option("withscores", "weights W1 W1", "WEIGHTS W1 W1 W1", "weights 2 3", "weights -1 0.5", "aggregate min", "AGGREGATE max", "aggregate sum", "aggregate x", "limit 1", "weights 1")
	case "W1":
		return one(pick(g, "0", "1", "2", "-1", "0.5", "10", g.score()))
	case "MI":
		return one(pick(g, "min", "MAX", "min", "max", "mid"))
	case "PO": // an option of LPOS
		return g.option("rank I", "count I", "MAXLEN I", "rank -1", "count 0", "rank 2", "x")
	case "RX": // an option of XREAD
		return g.option("count I", "COUNT 2", "noack", "group G C", "count", "x", "streams")
	case "BU":
		return one(pick(g, "bit", "BYTE", "bit", "byte", "word"))
	case "BB":
		return one(pick(g, "0", "1", "0", "1", "2", "x", "01"))
	case "BN":
		return one(pick(g, "and", "OR", "xor", "NOT", "not", "nor"))
	case "Y": // an id of a stream
		return one(g.id())
	case "P":
		return one(pick(g, "-", "+", "0", "(", "") + pick(g, "", g.id()))
	case "LR":
		return one(pick(g, "left", "RIGHT", "left", "right", "up"))
	case "WH":
		return one(pick(g, "before", "AFTER", "beside"))
	case "CO":
		return pick(g, one("REPLACE"), one("replace"), one("nx"), []string{"DB", "0"}, []string{"db", "0", "replace"}, one("DB"))
	case "SO":
		return g.option("nx", "XX", "get", "keepttl", "ex N", "px E", "exat S", "pxat A", "persist")
	case "GO":
		return g.option("persist", "ex N", "px E", "exat S", "PXAT A", "nx")
	case "XO":
		return one(pick(g, "nx", "XX", "gt", "lt", "zz"))
	case "ZO":
		return one(pick(g, "nx", "XX", "gt", "lt", "ch", "incr"))
	case "RO":
		return g.option("rev", "withscores", "limit I I", "byscore", "limit 0 I")
	case "W":
		if len(g.sent) == 0 {
			return one("abc")
		}
		return one(pick(g, g.sent...))
	case "BO": // the offset of a bit
		return one(pick(g, "0", "1", "7", "8", "9", "23", "100", "-1", "x", "4294967296"))
	case "FO": // a subcommand of BITFIELD
		return g.option("get FT FB", "set FT FB I", "set u8 0 I", "incrby FT FB I", "incrby FT FB I", "incrby u8 #0 FI", "incrby i5 #1 FI", "overflow sat", "overflow fail", "OVERFLOW wrap", "overflow x")
	case "FT":
		return one(pick(g, "u8", "u1", "u16", "u63", "i8", "i64", "i63", "i1", "u2", "i2", "u64", "i0", "i65", "x8", ""))
	case "FB":
		return one(pick(g, "0", "#0", "#1", "#2", "3", "7", "100", "-1", "#x", "4294967295"))
	case "FI":
		return one(pick(g, "1", "-1", "7", "-8", "100", "-128", "127", "128", "255", "256"))
	case "R":
		return one(pick(g, "0.1", "0.2", "-0.3", "1", "-1", "3.14159265358979323846", "100000000000000000.5", "0.00000000000000001", "-0", "5.", "+2", "1e3", "inf", "x"))
	case "Q":
		return one(g.lua())
	}
	return one(w)
}

func (g *generator) option(all ...string) []string {
	var words []string
	for _, w := range strings.Fields(pick(g, all...)) {
		words = append(words, g.word(w)...)
	}
	return words
}

// key returns a key, in most cases one of the given type.
func (g *generator) key(kind string) string {
	if g.IntN(25) == 0 {
		kind = pick(g, "s", "h", "z", "l", "t", "x")
	}
	return kind + pick(g, "1", "2", "3")
}

func (g *generator) value() string {
	return pick(g, "a", "b", "token", "1", "2", "3", "10", "-7", "100", "", "1.5", " 1", "01", "1e3", "0x10", "inf", "nan", "-0",
		"9223372036854775807", "-9223372036854775808", "9223372036854775808", "a:1", "sold:3", "line\r\nbreak", "\x00\xff", "é",
		`["a","1","2"]`, strconv.Itoa(g.IntN(1000)))
}

func (g *generator) score() string {
	return pick(g, "0", "1", "2", "3", "-1", "1.5", "0.1", "0.3", "1e3", "1e300", "1e-10", "1e17", "123456789.123456", "inf", "-inf", "-0",
		"0x10", "+5", " 5", "5 ", "", "x", "nan", "1e400", "1e-400", ".5", "5.", "1700000000.123456", "9007199254740993",
		"infinity", "1_0", "0x1p-2", "1e", "(1")
}

func (g *generator) id() string {
	ms := g.now.Milliseconds()
	return pick(g, strconv.FormatInt(ms, 10), strconv.FormatInt(ms, 10)+"-"+strconv.Itoa(g.IntN(4)), strconv.FormatInt(ms-1000, 10)+"-1",
		"5", "5-1", "5-*", "0-1", "0-0", "7-*", "0-*", "x", "1-2-3", strconv.FormatInt(ms, 10)+"-*", "18446744073709551615-18446744073709551615", "5-18446744073709551615")
}
