package lua

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// longText is the longest string, in bytes, that string.rep may return.
const longText = 1 << 20

func (m *Machine) stringLibrary() map[string]lua.LGFunction {
	mapped := func(f func(b byte) byte) lua.LGFunction {
		return func(l *lua.LState) int {
			b := []byte(m.textArg(1))
			for i := range b {
				b[i] = f(b[i])
			}
			l.Push(lua.LString(b))
			return 1
		}
	}
	return map[string]lua.LGFunction{
		"len": func(l *lua.LState) int {
			l.Push(lua.LNumber(len(m.textArg(1))))
			return 1
		},
		"sub": func(l *lua.LState) int {
			s := m.textArg(1)
			i, j := stringRange(len(s), m.intArg(2), m.intOr(3, -1))
			l.Push(lua.LString(s[i:j]))
			return 1
		},
		"lower": mapped(func(b byte) byte {
			if b >= 'A' && b <= 'Z' {
				b += 'a' - 'A'
			}
			return b
		}),
		"upper": mapped(func(b byte) byte {
			if b >= 'a' && b <= 'z' {
				b -= 'a' - 'A'
			}
			return b
		}),
		"rep": func(l *lua.LState) int {
			s, n := m.textArg(1), max(m.intArg(2), 0)
			if n > longText || int64(len(s))*n > longText {
				return m.unknown("the Lua function string.rep with a long result")
			}
			l.Push(lua.LString(strings.Repeat(s, int(n))))
			return 1
		},
		"reverse": func(l *lua.LState) int {
			s := m.textArg(1)
			b := make([]byte, len(s))
			for i := range b {
				b[i] = s[len(s)-1-i]
			}
			l.Push(lua.LString(b))
			return 1
		},
		"byte": func(l *lua.LState) int {
			s := m.textArg(1)
			from := m.intOr(2, 1)
			i, j := stringRange(len(s), from, m.intOr(3, from))
			for _, b := range []byte(s[i:j]) {
				l.Push(lua.LNumber(b))
			}
			return j - i
		},
		"char": func(l *lua.LState) int {
			b := make([]byte, l.GetTop())
			for i := range b {
				n := m.intArg(i + 1)
				if n < 0 || n > 255 {
					return m.fail("bad argument #" + strconv.Itoa(i+1) + " to 'char' (invalid value)")
				}
				b[i] = byte(n)
			}
			l.Push(lua.LString(b))
			return 1
		},
		"format": func(l *lua.LState) int {
			l.Push(lua.LString(m.format(m.textArg(1))))
			return 1
		},
		"find":   func(*lua.LState) int { return m.find(true) },
		"match":  func(*lua.LState) int { return m.find(false) },
		"gmatch": m.gmatch,
		"gsub":   m.gsub,
	}
}

// stringRange turns Lua's two positions into those of a slice.
func stringRange(n int, i, j int64) (from, to int) {
	length := int64(n)
	if i < 0 {
		i += length + 1
	}
	if j < 0 {
		j += length + 1
	}
	i, j = max(i, 1), min(j, length)
	if i > j {
		return 0, 0
	}
	return int(i - 1), int(j)
}

// pushCapture pushes a capture; the whole match if there is none.
func (m *Machine) pushCapture(p *matcher, i, start, end int) {
	if i >= len(p.captures) {
		m.l.Push(lua.LString(p.src[start:end]))
		return
	}
	switch c := p.captures[i]; c.length {
	case captureOpen:
		m.fail("unfinished capture")
	case capturePosition:
		m.l.Push(lua.LNumber(c.start + 1))
	default:
		m.l.Push(lua.LString(p.src[c.start : c.start+c.length]))
	}
}

// pushCaptures pushes all captures. If there are none and whole is set, it pushes the
// whole match.
func (m *Machine) pushCaptures(p *matcher, start, end int, whole bool) int {
	n := len(p.captures)
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.pushCapture(p, i, start, end)
	}
	return n
}

// try matches at one position; it throws an error about a wrong pattern.
func (m *Machine) try(p *matcher, start int) int {
	end := p.at(start)
	if p.bad != "" {
		m.fail(p.bad)
	}
	return end
}

// find is string.find, or string.match.
func (m *Machine) find(positions bool) int {
	s, pattern := m.textArg(1), m.textArg(2)
	start := m.intOr(3, 1)
	if start < 0 {
		start += int64(len(s)) + 1
	}
	i := int(min(max(start-1, 0), int64(len(s))))
	if positions && (lua.LVAsBool(m.l.Get(4)) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		at := strings.Index(s[i:], pattern)
		if at < 0 {
			m.l.Push(lua.LNil)
			return 1
		}
		m.l.Push(lua.LNumber(i + at + 1))
		m.l.Push(lua.LNumber(i + at + len(pattern)))
		return 2
	}
	pattern, anchored := strings.CutPrefix(pattern, "^")
	p := &matcher{src: s, pat: pattern}
	for ; i <= len(s); i++ {
		if end := m.try(p, i); end >= 0 {
			if !positions {
				return m.pushCaptures(p, i, end, true)
			}
			m.l.Push(lua.LNumber(i + 1))
			m.l.Push(lua.LNumber(end))
			return 2 + m.pushCaptures(p, i, end, false)
		}
		if anchored {
			break
		}
	}
	m.l.Push(lua.LNil)
	return 1
}

