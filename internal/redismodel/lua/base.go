package lua

import (
	"errors"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"oversell/internal/rediscmd"
)

// operators returns the functions with which the rewriter replaces Lua's operators.
func (m *Machine) operators() map[string]lua.LGFunction {
	arithmetic := func(event string, f func(a, b float64) float64) lua.LGFunction {
		return func(l *lua.LState) int {
			a, aok := number(l.Get(1))
			b, bok := number(l.Get(2))
			if !aok || !bok {
				if v, ok := m.operate(event, l.Get(1), l.Get(2)); ok {
					l.Push(v)
					return 1
				}
				return m.badOperand("perform arithmetic on", 1, !aok)
			}
			l.Push(lua.LNumber(f(a, b)))
			return 1
		}
	}
	return map[string]lua.LGFunction{
		"+": arithmetic("__add", func(a, b float64) float64 { return a + b }),
		"-": arithmetic("__sub", func(a, b float64) float64 { return a - b }),
		"*": arithmetic("__mul", func(a, b float64) float64 { return a * b }),
		"/": arithmetic("__div", func(a, b float64) float64 { m.noMinusZero(b); return a / b }),
		"%": arithmetic("__mod", func(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }),
		"^": arithmetic("__pow", m.power),
		"neg": func(l *lua.LState) int {
			a, ok := number(l.Get(1))
			if !ok {
				if v, ok := m.operate("__unm", l.Get(1), l.Get(1)); ok {
					l.Push(v)
					return 1
				}
				return m.badOperand("perform arithmetic on", 1, true)
			}
			l.Push(lua.LNumber(-a))
			return 1
		},
		"..": func(l *lua.LState) int {
			a, aok := m.text(l.Get(1))
			b, bok := m.text(l.Get(2))
			if !aok || !bok {
				if v, ok := m.operate("__concat", l.Get(1), l.Get(2)); ok {
					l.Push(v)
					return 1
				}
				return m.badOperand("concatenate", 1, !aok)
			}
			l.Push(lua.LString(a + b))
			return 1
		},
		"#":      m.length,
		"table":  m.construct,
		"fields": func(l *lua.LState) int { return m.fields(l.CheckTable(1), l.CheckString(2), 3) },
		"nil": func(l *lua.LState) int {
			l.Push(lua.LNil)
			return 1
		},
		"loop": func(*lua.LState) int {
			m.count()
			return 0
		},
		"for": func(l *lua.LState) int {
			n, ok := number(l.Get(1))
			if !ok {
				return m.fail("'for' " + l.Get(2).String() + " must be a number")
			}
			l.Push(lua.LNumber(n))
			return 1
		},
	}
}

// power returns a to the power b. The result is known only if a and b are integers and it is an
// integer of at most 2^53: otherwise its last bit depends on the C library.
func (m *Machine) power(a, b float64) float64 {
	p := math.Pow(a, b)
	if a != math.Trunc(a) || b != math.Trunc(b) || b < 0 || !(math.Abs(p) <= 1<<53) {
		m.unknown("the last bit of a Lua power")
	}
	return p
}

func (m *Machine) badOperand(what string, first int, firstIsBad bool) int {
	v := m.l.Get(first)
	if !firstIsBad {
		v = m.l.Get(first + 1)
	}
	return m.fail("attempt to " + what + " a " + v.Type().String() + " value")
}

func (m *Machine) length(l *lua.LState) int {
	switch v := l.Get(1).(type) {
	case lua.LString:
		l.Push(lua.LNumber(len(v)))
	case *lua.LTable:
		l.Push(lua.LNumber(m.listLen(v)))
	default:
		return m.badOperand("get length of", 1, true)
	}
	return 1
}

// number returns a Lua number, or the number in a text.
func number(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		f, rest, ok := Strtod(CString(string(v)))
		return f, ok && strings.Trim(rest, " \t\n\v\f\r") == ""
	}
	return 0, false
}

