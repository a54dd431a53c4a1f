package redismodel

import (
	"fmt"
	"strings"
)

// lua returns a small random script that uses KEYS[1] and ARGV.
func (g *generator) lua() string {
	var b strings.Builder
	b.WriteString("local a, b = 12, 'x'\na, b = " + g.expr(2) + ", " + g.expr(2) + "\n")
	for range g.IntN(3) {
		b.WriteString(g.statement() + "\n")
	}
	switch g.IntN(5) {
	case 0:
		b.WriteString("return {" + g.expr(2) + ", " + g.expr(2) + ", {a, b}}")
	case 1:
		b.WriteString("return tostring(" + g.expr(2) + ")")
	default:
		b.WriteString("return " + g.expr(3))
	}
	return b.String()
}

func (g *generator) statement() string {
	switch g.IntN(10) {
	case 8:
		return g.genericFor()
	case 0:
		return "a = " + g.expr(3)
	case 1:
		return "b = " + g.expr(3)
	case 2:
		return "if " + g.expr(2) + " then a = " + g.expr(1) + " else b = " + g.expr(1) + " end"
	case 3:
		return "for i = 1, 3 do a = " + g.expr(1) + " b = i end"
	case 4:
		return "local t = {a, 2, 'x'} t[#t + 1] = " + g.expr(1) + " for i, v in ipairs(t) do b = v end"
	case 5:
		return "local function f(x) return x, " + g.expr(1) + " end a, b = f(" + g.expr(1) + ")"
	case 6:
		return "local ok, e = pcall(" + pick(g, "function() return "+g.expr(2)+" end", "error, "+g.expr(1), "assert, "+g.expr(1)+", 'no'") + ") if ok then a = e else b = " + pick(g, "type(e)", "e") + " end"
	case 7:
		return "while #tostring(a or '') < 3 do a = tostring(a or '') .. 'z' end"
	}
	return g.redisCall()
}

// genericFor returns a generic for loop. Mostly its first expressions are those of a loop.
func (g *generator) genericFor() string {
	names := []string{"i, v", "i", "i, v", "i, v, w", "i, v, w, x"}[g.IntN(5)]
	exprs := []string{"next", "{" + g.expr(1) + ", " + g.expr(1) + "}"}
	switch g.IntN(5) {
	case 0:
		exprs = []string{pick(g, "ipairs", "pairs") + "({" + g.expr(1) + ", 'y'})"}
	case 1:
		exprs = []string{"string.gmatch('k1v2', " + pick(g, "'%a'", "'(%a)(%d)'", "'()%d'") + ")"}
	case 2:
		exprs = []string{"unpack({next, {" + g.expr(1) + ", 'z'}})"}
	}
	for range g.IntN(3) {
		exprs = append(exprs, pick(g, "nil", "nil", g.expr(1)))
	}
	return "for " + names + " in " + strings.Join(exprs, ", ") + " do a = i b = " + pick(g, "a", "i", "type(b)", g.expr(1)) + pick(g, "", " break") + " end"
}

func (g *generator) redisCall() string {
	cmd := strings.Fields(forms[g.IntN(len(forms))])
	if g.IntN(2) == 0 { // the commands that scripts use most
		cmd = strings.Fields(pick(g, "GET K", "SET K V", "HGET H F", "HSET H F V", "INCR K", "ZADD Z D M", "ZSCORE Z M",
			"ZRANGE Z 0 -1 WITHSCORES", "PTTL K", "SET K V NX PX 1000", "TIME", "EXISTS K", "HINCRBY H F I", "LRANGE L 0 -1"))
	}
	args := []string{"'" + cmd[0] + "'"}
	for _, w := range cmd[1:] {
		args = append(args, g.word2(w)...)
	}
	return "redis." + pick(g, "call", "call", "pcall") + "(" + strings.Join(args, ", ") + ")"
}

// word2 returns a word of a form as Lua expressions.
func (g *generator) word2(w string) []string {
	switch {
	case w == "Q" || w == "W":
		return []string{"'x'"}
	case w == "K" && g.IntN(2) == 0:
		return []string{"KEYS[1]"}
	case (w == "V" || w == "D" || w == "I") && g.IntN(2) == 0:
		return []string{g.expr(1)}
	}
	var quoted []string
	for _, s := range g.word(w) {
		quoted = append(quoted, luaQuote(s))
	}
	return quoted
}

