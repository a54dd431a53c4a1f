package redismodel

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// agree executes a script on the model and on a real server, and reports whether the model knows it.
func agree(t *testing.T, c *conn, script string, argv ...string) (known bool) {
	t.Helper()
	s := step{cmds: [][]string{append([]string{"EVAL", script, "0"}, argv...)}}
	_, reply, info := s.do(Empty(), start)
	if info.Unknown != "" {
		return false
	}
	if real := c.ask(s.cmds[0]...); string(real) != string(reply) && !sameReply(s, reply, real) {
		t.Errorf("%q:\nthe model replies %q\nRedis replies     %q", script, reply, real)
	}
	return true
}

// loops are expressions of generic for loops. The functions f and g count to three.
var loops = []string{
	"f", "g", "f()", "h()", "next", "{7, 8}", "nil", "0", "...", "unpack({next, {7, 8}})", "pairs({7, 8})", "ipairs({7, 8})", "(f())", "(...)", "(h())", "s:gmatch('.')",
}

// TestGenericFor compares loops with one to four names and one to four expressions with a real server.
func TestGenericFor(t *testing.T) {
	c := startServer(t).conns[0]
	rnd, known := rand.New(rand.NewPCG(3, 3)), 0
	for range 3000 {
		names := []string{"a", "a, b", "a, b, c", "a, b, c, d"}[rnd.IntN(4)]
		var exprs []string
		for range 1 + rnd.IntN(4) {
			exprs = append(exprs, loops[rnd.IntN(len(loops))])
		}
		if rnd.IntN(2) == 0 {
			exprs[0] = []string{"next", "g", "f"}[rnd.IntN(3)]
		}
		body := []string{"", "if n > 5 then break end", "a = nil"}[rnd.IntN(3)]
		script := `local s, n, out = 'xy', 0, {}
local function g(t, i) i = (tonumber(i) or 0) + 1 if i < 4 then return i, t, n end end
local function f(t, i) return g(i, i) end
local function h() return g, 'state', 1, 9 end
local function run(...)
  for ` + names + ` in ` + strings.Join(exprs, ", ") + ` do
    n = n + 1
    if n > 9 then break end
    for _, x in ipairs({` + strings.ReplaceAll(names, "a,", "a or '-',") + `}) do out[#out + 1] = type(x) == 'number' and x or type(x) end
    ` + body + `
  end
end
run(next, {5, 6})
out[#out + 1] = n
return out`
		if agree(t, c, script) {
			known++
		}
	}
	if known < 1000 {
		t.Errorf("only %d loops were known", known)
	}
	for script, want := range map[string]string{
		"local n=0 for k,v in next,{7,8} do n=n+1 end return n": ":2\r\n",
		"for k in next,{7} do return k end":                     ":1\r\n",
	} {
		if _, reply, info := Empty().Do(start, 0, []string{"EVAL", script, "0"}); string(reply) != want {
			t.Errorf("%q: %q, %q", script, reply, info.Unknown)
		}
		agree(t, c, script)
	}
}

