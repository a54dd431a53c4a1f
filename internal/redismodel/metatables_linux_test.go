package redismodel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// metaScripts are scripts with metatables, fields without them, protected calls, bits, and null in JSON.
var metaScripts = []string{
	"local t = setmetatable({}, {__index = {x = 1}}) return {t.x, t.y == nil, rawget(t, 'x') == nil}",
	"local t = setmetatable({}, {__index = function(t, k) return k .. '!' end}) return {t.a, t[1], rawget(t, 'a') == nil}",
	"local C = {} C.__index = C function C.new(n) return setmetatable({n = n}, C) end function C:get() return self.n end local o = C.new(5) return {o:get(), getmetatable(o) == C}",
	"local A = {} A.__index = A function A.f() return 'A' end local B = setmetatable({}, A) B.__index = B local o = setmetatable({}, B) return {o.f(), o.g == nil}",
	"local mt = {} local t = setmetatable({}, mt) mt.__index = {late = 1} return t.late",
	"local log = {} local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v * 2) log[#log + 1] = k end}) t.a = 1 t.a = 5 t.b = 2 return {t.a, t.b, #log}",
	"local store = {} local t = setmetatable({}, {__newindex = store}) t.a = 1 return {t.a == nil, store.a}",
	"local t = setmetatable({}, {__call = function(self, a, b) return a + b, self end}) return {t(1, 2), (t(3, 4)), select('#', t(1, 2))}",
	"local t = setmetatable({}, {__tostring = function() return 'T' end}) return {tostring(t), tostring(t) .. 'x'}",
	"local t = setmetatable({}, {__tostring = function() return 5 end}) return tostring(t)",
	"local t = setmetatable({}, {__tostring = 'x'}) return tostring(t)", "local t = setmetatable({}, {__tostring = function() end}) return type(tostring(t))",
	"local mt = {__eq = function(a, b) return a.n == b.n end} local a, b = setmetatable({n = 1}, mt), setmetatable({n = 1}, mt) return {a == b and 1 or 0, a ~= b and 1 or 0, rawequal(a, b) and 1 or 0, a == {n = 1} and 1 or 0}",
	"local e = function() return true end local a, b = setmetatable({}, {__eq = e}), setmetatable({}, {__eq = e}) return a == b", "local a, b = setmetatable({}, {__eq = function() return true end}), setmetatable({}, {__eq = function() return true end}) return tostring(a == b)",
	"local mt = {__lt = function(a, b) return a.n < b.n end} local a, b = setmetatable({n = 1}, mt), setmetatable({n = 2}, mt) return {tostring(a < b), tostring(a > b), tostring(a <= b), tostring(a >= b)}",
	"local mt = {__le = function(a, b) return a.n <= b.n end} local a, b = setmetatable({n = 1}, mt), setmetatable({n = 2}, mt) return {tostring(a <= b), tostring(a >= b), pcall(function() return a < b end)}",
	"local a, b = setmetatable({}, {}), setmetatable({}, {}) return a < b", "return {} < {}", "return setmetatable({}, {__lt = function() return true end}) < {}", "return setmetatable({}, {__lt = function() return true end}) < 1",
	"local mt = {__concat = function(a, b) return type(a) .. '|' .. type(b) end} local t = setmetatable({}, mt) return {t .. 'x', 'x' .. t, 1 .. t, t .. t, 'a' .. 'b' .. t .. 'c' .. 'd', t .. {}}",
	"local mt = {} for _, e in ipairs({'add', 'sub', 'mul', 'div', 'mod', 'pow'}) do mt['__' .. e] = function(a, b) return e .. type(a) .. type(b) end end local t = setmetatable({}, mt) return {t + 1, 1 - t, t * '2', t / {}, 'x' % t, t ^ t, nil + t}",
	"local t = setmetatable({}, {__unm = function(a, b) return rawequal(a, b) and 'same' or 'other' end}) return -t", "return setmetatable({}, {__add = 5}) + 1", "return -setmetatable({}, {})", "return setmetatable({}, {}) .. 'x'",
	"return #setmetatable({1, 2}, {__len = function() return 9 end})", "local t = setmetatable({1, 2}, {__index = function() return 7 end}) local n = 0 for i, v in ipairs(t) do n = n + v end return {n, #t, unpack(t, 1, 3)}",
	"local t = setmetatable({a = 1}, {__index = {b = 2}}) local n = 0 for k in pairs(t) do n = n + 1 end return {n, cjson.encode(t)}", "return setmetatable({1, 2}, {__index = function(t, k) return k < 5 and k or nil end})",
	"return setmetatable({}, {__index = {ok = 'FINE'}})", "return setmetatable({}, {__index = function() return 'x' end})", "return getmetatable(setmetatable({}, {__metatable = 'no'}))", "return setmetatable(setmetatable({}, {__metatable = 'no'}), {})", "return setmetatable({}, {__metatable = false}) and 1",
	"return getmetatable(setmetatable({}, {__metatable = false}))", "return type(getmetatable({}))", "return type(getmetatable(1))", "return type(getmetatable(nil))", "return getmetatable()", "return setmetatable({})", "return setmetatable({}, 1)", "return setmetatable(1, {})", "return setmetatable({}, nil) and 1", "return setmetatable()",
	"local t = setmetatable({}, {__index = {x = 1}}) setmetatable(t, nil) return type(t.x)", "return setmetatable(string, {})", "return setmetatable(_G, {})", "return setmetatable(KEYS, {__index = function() return 'k' end})[1]", "return setmetatable(ARGV, {__index = {a = 5}}).a",
	"return {setmetatable({}, {__index = string}).rep('x', 3), setmetatable({}, {__index = string}).zzz == nil}", "return setmetatable({}, {__index = _G}).zzz", "return type(setmetatable({}, {__index = _G}).pairs)", "return setmetatable({}, {__index = 'text'}).upper('a')", "return setmetatable({}, {__index = 5}).x", "return setmetatable({}, {__index = true}).x",
	"local t = {} setmetatable(t, {__index = t}) return t.x", "local t = {} setmetatable(t, {__newindex = t}) t.x = 1", "local a = {} local b = setmetatable({}, {__index = a}) setmetatable(a, {__index = b}) return a.x",
	"setmetatable({}, {__newindex = 5}).x = 1", "setmetatable({}, {__newindex = 'x'}).x = 1", "setmetatable({}, {__newindex = string}).x = 1", "setmetatable({}, {__newindex = function() error('no') end}).x = 1", "setmetatable({}, {__newindex = function() end})[nil] = 1", "setmetatable({}, {})[nil] = 1", "setmetatable({}, {__index = function(t, k) return tostring(k) end})[0/0] = 1", "return setmetatable({}, {__index = function(t, k) return tostring(k) end})[nil]",
	"return setmetatable({}, {__index = setmetatable({}, {__call = function(f, t, k) return k end})}).x", "return setmetatable({}, {__call = setmetatable({}, {__call = function() return 1 end})})()", "return setmetatable({}, {})()", "local t = setmetatable({}, {__call = 1})\nreturn t()", "local t = {}\nt()", "local t = setmetatable({}, {__index = function(t, k)\nerror('deep ' .. k)\nend})\nlocal x = t.abc\nreturn x",
	"local t = setmetatable({}, {__call = function(_, s, i) i = (i or 0) + 1 if i < 4 then return i end end}) local n = 0 for i in t do n = n + i end return n", "local t = setmetatable({}, {__call = function(_, x) return x end}) return {pcall(t, 5)}", "local t = setmetatable({}, {__call = function(_, x) error(x) end}) return {pcall(t, {})}",
	"local t = setmetatable({x = 1}, {__index = function() return 9 end}) t.x = nil t.y = 1 local o = {} for k in pairs(t) do o[#o + 1] = k end return o", "local o = {} local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v) end}) for i = 1, 9 do t['k' .. i] = i end for k in pairs(t) do o[#o + 1] = k end return o",
	"local o = {} local t = setmetatable({}, {__newindex = function() end}) for i = 1, 5 do t['k' .. i] = i end for i = 1, 3 do rawset(t, 'x' .. i, i) end for k in pairs(t) do o[#o + 1] = k end return o", "local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v) end}) t[1] = 1 t[2] = 2 t[4] = 4 return #t",
	"return rawget({5}, 1)", "return type(rawget({}, nil))", "return rawget(1, 1)", "return rawget({})", "return rawset({}, 'a', 1).a", "rawset({}, nil, 1)", "rawset({}, 0/0, 1)", "rawset({}, 'a')", "rawset(string, 'a', 1)", "rawset(_G, 'a', 1)", "return type(rawget(_G, 'nosuch'))", "return type(rawget(_G, 'pairs'))", "return type(rawget(string, 'rep'))", "return type(rawget(string, 'nosuch'))", "return rawequal(1, 1)", "return rawequal(1)", "return tostring(rawequal({}, {}))", "return rawequal('a', 'a')",
	"table.insert(string, 1)", "table.insert(_G, 1)", "return type(redis[1])", "return _G.tostring(5)", "return _G == _G._G", "return _G.nosuch", "return _G[1]", "return _G[{}]", "_G.x = 1", "x = 1", "return _VERSION", "return os.time()", "return print", "return newproxy", "return getfenv", "return require", "return server", "return debug", "return dofile", "return io",
	"return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}", "return redis.setresp(2)", "return select('#', redis.setresp(2))", "return redis.setresp('2')", "return redis.setresp(2.5)", "return redis.setresp(4)", "return redis.setresp({})", "return redis.setresp()", "return redis.setresp(2, 3)", "return {pcall(redis.setresp, 1)}",
	"return {redis.REPL_ALL, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_NONE}", "return redis.set_repl(redis.REPL_ALL)", "return select('#', redis.set_repl(0))", "return redis.set_repl(4)", "return redis.set_repl(-1)", "return redis.set_repl('x')", "return redis.set_repl()", "return {redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING}", "return redis.log(redis.LOG_DEBUG, 'x')", "return redis.log(1)", "return redis.log('x', 'y')", "return redis.log(9, 'y')", "return select('#', redis.log(0, {}))", "return redis.log(0.5, 'x')", "return redis.replicate_commands()", "return redis.breakpoint()", "return type(redis.nosuch)", "return redis.nosuch()", "return type(cjson.nosuch)", "return type(math.nosuch)", "return type(bit.nosuch)", "return type(table.nosuch)",
	"return xpcall(error, function() return 1 end)", "return {xpcall(function() return 1, 2 end, error)}", "return {xpcall(function() error('x') end, function(e) return e .. '!' end)}", "return {xpcall(function() error({err = 'E x'}) end, function(e) return e.err end)}", "return {xpcall(function() error('x') end, 5)}", "return {xpcall(function() error('x') end, {})}", "return {xpcall(function() error('x') end, function() return 1, 2 end)}", "return {xpcall(function() error('x') end, function() end)}", "return {xpcall(function() redis.call('nosuch') end, function(e) return e.err end)}", "return {xpcall(function() redis.call('GET') end, function(e) return e.err end)}", "return xpcall(error)", "return xpcall()", "return {xpcall(tostring, function() return 'h' end)}", "return select('#', xpcall(function() return nil, nil end, error))", "return {xpcall(function() error() end, function(e) return type(e) end)}", "return {xpcall(function() error('x') end, setmetatable({}, {__call = function() return 1 end}))}",
	"return select('#', pcall(error, {}))", "return select('#', pcall(error, {err = 'x'}))", "return select('#', pcall(error, {err = 5}))", "return {pcall(error, {err = 5})}", "return select('#', pcall(error))", "local ok, e, third = pcall(error, {1}) return {type(e), type(third)}", "return {pcall(error, cjson.null)}", "error(cjson.null)", "error(setmetatable({}, {__tostring = function() return 'T' end}))",
	"return string.gsub('hello world', '%w+', function(w) return w:upper() end)", "return {string.gsub('hello world', '(%w)(%w)', function(a, b) return b .. a end)}", "return {string.gsub('abc', '%w', {a = 1, b = true, c = false})}", "return {string.gsub('abc', '%w', {a = 1, b = 'x'})}", "return {string.gsub('abc', '%w', function() end)}", "return {string.gsub('abc', '%w', function() return false end)}", "return {string.gsub('abc', '%w', function() return {} end)}", "return {string.gsub('abc', '()', function(p) return p end)}", "return {string.gsub('$name is $age', '%$(%w+)', {name = 'x', age = 5})}", "return {string.gsub('abc', 'b', setmetatable({}, {__index = function(t, k) return k:rep(3) end}))}", "return {string.gsub('abc', 'b')}", "return {string.gsub('abc', 'b', nil)}", "return {string.gsub('abc', 'b', true)}", "return {string.gsub('abc', '', function() return '-' end)}", "return {string.gsub('abc', '%w', function(c) return 1.5 end, 2)}", "return {string.gsub('abc', '%w', string.byte)}", "return {string.gsub('abc', '(', function() end)}", "return {string.gsub('abc', '%w', function(c) error('E' .. c) end)}", "return {('k1=v1,k2=v2'):gsub('(%w+)=(%w+)', '%2=%1')}", "local n = 0 string.gsub('abc', '.', function() n = n + 1 redis.call('SET', 'gsub', n) end) return redis.call('GET', 'gsub')", "return {string.gsub('abc', '%w', string)}",
	"return string.format('%q', 'a\"b\\\\c\\nd\\re\\0f')", "return string.format('%q', 5)", "return string.format('%q', {})", "return string.format('%q%s', 'x', 'y')", "return string.format('%10q', 'x')", "return string.format('%q')",
	"return {bit.band(5, 3), bit.bor(5, 3), bit.bxor(5, 3), bit.bnot(0), bit.lshift(1, 31), bit.rshift(-1, 28), bit.arshift(-16, 2), bit.rol(1, 33), bit.ror(1, 1), bit.bswap(1), bit.tobit(4294967295)}", "return {bit.tohex(255), bit.tohex(255, 4), bit.tohex(255, -4), bit.tohex(-1, 0), bit.tohex(1, 100), bit.tohex(1, -100)}", "return {bit.tobit(2^31), bit.tobit(2^32 + 5), bit.tobit(2.5), bit.tobit(3.5), bit.tobit(-2.5), bit.tobit(1e15), bit.tobit(2^52 + 1), bit.tobit(2^60), bit.tobit(1e300), bit.tobit(-1e300), bit.tobit(1/0)}", "return bit.band()", "return bit.band(1)", "return bit.band('7', 2)", "return bit.band('x', 2)", "return bit.band({}, 2)", "return bit.band(1, nil)", "return bit.lshift(1)", "return bit.tohex(1, nil)", "return bit.tohex()", "return bit.band(1, 3, 5, 7)", "return {bit.lshift(1, 32), bit.lshift(1, -1), bit.rshift(1, 0.6)}", "return bit.bnot('0x10')",
	"return type(cjson.null)", "return tostring(cjson.null)", "return cjson.null == cjson.null", "return tostring(cjson.null == nil)", "return cjson.null and 1 or 2", "return cjson.null", "return {1, cjson.null, 2}", "return cjson.encode(cjson.null)", "return cjson.encode({cjson.null, {a = cjson.null}})", "return cjson.encode({[cjson.null] = 1})", "return tostring(cjson.decode('null'))", "return tostring(cjson.decode('[null]')[1])", "return tostring(cjson.decode('{\"a\":null}').a == cjson.null)", "local t = {} t[cjson.null] = 1 t.a = 2 t.b = 3 local o = {} for k in pairs(t) do o[#o + 1] = tostring(k) end return o", "return cjson.null .. 'x'", "return cjson.null + 1", "return cjson.null < cjson.null", "return cjson.null.x", "return cjson.null()", "return #cjson.null", "return redis.call('SET', 'k', cjson.null)", "return tonumber(cjson.null)", "return cjson.encode(cjson.decode('{\"a\":null,\"b\":[null,1]}'))", "return cjson.encode(tostring)", "return #cjson.decode('[null,null]')", "cjson.null.x = 1", "return rawequal(cjson.null, cjson.decode('null'))", "return getmetatable(cjson.null) == nil",
	"local k = 'a' local mt = {__index = function() k = 'b' return 1 end} local t = setmetatable({}, mt) return cjson.encode({[k] = t.x})", "local k = 'a' return next({[k] = string.gsub('x', 'x', function() k = 'b' end)})",
	"return math.ceil('-nan')", "return type(tonumber('-nan'))", "return type(tonumber('+NaN'))", "return tonumber('nan') == tonumber('nan')", "return bit.tobit('-nan')",
	"return {redis.pcall('nosuch')}", "return redis.call('nosuch', 'a')", "return redis.pcall('NOSUCH.x').err == nil", "return {pcall(redis.call, 'nosuch')}",
}