// unsigned is the C function strtoul, for a text that is a number and nothing else.
func unsigned(text string, base int) (float64, bool) {
	const spaces = " \t\n\v\f\r"
	digits := strings.Trim(text, spaces)
	negative := strings.HasPrefix(digits, "-")
	if negative || strings.HasPrefix(digits, "+") {
		digits = digits[1:]
	}
	if base == 16 && len(digits) > 2 && strings.EqualFold(digits[:2], "0x") {
		digits = digits[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64) // the largest number if the text's is larger
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	if negative && err == nil {
		n = -n
	}
	return float64(n), true
}

// text returns a Lua string, or a number as one.
func (m *Machine) text(v lua.LValue) (string, bool) {
	switch v.(type) {
	case lua.LString, lua.LNumber:
		return m.tostring(v), true
	}
	return "", false
}

// The arguments of library functions.

func (m *Machine) badArgument(n int, want string) {
	got := "no value"
	if n <= m.l.GetTop() {
		got = m.l.Get(n).Type().String()
	}
	m.fail("bad argument #" + strconv.Itoa(n) + " (" + want + " expected, got " + got + ")")
}

func (m *Machine) textArg(n int) string {
	s, ok := m.text(m.l.Get(n))
	if !ok {
		m.badArgument(n, "string")
	}
	return s
}

func (m *Machine) numberArg(n int) float64 {
	f, ok := number(m.l.Get(n))
	if !ok {
		m.badArgument(n, "number")
	}
	return f
}

func (m *Machine) intArg(n int) int64 {
	i, ok := toInt(m.numberArg(n))
	if !ok {
		m.unknown("an integer that does not fit")
	}
	return i
}

func (m *Machine) intOr(n int, otherwise int64) int64 {
	if m.l.Get(n) == lua.LNil {
		return otherwise
	}
	return m.intArg(n)
}

func (m *Machine) tableArg(n int) *lua.LTable {
	t, ok := m.l.Get(n).(*lua.LTable)
	if !ok {
		m.badArgument(n, "table")
	}
	return t
}

// base returns the functions of Lua's base library, which have no prefix.
func (m *Machine) base() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"assert": func(l *lua.LState) int {
			if l.GetTop() == 0 {
				m.badArgument(1, "value")
			}
			if lua.LVAsBool(l.Get(1)) {
				return l.GetTop()
			}
			if l.Get(2) == lua.LNil {
				return m.failWith("assertion failed!")
			}
			return m.failWith(CString(m.textArg(2)))
		},
		"error": func(l *lua.LState) int {
			level := m.intOr(2, 1)
			v := l.Get(1)
			if level > 1 {
				return m.unknown("the level of a Lua error")
			}
			if s, ok := m.text(v); ok && level == 1 {
				return m.failWith(s)
			}
			return m.throw(v)
		},
		"ipairs": func(l *lua.LState) int {
			t := m.tableArg(1)
			l.Push(l.NewFunction(func(l *lua.LState) int {
				i := m.intArg(2) + 1
				v := m.tableArg(1).RawGetInt(int(i))
				if v == lua.LNil {
					l.Push(lua.LNil)
					return 1
				}
				l.Push(lua.LNumber(i))
				l.Push(v)
				return 2
			}))
			l.Push(t)
			l.Push(lua.LNumber(0))
			return 3
		},
		"pairs": func(l *lua.LState) int {
			t := m.tableArg(1)
			l.Push(l.NewFunction(m.next))
			l.Push(t)
			l.Push(lua.LNil)
			return 3
		},
		"next":  m.next,
		"pcall": m.pcall,
		"select": func(l *lua.LState) int {
			if l.Get(1) == lua.LString("#") {
				l.Push(lua.LNumber(l.GetTop() - 1))
				return 1
			}
			i := m.intArg(1)
			if i < 1 {
				return m.unknown("the Lua function select with a position below 1")
			}
			return max(l.GetTop()-int(min(i, 1<<20)), 0)
		},
		"tonumber": func(l *lua.LState) int {
			if l.GetTop() == 0 {
				m.badArgument(1, "value")
			}
			f, ok := number(l.Get(1))
			if base := m.intOr(2, 10); base != 10 {
				text := m.textArg(1)
				if base < 2 || base > 36 {
					return m.unknown("a base of Lua's tonumber that is out of range")
				}
				f, ok = unsigned(CString(text), int(base))
			}
			if ok {
				l.Push(lua.LNumber(f))
			} else {
				l.Push(lua.LNil)
			}
			return 1
		},
		"tostring": func(l *lua.LState) int {
			if l.GetTop() == 0 {
				m.badArgument(1, "value")
			}
			if f := m.event(l.Get(1), "__tostring"); f != lua.LNil {
				l.Push(m.invoke(m.failHere, f, l.Get(1)))
				return 1
			}
			l.Push(lua.LString(m.tostring(l.Get(1))))
			return 1
		},
		"type": func(l *lua.LState) int {
			if l.GetTop() == 0 {
				m.badArgument(1, "value")
			}
			l.Push(lua.LString(l.Get(1).Type().String()))
			return 1
		},
		"unpack": func(l *lua.LState) int {
			t := m.tableArg(1)
			from, to := m.intOr(2, 1), int64(0)
			if l.Get(3) == lua.LNil {
				to = int64(m.listLen(t))
			} else {
				to = m.intArg(3)
			}
			if to-from > 1000 {
				return m.unknown("the Lua function unpack with many values")
			}
			for i := from; i <= to; i++ {
				l.Push(t.RawGetInt(int(i)))
			}
			return int(max(to-from+1, 0))
		},
	}
}