// oddScripts are scripts that one of the interpreters refuses, or that they may read differently.
var oddScripts = []string{
	"if redis.call('get', 'x') then local x end local y return type(y)", "if redis.call('set', 'x', 1).err then local x end local y return type(y)", "local a, b = nil return {type(a), type(b)}",
	"local a, b, c = 1 return {type(a), type(b), type(c)}", "local a, b = (tostring(1)) return type(b)", "return {nil and 1 or 2, (nil), not nil}", "return (nil)()", "return (nil).x", "return true and unpack({1, 2})", "return {true and unpack({1, 2})}", "return {not nil and unpack({1, 2})}",
	";", ";;return 1", "return 1;;", "local a = 1;; return a", "if true then ; end return 1", "do ; end", "repeat ; until true", "while false do ; end",
	"local function f() ; end", "local f = function(a) ; end", "return 1 ;", "do break end", "while true do break ; end return 1", "while true do break; ; end",
	"for i=1,2 do ; end", "if true then else ; end", "return {1;2}", "return {1;;2}", "return {;}", "return {1;2;}",
	"local f = tostring\n(f)(1) return 1", "local f = tostring local x = f\n(1) return x", "local f = tostring local x = f --\n(1) return x", "return ('x')\n:rep(2)",
	"local t = {tostring} return t[1]\n(1)", "local f = function(...) return ... end return f(f)\n(1)", "return tostring 'x'\n(1)", "local s = 'x'\n(tostring)(1) return s",
	"return tostring(\n1)", "local function f\n(a) return a end return f(1)", "local f = function\n(a) return a end return f(1)", "local t = {}\n(tostring)(1) return #t",
	`return '\300'`, `return '\999'`, `return '\256'`, `return '\255'`, `return '\0'`, `return '\x41'`, `return '\z  a'`, `return '\u{41}'`, `return '\q'`, `return '\65\66'`, `return '\0650'`, "return 'a\\\nb'", "return 'a\nb'", "return 'a\\\r\nb'",
	"return 3e", "return 3e+", "return 0x", "return 08", "return 010", "return 0010", "return 0x10", "return 0xag", "return 0x1p4", "return 0xA.8", "return 0x.8", "return 1..2", "return 1 ..2", "return 1. ..2", "return 1.5.2", "return 5..'x'",
	"return 3x", "local a = 3b = 4", "local a = 3 local b = 4return a", "return 1_000", "return 0b1", "return 0o7", "return 1e400", "return 0xffffffffffffffffff", "return 0x1fffffffffffff", "return .5", "return 5.", "return .5e1 * 2", "return 1e2", "return 1E+2", "return ..5", "return 9007199254740993",
	"return 5 // 2", "return 5 & 3", "return ~5", "return 1 << 2", "return 1 != 2", "return 1 ~= 2", "local x <const> = 1 return x", "local x <close> = nil",
	"goto a ::a:: return 1", "::a:: return 1", "local goto = 1 return goto", "goto = 1", "local t = {} t.goto = 1 return 1", "continue",
	"while true do break local x = 1 end", "while true do if true then break end end return 1", "break", "return 1 return 2", "return return", "do return 1 end return 2", "return (1)", "return 1, 2",
	"local a = {b={c=function(self, s) return s end}} return a.b:c\"x\"", "local a = {c=function(self, s) return #s end} return a:c{1, 2}", "return ('x'):rep(3)", "return 'x':rep(3)", "return #'abc'", "return {}.x", "return ({5})[1]",
	"--[==[ a ]] b ]==] return 1", "--[[ a [[ b ]] return 1", "--[ a\nreturn 1", "--[= a\nreturn 1", "--[=[ a\n]=] return 1", "--", "return 1 --", "return [[a]]", "return [[\na]]", "return [==[a]]b]==]", "return [[a [[ b]]", "return [=[a [[ b]=]", "return [[a]]]", "return [=[a]==]b]=]", "return [[a\r\nb]]", "return [=a",
	"local t = {}\r\nreturn 1\r\n", "return 1\v", "\xff = 1", "local é = 1 return é", "return 'é'", "#!lua\nreturn 1", "# comment\nreturn 1", "return 1 $", "return @", "return `a`", "return a!b", "return \\",
	"(tostring)(1) return 2", "(tostring(1)) return 2", "tostring(1) return 2", "tostring return 2", "(tostring) = 1", "(tostring).x = 1", "1 = 2", "'x' = 2", "'x'()", "local t = {} t.x, t.y = 1, 2 return t.y", "local a, b, c = (function() return 1, 2, 3 end)() return {a, b, c}",
	"return ...", "local function f() return ... end return f()", "local function f(...) return select('#', ...) end return f(1, nil, nil)", "local function f(...) return arg.n end return f(1, 2)", "local function f(..., a) end", "local function f(a, ...) return ... end return f(1, 2)", "local function f(...) local a, b = ... return {a, b} end return f(1, 2)",
	"local f = 1 local f = function() return f end return f()", "local f = function() return f end return f()", "local function f(n) if n == 0 then return 'x' end return f(n - 1) end return f(3)", "local f, g = function() return 1 end, 2 return f() + g", "local x = 1 local x = x + 1 return x",
	"local t = {} for i = 1, 3 do t[i] = function() return i end end return {t[1](), t[2](), t[3]()}", "local t = {} local i = 1 while i < 4 do local j = i t[i] = function() j = j + 1 return j end i = i + 1 end return {t[1](), t[1](), t[2]()}",
	"local t = {} local i = 0 repeat local j = i t[#t + 1] = function() return j end i = i + 1 until j == 2 return {#t, t[1](), t[3]()}", "local t = {} for _, v in ipairs({4, 5}) do t[#t + 1] = function() return v end end return {t[1](), t[2]()}",
	"local n = 0 for i = 3, 1, -1 do n = n * 10 + i end return n", "local n = 0 for i = 1, 2, 0.5 do n = n + 1 i = 9 end return n", "for i = 1, 0 do return 1 end return 2", "for i = 1, 3, 0 do return i end return 'none'", "local n = 0 for i = 1, 3 do for j = 1, 3 do if j == 2 then break end n = n + 1 end end return n",
	"return 2^3^2", "return -2^2", "return 2^-1 * 2", "return not 1 == 2", "return 1 .. 2 == '12'", "return 1 < 2 == true", "return 'a' .. 'b' .. 'c' == 'abc' and 1 or 2", "return (nil and 1) == nil", "return false or nil", "return nil or false", "return 1 and nil or 3", "return #{1, 2, nil}", "return -'2' + 3", "return '0x10' + 0", "return 10 % 3 .. ''", "return -5 % 3", "return 5 % -3",
	"local a <const> = 1", "local a: number = 1", "return function() end", "return {[1]=1, 2}", "return {[1]='a', [2]='b', 'c'}", "local t = {f = function(self) return self.x end, x = 5} return t:f()", "function f() end return 1", "local t = {} function t.f() return 1 end return t.f()", "local t = {} function t:f() return self == t end return t:f()", "local t = {a={}} function t.a.f(x) return x end return t.a.f(3)",
	"local a, b = 1, 2 a, b = b, a return {a, b}", "local a = {} local i = 1 i, a[i] = i + 1, 20 return {i, a[1], a[2]}", "local function f() return 1, 2 end return {f(), f()}", "local function f() return 1, 2 end return {(f())}", "local function f() return 1, 2 end local t = {f(), 3} return t", "return select(2, 'a', 'b', 'c')", "return {unpack({1, 2}), unpack({3, 4})}",
	"if nil then elseif 1 then return 'b' else return 'c' end", "return type(nil), 1", "and", "local and = 1", "local function = 1", "return end", "x.y", "x:y", "x:y.z()", "local x.y = 1", "local a b", "a = ", "return 1 2", "for in x do end", "for a b in x do end", "for i = 1 do end", "for i = 1, 2, 3, 4 do end", "if x end", "{}", "return {1, , 2}", "return {, 1}", "return f(1, )", "return f(, 1)", "local function f(a, ) end", "return function", "return (", "return )", "return '", "return \"", "return [[", "--[[", "return ''''", "return 'a''b'",
	"return select('#', unpack({1, nil, 3, nil}))", "return select('#', unpack({1, nil, 3}))", "return select('#', unpack({nil, nil}))", "return select('#', unpack({1, 2, nil}))", "return unpack({1, nil, 3}, 1, 3)", "local t = {} t[2] = 'b' t[1] = 'a' return #t", "local t = {} t[1] = 1 t[3] = 3 return #t", "local t = {1, 2, 3} t[3] = nil return #t",
	"local t = {a=1,b=2,c=3,d=4,e=5} for k in next, t do t[k] = nil end for i = 1, 4 do t[i] = i end local o = {} for k in pairs(t) do o[#o + 1] = k end return o",
	"local t = {a=1,b=2,c=3,d=4,e=5} t.a = nil t.b = nil t.c = nil t.d = nil t.e = nil t[1] = 1 t[2] = 2 t[3] = 3 t[4] = 4 local o = {} for k in pairs(t) do o[#o + 1] = k end return o",
	"local t = {[1]=1,[2]=2,[3]=3,[4]=4,[5]=5} local o = {} for k in pairs(t) do o[#o + 1] = k end return o", "local t = {a=ARGV[1], b=ARGV[2], c=nil} t[1] = 1 t[2] = 2 t[3] = 3 local o = {} for k in pairs(t) do o[#o + 1] = k end return o",
	"local t = {[KEYS]=1, [ARGV]=2} return next(t) == nil", "local t = {x=1} t[1] = 1 local o = {} for k in pairs(t) do o[#o + 1] = k end return o", "local t = {[ARGV[1] or 'k']=1, 5} local o = {} for k in pairs(t) do o[#o + 1] = k end return o",
	"local n = 0 for k in pairs(math) do n = n + 1 end return n", "return cjson.encode(string)", "return type(next(redis))", "return #math", "local o = {} for k in pairs(redis.pcall('GET')) do o[#o + 1] = k end return o",
	"local k = 'a' local t = {[k] = (function() k = 'b' return 1 end)()} return next(t)", "local k = 'a' local function f() k = 'b' return 1 end return function() return k, {[k] = f()} end, next({[k] = f()})", "local function f(k) k = k .. 'x' return next({[k] = redis.call('GET', k), z = 1}) end return f('a')",
	"return #{" + strings.Repeat("1, ", 50) + "unpack({7, 8, 9})}", "local t = {" + strings.Repeat("1, ", 50) + "x = 5} return {t[1], t[50], #t}", "local t = {" + strings.Repeat("1, ", 50) + "x = 5} return {t[1], t[50]}", "local t = {" + strings.Repeat("1, ", 49) + "unpack({7, 8, 9})} return {t[49], t[50], t[51], t[52]}", "local t = {" + strings.Repeat("1, ", 120) + "[3] = 4, [121] = 5, 9} return {t[3], t[121], #t}",
	"local function f(...) local o = {} for k in pairs(arg) do o[#o + 1] = tostring(k) end return o end return f(1, 2)", "local function f(...) return #arg end return f(1, 2)",
	"local t = {}\n\nt[nil] = 1", "return {1,\n[nil] = 2,\n3}, pairs", "local t = {\n x = 1,\n [0/0] = 2,\n y = pairs\n}", "return next({1}, 2)", "return next({a = 1}, 'a')", "local t = {a = 1} t.a = nil return next(t, 'a')", "return next(ARGV)", "return cjson.encode({[1] = 1, [3] = 3})", "return cjson.encode({[12] = 1})", "return cjson.encode({[0] = 1})", "return cjson.encode({[true] = 1})", "return cjson.encode({[1.5] = 1, [-1] = 2})",
	"return tostring(cjson.decode('1e400'))", "return tostring(cjson.decode('[-1e400]')[1])", "return tostring(cjson.decode('1e-400'))", "return cjson.decode('x')",
}