// TestMetatables compares scripts that use metatables and what goes with them with a real server.
func TestMetatables(t *testing.T) {
	c := startServer(t).conns[0]
	for _, script := range metaScripts {
		if !agree(t, c, script, "arg") {
			_, _, info := Empty().Do(start, 0, []string{"EVAL", script, "0"})
			t.Logf("unknown: %s: %s", script, info.Unknown)
		}
	}
}

// metaWriter writes random Lua programs whose tables have metatables.
type metaWriter struct {
	*rand.Rand
	out   strings.Builder
	depth int
}

func (w *metaWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

// object returns an expression that is mostly a table with a metatable.
func (w *metaWriter) object() string {
	if w.depth < 3 && w.IntN(10) == 0 {
		return "C.new(" + w.value() + ")"
	}
	return w.pick("a", "a", "b", "c", "d", "plain", "setmetatable({}, m)", "setmetatable({x = 2, 7}, m2)", "setmetatable(d, m)", "a.next")
}

func (w *metaWriter) key() string {
	return w.pick("x", "y", "z", "n", "next", "get", "__index", "name")
}

// value returns an expression of any type.
func (w *metaWriter) value() string {
	if w.depth++; w.depth > 3 {
		w.depth--
		return w.pick("1", "2.5", "2", "'x'", "'10'", "nil", "true", "false", "cjson.null", w.object())
	}
	defer func() { w.depth-- }()
	o, v := w.object(), "1"
	if w.IntN(2) == 0 {
		v = w.value()
	}
	other := func() string {
		if w.IntN(2) == 0 {
			return w.object()
		}
		return w.value()
	}
	switch w.IntN(18) {
	case 0, 1, 2:
		return "(" + o + " or b)." + w.key()
	case 3:
		return "(" + o + " or b)[" + v + "]"
	case 4:
		return "(" + w.pick(o, v) + " " + w.pick("+", "-", "*", "/", "%", "^", "..", "..") + " " + other() + ")"
	case 5:
		return "(" + w.pick("a", "b", o, v) + " " + w.pick("==", "~=", "<", "<=", ">", ">=") + " " + w.pick("a", "b", "c", other()) + ")"
	case 6:
		return w.pick("a", "b", "c", o) + "(" + v + ", " + w.value() + ")"
	case 7:
		return w.pick("c", "C", "c", o) + ":get(" + v + ")"
	case 8:
		return "tostring(" + w.pick(o, v) + ")"
	case 9:
		return "rawget(" + o + ", " + w.pick("'"+w.key()+"'", v) + ")"
	case 10:
		return "rawequal(" + o + ", " + w.object() + ")"
	case 11:
		return "(-" + w.pick("a", "b", "c", o) + ")"
	case 12:
		return "#" + o
	case 13:
		return "getmetatable(" + o + ")" + w.pick("", " == m", "."+w.key())
	case 14:
		return "(select(2, " + w.pick("pcall", "xpcall") + "(function() return " + v + " end, function(e) return type(e) end)))"
	case 15:
		return "string.gsub('x=1,y', '(%w)" + w.pick("", "=(%w)", "()") + "', " + w.pick(o, "function(p, q) return "+v+" end", v) + ")"
	case 16:
		return "type(" + v + ")"
	}
	return w.pick("1", "0", "'x'", "'y'", "nil", "cjson.null", "{}", v)
}

// handler returns what a metatable has for an event.
func (w *metaWriter) handler() string {
	if w.IntN(4) == 0 {
		return w.pick("c", "plain", "C", "nil", "string", "m", "rawget", "rawset", "rawequal", "tostring", "type", "error", w.value())
	}
	return "function(p, q, r) say('h' .. tag(p) .. tag(q)) return " + w.pick("q", "r", "1", "nil", "true", "false", "'t'", "p", w.value()) + " end"
}

func (w *metaWriter) event() string {
	return "__" + w.pick("index", "index", "newindex", "newindex", "call", "tostring", "eq", "lt", "le", "concat", "len", "add", "sub", "mul", "div", "mod", "pow", "unm", "metatable")
}

func (w *metaWriter) stmt() {
	put := func(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }
	o := w.object()
	switch w.IntN(12) {
	case 0, 1:
		put("%s.%s = %s", w.pick("a", "b", "c", "d", "plain"), w.key(), w.value())
	case 2:
		put("rawset(%s, %s, %s)", o, w.pick("'"+w.key()+"'", "1", w.value()), w.value())
	case 3:
		put("%s.%s = %s", w.pick("m", "m", "m2", "C"), w.event(), w.handler())
	case 4:
		put("setmetatable(%s, %s)", o, w.pick("m", "m2", "C", "nil", "plain", "{"+w.event()+" = "+w.handler()+"}"))
	case 5:
		put("%s = %s", w.pick("a", "b", "c", "d"), w.pick("setmetatable({x = 1}, m)", "setmetatable({}, C)", "{}", "setmetatable({next = "+o+"}, m2)"))
	case 6:
		put("for k, v in pairs(%s) do say(tag(k) .. tag(v)) end", w.pick("a", "b", "c", "d", "plain"))
	case 7:
		put("for i = 1, %d do %s['k' .. i] = %s end", w.IntN(6), w.pick("a", "b", "d"), w.pick("i", "nil", "'v'"))
	case 8:
		put("%s[%s] = %s", w.pick("a", "b", "c", "d"), w.value(), w.value())
	default:
		put("say(tag(%s))", w.value())
	}
}

const metaHead = `local out, left = {}, 100
local function say(x) left = left - 1 if left > 0 then out[#out + 1] = x end end
local function tag(x) return type(x) == 'number' and 'n' .. x or type(x) == 'string' and 's' .. x or type(x) == 'boolean' and (x and 'true' or 'false') or type(x) end
local C = {name = 'C'} C.__index = C
function C.new(n) return setmetatable({n = n}, C) end
function C:get(x) return x or self.n end
local plain = {x = 'p'}
local m, m2 = {}, {__index = C}
local a, b, c, d = {x = 1}, {}, {z = 3}, {}
setmetatable(a, m) setmetatable(b, m) setmetatable(c, m2)
for _, event in ipairs({'add', 'sub', 'mul', 'div', 'mod', 'pow', 'unm', 'concat', 'call', 'tostring', 'lt', 'le'}) do
  m['__' .. event] = function(p, q) say(event) return (event == 'lt' or event == 'le') and p.x == 1 or event end
  m2['__' .. event] = m['__' .. event]
end
`

// TestRandomMetatables checks that random Lua programs with metatables return the same from the model as from Redis.
func TestRandomMetatables(t *testing.T) {
	server := startServer(t).conns[0]
	programs, known, errors := 3000, 0, 0
	if os.Getenv("OVERSELL_LONG") != "" {
		programs = 100_000
	}
	unknown, state := map[string]int{}, Empty()
	var cmds [][]string // that the server has not been sent yet
	var replies [][]byte
	compare := func() {
		for i, real := range server.askAll(cmds) {
			if s := (step{cmds: cmds[i : i+1]}); string(real) != string(replies[i]) && !sameReply(s, replies[i], real) {
				t.Fatalf("%s:\nthe model replies %q\nRedis replies     %q", cmds[i][1], replies[i], real)
			}
		}
		cmds, replies = nil, nil
	}
	for seed := range programs {
		w := &metaWriter{Rand: rand.New(rand.NewPCG(13, uint64(seed)))}
		w.out.WriteString(metaHead)
		for range 1 + w.IntN(3) {
			fmt.Fprintf(&w.out, "%s.%s = %s\n", w.pick("m", "m", "m2"), w.event(), w.handler())
		}
		for range 1 + w.IntN(8) {
			w.stmt()
		}
		w.out.WriteString("for _, t in ipairs({a, b, c, d}) do for k, v in next, t do say(tag(k) .. tag(v)) end end\nreturn out")
		cmd := []string{"EVAL", w.out.String(), "0"}
		_, reply, info := state.Do(start, 0, cmd)
		if info.Unknown != "" {
			unknown[info.Unknown]++
			continue
		}
		if known++; reply[0] == '-' {
			errors++
		}
		cmds, replies = append(cmds, cmd), append(replies, reply)
		if len(cmds) == 100 {
			compare()
		}
	}
	compare()
	t.Logf("%d of %d programs were known, of which %d fail; others: %v", known, programs, errors, unknown)
	if known < programs/2 || known-errors < programs/6 {
		t.Errorf("the model knew only %d of %d programs, of which %d fail", known, programs, errors)
	}
}