func luaQuote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, "\\%03d", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// expr returns a random Lua expression of at most this depth.
func (g *generator) expr(depth int) string {
	if depth == 0 || g.IntN(4) == 0 {
		return pick(g, "a", "b", "KEYS[1]", "ARGV[1]", "ARGV[2]", "#ARGV", "nil", "true", "false", "0", "1", "2", "3.7", "-1", "1e15", "1e14",
			"123456789012", "0.1", "1700000000123456", "'x'", "'10'", "'0x10'", "'1e2'", "' 7 '", "'abc:12'", "{}", "{1, 'b'}", "1/0", "'%d+'")
	}
	e := func() string { return g.expr(depth - 1) }
	switch g.IntN(27) {
	case 22:
		return "bit." + pick(g, "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "tohex") + "(" + e() + ", " + pick(g, "1", "3", "-4", "255", "33", e()) + ")"
	case 23:
		return "bit." + pick(g, "bnot", "bswap", "tobit", "tohex") + "(" + pick(g, e(), "4294967296.5", "-1", "3000000000", "2.5", "1e20") + ")"
	case 24:
		return "string.gsub(" + e() + ", " + pick(g, "'%d'", "'(.)(.)'", "''", "'()x'", "'%w+'") + ", " + pick(g, "{['1'] = 'one', x = "+e()+"}", "function(p, q) return "+pick(g, "q", "p", "nil", e())+" end", "string.upper", "tostring", e()) + pick(g, "", "", ", 1") + ")"
	case 25:
		return pick(g, "cjson.null", "cjson.encode({"+e()+", cjson.null})", "cjson.decode('[null,1]')[1]", "tostring(cjson.decode('null'))", "(cjson.decode('{\"a\":null}').a == cjson.null)", "type(cjson.null)",
			"redis.REDIS_VERSION", "redis.REDIS_VERSION_NUM", "_VERSION", "redis.setresp("+pick(g, "2", e())+")", "redis.set_repl("+pick(g, "redis.REPL_ALL", "redis.REPL_NONE", e())+")", "redis.log(redis.LOG_NOTICE, "+e()+")", "redis.log("+e()+", 'x')", "redis.replicate_commands()",
			"_G.tostring("+e()+")", "_G[("+e()+")]", "rawequal("+e()+", "+e()+")", "rawget({"+e()+", x = "+e()+"}, "+pick(g, "1", "'x'", e())+")", "rawset({}, "+e()+", "+e()+")[1]", "getmetatable("+e()+")")
	case 26:
		return pick(g, "setmetatable({}, {__index = "+pick(g, "{x = "+e()+"}", "function(t, k) return "+e()+" end", e())+"}).x",
			"setmetatable({}, {__call = function(t, p) return "+pick(g, "p", e())+" end})("+e()+")", "tostring(setmetatable({}, {__tostring = function() return "+e()+" end}))",
			"setmetatable({}, {__"+pick(g, "add", "concat", "unm")+" = function(p, q) return type(q) end}) "+pick(g, "+", "..")+" "+e(),
			"(select("+pick(g, "1", "2", "'#'")+", xpcall(function() return "+e()+" end, function(err) return "+pick(g, "type(err)", e())+" end)))", "getmetatable(setmetatable({}, {__metatable = "+e()+"}))")
	case 0, 1, 2:
		return "(" + e() + " " + pick(g, "+", "-", "*", "/", "%", "^") + " " + e() + ")"
	case 3, 4:
		return "(" + e() + " .. " + e() + ")"
	case 5:
		return "(" + e() + " " + pick(g, "==", "~=", "<", "<=", ">", ">=") + " " + e() + ")"
	case 6:
		return "(" + e() + " " + pick(g, "and", "or") + " " + e() + ")"
	case 7:
		return pick(g, "(not ", "(-", "(#") + e() + ")"
	case 8:
		return "tonumber(" + e() + pick(g, "", "", ", 16", ", 2", ", 36", ", "+e()) + ")"
	case 9:
		return "tostring(" + e() + ")"
	case 10:
		return "math." + pick(g, "floor", "ceil", "abs", "sqrt") + "(" + e() + ")"
	case 11:
		return "math." + pick(g, "max", "min", "fmod") + "(" + e() + ", " + e() + ")"
	case 12:
		return "string.format('" + pick(g, "%d", "%s", "%.0f", "%5.2f", "%g", "%x", "%05d", "%-4d|", "%-40s|", "%-10d|", "%-20.3s|", "%e", "%5s|", "%.2s", "%i%%", "%c", "%.14g", "%.17g", "%q") + "', " + e() + ")"
	case 13:
		return "string.sub(" + e() + ", " + pick(g, "1", "2", "-2", "0") + ", " + pick(g, "1", "-1", "3") + ")"
	case 14:
		return "string." + pick(g, "match", "find") + "(" + e() + ", " + pick(g, "'(%d+)'", "'^(%a+):(%d+)$'", "'x'", "'.'", "'^%s*(.-)%s*$'", "'[%w_]+'",
			"'()b'", "'%f[%d]%d'", "'[^:]*'", "'a-b'", "'(a?)(.)'", "'%b()'", "':'", "'(%d'", "'%'", "'[a'") + ")"
	case 15:
		return "string.gsub(" + e() + ", " + pick(g, "'%d'", "'x'", "''", "'(.)'", "'^a'") + ", " + pick(g, "'y'", "'<%1>'", "'%0%0'", "'%%'", "1") + ")"
	case 16:
		return pick(g, "string.len", "string.upper", "string.lower", "string.reverse", "string.byte", "type", "redis.sha1hex") + "(" + e() + ")"
	case 17:
		return "cjson.encode(" + e() + ")"
	case 18:
		return "cjson.decode(" + pick(g, "'[1,\"a\",true]'", "'{\"a\":1.5}'", "'12'", "'\"x\\\\u00e9\"'", "'[]'", "'[1,'", "cjson.encode("+e()+")") + ")"
	case 19:
		return "table.concat({" + e() + ", " + e() + "}, " + pick(g, "','", "1", "''") + ")"
	case 20:
		return pick(g, "select('#', "+e()+", 1)", "(select(2, 1, "+e()+"))", "(type("+e()+")).err", "unpack({"+e()+", 2})", "redis.status_reply("+e()+")", "redis.error_reply("+e()+")",
			"redis.call('TIME')[1]", "error("+e()+")", "assert("+e()+", 'no')", "nosuch", "next({})", "("+e()+"):rep(2)",
			"tonumber("+pick(g, "'ff'", "' 0xFF '", "'-1'", "'+7z'", "'0x'", "'1_0'", "'ffffffffffffffffffff'", "'-ffffffffffffffffffff'", "'- 1'", "''", "'1\0002'", "string.sub(redis.sha1hex('a'), 1, 13)")+", "+pick(g, "16", "16", "2", "8", "36", "10")+")")
	}
	return g.redisCall()
}