// TestOddScripts checks that the model runs no script that Redis refuses to compile, and that both run all others with
// the same result. What the model does not know is not compared.
func TestOddScripts(t *testing.T) {
	c := startServer(t).conns[0]
	scripts := append([]string(nil), oddScripts...)
	repeated := func(format, begin, end string, n int) {
		scripts = append(scripts, strings.ReplaceAll(format, "@", strings.Repeat(begin, n)+"1"+strings.Repeat(end, n)))
	}
	for _, n := range []int{10, 60, 61, 100, 140, 160, 199, 210, 260} {
		repeated("return @", "(", ")", n)
		repeated("return @", "1 .. ", "", n)
		repeated("return @", "1 + ", "", n)
		repeated("return @", "- ", "", n)
		repeated("return #@", "{", "}", n)
		repeated("@", "do ", " end", n)
		scripts = append(scripts, strings.Repeat("do ", n)+strings.Repeat("end ", n)+"return 1",
			strings.Repeat("if true then ", n)+strings.Repeat("end ", n)+"return 1",
			strings.Repeat("local x = 1 ", n)+"return x", many("local %s = 1 local function f() return x0", " + %s", n)+" end return f()",
			many("local %s = 1 local function f() x0 = 2", " %s = 2", n)+" end return 1",
			"local function f("+many("a", ", %s", n)+") return a end return f(7)")
	}
	known := 0
	for _, script := range scripts {
		if agree(t, c, script) {
			known++
		}
	}
	if known < len(scripts)/3 {
		t.Errorf("only %d of %d scripts were known", known, len(scripts))
	}
}