func (m *Machine) next(l *lua.LState) int {
	k, v := m.nextEntry(m.tableArg(1), l.Get(2))
	if k == lua.LNil {
		l.Push(lua.LNil)
		return 1
	}
	l.Push(k)
	l.Push(v)
	return 2
}

func (m *Machine) libraries() map[string]map[string]lua.LGFunction {
	return map[string]map[string]lua.LGFunction{
		"redis": m.redisLibrary(), "string": m.stringLibrary(), "table": m.tableLibrary(), "math": m.mathLibrary(),
		"cjson": m.cjsonLibrary(), "bit": m.bitLibrary(),
	}
}

func (m *Machine) redisLibrary() map[string]lua.LGFunction {
	single := func(field string, text func(string) string) lua.LGFunction {
		return func(l *lua.LState) int {
			s, ok := l.Get(1).(lua.LString)
			if !ok || l.GetTop() != 1 {
				l.Push(m.field("err", "ERR wrong number or type of arguments"))
				return 1
			}
			l.Push(m.field(field, text(string(s))))
			return 1
		}
	}
	return map[string]lua.LGFunction{
		"call":         m.call(false),
		"pcall":        m.call(true),
		"status_reply": single("ok", func(s string) string { return s }),
		"error_reply":  single("err", errorText),
		"sha1hex": func(l *lua.LState) int {
			if l.GetTop() != 1 {
				return m.throw(m.field("err", "ERR wrong number of arguments"))
			}
			s, _ := m.text(l.Get(1))
			l.Push(lua.LString(rediscmd.SHA1(s)))
			return 1
		},
		"log": m.log,
		"replicate_commands": func(l *lua.LState) int {
			l.Push(lua.LTrue)
			return 1
		},
		"breakpoint": func(l *lua.LState) int { // without a debugger
			l.Push(lua.LFalse)
			return 1
		},
		"setresp": func(l *lua.LState) int {
			if l.GetTop() != 1 {
				return m.throw(m.field("err", "ERR redis.setresp() requires one argument."))
			}
			switch m.flags(1) {
			case 2:
				return 0
			case 3:
				return m.unknown("the Lua function redis.setresp with the protocol 3")
			}
			return m.throw(m.field("err", "ERR RESP version must be 2 or 3."))
		},
		"set_repl": func(l *lua.LState) int { // there is nobody to replicate to
			if l.GetTop() != 1 {
				return m.throw(m.field("err", "ERR redis.set_repl() requires two arguments."))
			}
			if m.flags(1)&^3 != 0 {
				return m.throw(m.field("err", "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."))
			}
			return 0
		},
	}
}