func (m *Machine) gmatch(l *lua.LState) int {
	p := &matcher{src: m.textArg(1), pat: m.textArg(2)}
	i := 0
	l.Push(l.NewFunction(func(l *lua.LState) int {
		for ; i <= len(p.src); i++ {
			start, end := i, m.try(p, i)
			if end < 0 {
				continue
			}
			if i = end; end == start {
				i++
			}
			return m.pushCaptures(p, start, end, true)
		}
		return 0
	}))
	return 1
}

func (m *Machine) gsub(l *lua.LState) int {
	s, pattern := m.textArg(1), m.textArg(2)
	replacement, isText := m.text(l.Get(3))
	by := l.Get(3)
	_, isTable := by.(*lua.LTable)
	_, isFunction := by.(*lua.LFunction)
	limit := m.intOr(4, int64(len(s))+1)
	if !isText && !isTable && !isFunction {
		return m.fail("bad argument #3 to 'gsub' (string/function/table expected)")
	}
	pattern, anchored := strings.CutPrefix(pattern, "^")
	p := &matcher{src: s, pat: pattern}
	var b []byte
	n, i := int64(0), 0
	for n < limit {
		end := m.try(p, i)
		if end >= 0 {
			n++
			if isText {
				b = m.substitute(b, p, replacement, i, end)
			} else {
				b = m.exchange(b, p, by, i, end)
			}
		}
		switch {
		case end > i:
			i = end
		case i < len(s):
			b = append(b, s[i])
			i++
		default:
			anchored = true
		}
		if anchored {
			break
		}
	}
	l.Push(lua.LString(string(b) + s[min(i, len(s)):]))
	l.Push(lua.LNumber(n))
	return 2
}

// exchange appends what a function or a table has for a match, or the match if that is nil or false.
func (m *Machine) exchange(b []byte, p *matcher, by lua.LValue, start, end int) []byte {
	var v lua.LValue
	if t, ok := by.(*lua.LTable); ok {
		m.pushCapture(p, 0, start, end)
		key := m.l.Get(-1)
		m.l.Pop(1)
		v = m.index(m.failHere, t, key)
	} else {
		before := m.l.GetTop()
		n := m.pushCaptures(p, start, end, true)
		args := make([]lua.LValue, n)
		for i := range args {
			args[i] = m.l.Get(before + 1 + i)
		}
		m.l.SetTop(before)
		v = m.invoke(m.failHere, by, args...)
	}
	if !lua.LVAsBool(v) {
		return append(b, p.src[start:end]...)
	}
	text, ok := m.text(v)
	if !ok {
		m.fail("invalid replacement value (a " + v.Type().String() + ")")
	}
	return append(b, text...)
}

func (m *Machine) substitute(b []byte, p *matcher, replacement string, start, end int) []byte {
	for i := 0; i < len(replacement); i++ {
		c := replacement[i]
		if c != '%' || i+1 >= len(replacement) {
			b = append(b, c)
			continue
		}
		i++
		switch c = replacement[i]; {
		case c == '0':
			b = append(b, p.src[start:end]...)
		case isDigit(c):
			n := int(c - '1')
			if n > 0 && n >= len(p.captures) {
				m.fail("invalid capture index")
			}
			m.pushCapture(p, n, start, end)
			b = append(b, m.tostring(m.l.Get(-1))...)
			m.l.Pop(1)
		default:
			b = append(b, c)
		}
	}
	return b
}

// format is string.format: C's format, with Lua's numbers.
func (m *Machine) format(f string) string {
	var b bytes.Buffer
	arg := 1
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		if i++; i < len(f) && f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		start := i
		for i < len(f) && strings.IndexByte("-+ #0123456789.", f[i]) >= 0 {
			i++
		}
		if i == len(f) {
			m.fail("invalid option '%' to 'format'")
		}
		arg++
		m.directive(&b, f[start:i], f[i], arg)
	}
	return b.String()
}