// many returns a script with n variables: declared by the first format, and used by the second.
func many(first, each string, n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("x%d", i))
	}
	if strings.Contains(first, "%s") {
		declare, rest, _ := strings.Cut(first, " local function")
		var b strings.Builder
		for _, name := range names {
			fmt.Fprintf(&b, declare+" ", name)
		}
		first = b.String() + "local function" + rest
	}
	for _, name := range names {
		first += fmt.Sprintf(each, name)
	}
	return first
}

// TestOrderOfTables compares the order of the entries of random tables, and their lengths, with a real server.
func TestOrderOfTables(t *testing.T) {
	c := startServer(t).conns[0]
	rnd, known := rand.New(rand.NewPCG(4, 4)), 0
	for range 6000 {
		script := "local t = " + []string{"{}", "{}", "{1, 2, 3}", "{1, nil, 3}", "{a=1}", "{a=1, 2}", "{a=nil, b=nil}", "{[1]=1, [2]=2, [3]=3}", "{[ARGV[1]]=1}", "{1, 2, a=ARGV[9]}"}[rnd.IntN(10)]
		most, down := 1+rnd.IntN(9), rnd.IntN(2) == 0
		for range rnd.IntN(12) {
			switch rnd.IntN(8) {
			case 0:
				script += " t." + []string{"a", "b"}[rnd.IntN(2)] + " = " + []string{"1", "nil"}[rnd.IntN(2)]
			case 1:
				script += fmt.Sprintf(" for i = 1, %d do t[i] = i end", most)
			case 2:
				if down {
					script += fmt.Sprintf(" for i = %d, 1, -1 do t[i] = i end", most)
				} else {
					script += " table.remove(t)"
				}
			case 3:
				script += " table.insert(t, 4)"
			default:
				script += fmt.Sprintf(" t[%d] = %s", 1+rnd.IntN(most), []string{"1", "2", "nil"}[rnd.IntN(3)])
			}
		}
		script += " local o = {} " + []string{"for k in pairs(t) do o[#o + 1] = tostring(k) end return o", "return #t", "return select('#', unpack(t))", "return cjson.encode(t)", "local k = next(t) return {tostring(k), (next(t, k))}"}[rnd.IntN(5)]
		if agree(t, c, script, "key") {
			known++
		}
	}
	if known < 1000 {
		t.Errorf("only %d tables were known", known)
	}
	t.Logf("%d of 6000 tables were known", known)
}