// flags returns an argument as C's int; 0 if it is no number.
func (m *Machine) flags(n int) int64 {
	f, ok := number(m.l.Get(n))
	if !ok {
		return 0
	}
	if !(math.Abs(f) < math.MaxInt32) {
		m.unknown("an integer that does not fit")
	}
	return int64(f)
}

// log is redis.log, of which a client sees only the errors.
func (m *Machine) log(l *lua.LState) int {
	if l.GetTop() < 2 {
		return m.throw(m.field("err", "ERR redis.log() requires two arguments or more."))
	}
	if _, ok := number(l.Get(1)); !ok {
		return m.throw(m.field("err", "ERR First argument must be a number (log level)."))
	}
	if level := m.flags(1); level < 0 || level > 3 {
		return m.throw(m.field("err", "ERR Invalid debug level."))
	}
	return 0
}

// constants returns the fields of the libraries that are not functions.
func (m *Machine) constants() map[string]map[string]lua.LValue {
	return map[string]map[string]lua.LValue{
		"math":  {"huge": lua.LNumber(math.Inf(1)), "pi": lua.LNumber(math.Pi)},
		"cjson": {"null": m.null},
		"redis": {
			"LOG_DEBUG": lua.LNumber(0), "LOG_VERBOSE": lua.LNumber(1), "LOG_NOTICE": lua.LNumber(2), "LOG_WARNING": lua.LNumber(3),
			"REPL_NONE": lua.LNumber(0), "REPL_AOF": lua.LNumber(1), "REPL_SLAVE": lua.LNumber(2), "REPL_REPLICA": lua.LNumber(2), "REPL_ALL": lua.LNumber(3),
			"REDIS_VERSION": lua.LString("7.0.15"), "REDIS_VERSION_NUM": lua.LNumber(0x07000f),
		},
	}
}

// errorText gives an error its code: the first word, or ERR if there is only one.
func errorText(s string) string {
	s = strings.TrimPrefix(CString(s), "-")
	code, text, ok := strings.Cut(s, " ")
	if !ok {
		code, text = "ERR", s
	}
	return code + " " + strings.Trim(text, "\r\n")
}

func (m *Machine) mathLibrary() map[string]lua.LGFunction {
	unary := func(f func(float64) float64) lua.LGFunction {
		return func(l *lua.LState) int {
			l.Push(lua.LNumber(f(m.numberArg(1))))
			return 1
		}
	}
	most := func(better func(a, b float64) bool) lua.LGFunction {
		return func(l *lua.LState) int {
			best := m.numberArg(1)
			for i := 2; i <= l.GetTop(); i++ {
				if f := m.numberArg(i); better(f, best) {
					best = f
				}
			}
			l.Push(lua.LNumber(best))
			return 1
		}
	}
	return map[string]lua.LGFunction{
		"floor": unary(math.Floor),
		"ceil":  unary(math.Ceil),
		"abs":   unary(math.Abs),
		"sqrt":  unary(math.Sqrt),
		"max":   most(func(a, b float64) bool { return a > b }),
		"min":   most(func(a, b float64) bool { return a < b }),
		"fmod": func(l *lua.LState) int {
			l.Push(lua.LNumber(math.Mod(m.numberArg(1), m.numberArg(2))))
			return 1
		},
		"modf": func(l *lua.LState) int {
			whole, part := math.Modf(m.numberArg(1))
			l.Push(lua.LNumber(whole))
			l.Push(lua.LNumber(part))
			return 2
		},
	}
}