// directive writes one argument.
func (m *Machine) directive(b *bytes.Buffer, flags string, verb byte, arg int) {
	width, _, _ := strings.Cut(flags, ".")
	before := flags[:len(flags)-len(strings.TrimLeft(flags, "-+ #0"))] // the flags before the width
	if strings.Contains(flags, "#") || len(flags) > 6 || strings.Contains(before, "0") && strings.Contains(before, "-") {
		m.unknown("the Lua format %" + flags + string(verb))
	}
	switch verb {
	case 'q':
		b.WriteString(quoted(m.textArg(arg)))
	case 'd', 'i':
		if strings.Contains(flags, ".") && strings.HasPrefix(strings.TrimLeft(flags, "+- "), "0") {
			m.unknown("the Lua format %" + flags + string(verb))
		}
		fmt.Fprintf(b, "%"+flags+"d", m.formatInt(arg))
	case 'u', 'x', 'X', 'o':
		if verb == 'u' {
			verb = 'd'
		}
		if strings.ContainsAny(flags, "+ .") {
			m.unknown("the Lua format %" + flags + string(verb))
		}
		fmt.Fprintf(b, "%"+flags+string(verb), uint64(m.formatInt(arg)))
	case 'e', 'E', 'f', 'g', 'G':
		x := m.numberArg(arg)
		m.noMinusZero(x)
		if math.IsNaN(x) || math.IsInf(x, 0) && strings.ContainsAny(flags, "0+ ") {
			m.unknown("a Lua format of NaN or infinity")
		}
		if math.IsInf(x, 0) {
			text := FormatG(x, 1)
			if verb < 'a' {
				text = strings.ToUpper(text)
			}
			fmt.Fprintf(b, "%"+width+"s", text)
			return
		}
		if !strings.Contains(flags, ".") {
			flags += ".6"
		}
		if verb|0x20 == 'g' && strings.HasSuffix(flags, ".0") {
			flags = strings.TrimSuffix(flags, "0") + "1"
		}
		fmt.Fprintf(b, "%"+flags+string(verb), x)
	case 'c':
		if flags != "" {
			m.unknown("the Lua format %" + flags + "c")
		}
		c := m.intArg(arg)
		if c < 0 || c > 255 {
			m.unknown("the character " + strconv.FormatInt(c, 10))
		}
		if c != 0 {
			b.WriteByte(byte(c))
		}
	case 's':
		s := m.textArg(arg)
		if strings.ContainsAny(flags, "+ 0") && flags != "" {
			if strings.TrimLeft(flags, "-123456789.0") != "" || strings.HasPrefix(strings.TrimLeft(flags, "-"), "0") {
				m.unknown("the Lua format %" + flags + "s")
			}
		}
		if !strings.Contains(flags, ".") && len(s) >= 100 {
			b.WriteString(s)
			return
		}
		s = CString(s)
		m.padded(b, flags, s)
	default:
		m.unknown("the Lua format %" + flags + string(verb))
	}
}

// quoted returns a text as a Lua constant (addquoted).
func quoted(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`).Replace(s) + `"`
}

// padded writes a text with a width and a precision, which count bytes.
func (m *Machine) padded(b *bytes.Buffer, flags, s string) {
	left := strings.HasPrefix(flags, "-")
	width, precision, cut := strings.Cut(strings.TrimLeft(flags, "-"), ".")
	if n, _ := strconv.Atoi(precision); cut && n < len(s) {
		s = s[:n]
	}
	n, _ := strconv.Atoi(width)
	pad := strings.Repeat(" ", max(n-len(s), 0))
	if left {
		b.WriteString(s + pad)
		return
	}
	b.WriteString(pad + s)
}

// formatInt returns an argument as C's long.
func (m *Machine) formatInt(arg int) int64 { return m.intArg(arg) }

func (m *Machine) tableLibrary() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"insert": func(l *lua.LState) int {
			t := m.tableArg(1)
			n := m.listLen(t)
			switch l.GetTop() {
			case 2:
				m.set(t, lua.LNumber(n+1), l.Get(2))
			case 3:
				i := m.intArg(2)
				if i < 1 || i > int64(n)+1 {
					return m.unknown("a position outside of a Lua list")
				}
				for j := n; j >= int(i); j-- {
					m.set(t, lua.LNumber(j+1), t.RawGetInt(j))
				}
				m.set(t, lua.LNumber(i), l.Get(3))
			default:
				return m.fail("wrong number of arguments to 'insert'")
			}
			return 0
		},
		"remove": func(l *lua.LState) int {
			t := m.tableArg(1)
			n := m.listLen(t)
			i := m.intOr(2, int64(n))
			if i < 1 || i > int64(n) {
				return 0
			}
			v := t.RawGetInt(int(i))
			for j := int(i); j < n; j++ {
				m.set(t, lua.LNumber(j), t.RawGetInt(j+1))
			}
			m.set(t, lua.LNumber(n), lua.LNil)
			l.Push(v)
			return 1
		},
		"concat": func(l *lua.LState) int {
			t := m.tableArg(1)
			separator := ""
			if l.Get(2) != lua.LNil {
				separator = m.textArg(2)
			}
			from, to := m.intOr(3, 1), m.intOr(4, int64(m.listLen(t)))
			var b strings.Builder
			for i := from; i <= to; i++ {
				s, ok := m.text(t.RawGetInt(int(i)))
				if !ok {
					return m.fail("invalid value (" + t.RawGetInt(int(i)).Type().String() + ") at index " + strconv.FormatInt(i, 10) + " in table for 'concat'")
				}
				if i > from {
					b.WriteString(separator)
				}
				b.WriteString(s)
			}
			l.Push(lua.LString(b.String()))
			return 1
		},
		"getn": func(l *lua.LState) int {
			l.Push(lua.LNumber(m.listLen(m.tableArg(1))))
			return 1
		},
		"sort": m.sort,
	}
}
