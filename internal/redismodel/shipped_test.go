package redismodel

import (
	"os"
	"strconv"
	"testing"

	"oversell/internal/rediscmd"
)

// shipped is a script of a variant, with its keys and the kinds of its arguments.
type shipped struct {
	files []string
	keys  []string
	args  string // one letter for each argument: see arg
	// text is the whole script.
	text, sha string
}

// Several scripts use the same keys, so that they affect each other.
var (
	lockKeys    = []string{"s1", "s2"}
	fairKeys    = []string{"s1", "z1", "h1"}
	saleKeys    = []string{"s1", "h1", "s2"}
	reserveKeys = []string{"stock", "orders", "deadlines", "reserved", "sold"}
	zsetKeys    = []string{"z2", "h2"}
	claimKeys   = []string{"z2", "z3", "h3", "z1", "receipts", "h2"}
	streamKeys  = []string{"x1", "x2"}
)

var shippedScripts = []shipped{
	{files: []string{"lockimpl/release.lua"}, keys: lockKeys[:1], args: "t"},
	{files: []string{"lockimpl/extend.lua"}, keys: lockKeys[:1], args: "tm"},
	{files: []string{"lockimpl/fenced.lua"}, keys: lockKeys, args: "tm"},
	{files: []string{"lockimpl/setnx_expire_atomic.lua"}, keys: lockKeys[:1], args: "tm"},
	{files: []string{"lockimpl/php_lock_atomic_acquire.lua"}, keys: lockKeys[:1], args: "tm"},
	{files: []string{"lockimpl/php_lock_atomic_extend.lua"}, keys: lockKeys[:1], args: "tm"},
	{files: []string{"lockimpl/php_lock_atomic_release.lua"}, keys: lockKeys[:1], args: "t"},
	{files: []string{"lockimpl/incr_atomic_acquire.lua"}, keys: fairKeys[2:], args: "tm"},
	{files: []string{"lockimpl/incr_atomic_extend.lua"}, keys: fairKeys[2:], args: "tm"},
	{files: []string{"lockimpl/incr_atomic_release.lua"}, keys: fairKeys[2:], args: "t"},
	{files: []string{"lockimpl/fair_acquire.lua"}, keys: fairKeys, args: "tmp1"},
	{files: []string{"lockimpl/fair_leave.lua"}, keys: fairKeys, args: "t"},
	{files: []string{"stockimpl/fenced_read.lua"}, keys: saleKeys[:1], args: "n"},
	{files: []string{"stockimpl/fenced_read.lua"}, keys: []string{"s1", "s3"}, args: "n"},
	{files: []string{"stockimpl/fenced_write.lua"}, keys: []string{"s1", "s3"}, args: "nn"},
	{files: []string{"stockimpl/ticket_write.lua"}, keys: []string{"s1", "s3"}, args: "nn"},
	{files: []string{"stockimpl/lua_buy.lua"}, keys: saleKeys, args: "nn"},
	{files: []string{"stockimpl/lua_refund.lua"}, keys: saleKeys, args: "n"},
	{files: []string{"stockimpl/reserve_common.lua", "stockimpl/reserve_take.lua"}, keys: reserveKeys, args: "nnmn"},
	{files: []string{"stockimpl/reserve_common.lua", "stockimpl/reserve_confirm.lua"}, keys: reserveKeys, args: "n"},
	{files: []string{"stockimpl/reserve_common.lua", "stockimpl/reserve_refund.lua"}, keys: reserveKeys, args: "n"},
	{files: []string{"stockimpl/reserve_common.lua", "stockimpl/reserve_reconcile.lua"}, keys: reserveKeys, args: "n"},
	{files: []string{"queueimpl/common.lua", "queueimpl/zset_enqueue.lua"}, keys: zsetKeys[:1], args: "ubnn"},
	{files: []string{"queueimpl/zset_dequeue.lua"}, keys: zsetKeys[:1], args: "ns"},
	{files: []string{"queueimpl/common.lua", "queueimpl/zset_peek.lua"}, keys: zsetKeys[:1], args: "n"},
	{files: []string{"queueimpl/common.lua", "queueimpl/zset_pop.lua"}, keys: zsetKeys, args: "nr"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_enqueue.lua"}, keys: claimKeys, args: "ubnnn"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_dequeue.lua"}, keys: claimKeys, args: "ns"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_pop.lua"}, keys: claimKeys, args: "nu3nr"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_pop.lua"}, keys: claimKeys, args: "nu3nr"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_ack.lua"}, keys: claimKeys, args: "nR"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_extend.lua"}, keys: claimKeys, args: "nRu"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_extend.lua"}, keys: claimKeys, args: "nRu"},
	{files: []string{"queueimpl/common.lua", "queueimpl/reliable_common.lua", "queueimpl/reliable_reclaim.lua"}, keys: claimKeys, args: "n3"},
	{files: []string{"queueimpl/streams_ack.lua"}, keys: streamKeys[:1], args: "gicn"},
	{files: []string{"queueimpl/streams_bury.lua"}, keys: streamKeys, args: "gicnn"},
	{files: []string{"idimpl/script.lua"}, keys: []string{"s3", "h2"}, args: "r"},
}

// loadShipped reads the scripts.
func loadShipped(t testing.TB) []shipped {
	t.Helper()
	all := make([]shipped, len(shippedScripts))
	for i, s := range shippedScripts {
		for _, f := range s.files {
			text, err := os.ReadFile("../../" + f)
			if err != nil {
				t.Fatal(err)
			}
			s.text += string(text)
		}
		s.sha = rediscmd.SHA1(s.text)
		all[i] = s
	}
	return all
}

// shipped returns a random call of a shipped script, in most cases one that makes sense.
func (g *generator) shipped(all []shipped) []string {
	if g.IntN(80) == 0 {
		return []string{"SET", "stock", pick(g, "1", "5", "10")}
	}
	s := all[g.IntN(len(all))]
	cmd := []string{"EVAL", s.text, strconv.Itoa(len(s.keys))}
	for _, k := range s.keys {
		if g.IntN(40) == 0 {
			k = g.key("s")
		}
		cmd = append(cmd, k)
	}
	for _, letter := range s.args {
		arg := g.arg(letter)
		if g.IntN(40) == 0 {
			arg = pick(g, g.value(), g.score())
		}
		cmd = append(cmd, arg)
	}
	if g.IntN(3) > 0 {
		cmd[0], cmd[1] = "EVALSHA", s.sha
	}
	return cmd
}

func (g *generator) arg(letter rune) string {
	switch letter {
	case 't':
		return pick(g, "token", "tokem", "t3")
	case 'm':
		return pick(g, "1", "100", "1000", "5000")
	case 'p':
		return pick(g, "0", "500", "2000")
	case 'n':
		return pick(g, "1", "2", "3", "10")
	case 'R': // one of the latest receipts
		text, _, _ := g.state.Value("receipts")
		last, _ := strconv.Atoi(text)
		return strconv.Itoa(last - g.IntN(5))
	case 'u':
		return pick(g, "0", "500000", "1000000", "3000000")
	case 'b':
		return pick(g, "0", "1")
	case 's':
		return strconv.FormatFloat(float64(g.now.Microseconds())/1e6, 'g', -1, 64)
	case 'r':
		return pick(g, "", "r1", "r2", "r3")
	case '3':
		return pick(g, "0", "1", "3")
	case 'g':
		return "g1"
	case 'c':
		return pick(g, "c1", "c2")
	case 'i':
		return g.id()
	}
	return string(letter)
}
