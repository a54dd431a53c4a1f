package lua

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

func (m *Machine) cjsonLibrary() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"encode": func(l *lua.LState) int {
			if l.GetTop() != 1 {
				return m.fail("bad argument #1 to 'encode' (expected 1 argument)")
			}
			l.Push(lua.LString(m.encode(nil, l.Get(1), 0)))
			return 1
		},
		"decode": func(l *lua.LState) int {
			if l.GetTop() != 1 {
				return m.fail("bad argument #1 to 'decode' (expected 1 argument)")
			}
			p := jsonParser{m: m, s: m.textArg(1)}
			v := p.value(0)
			if p.space(); p.i < len(p.s) {
				p.wrong()
			}
			l.Push(v)
			return 1
		},
	}
}

// encode appends a value as cjson does: a table whose keys are all positive integers is an array,
// and an empty table is an object.
func (m *Machine) encode(b []byte, v lua.LValue, depth int) []byte {
	if depth > maxDepth {
		m.unknown("deep JSON")
	}
	switch v := v.(type) {
	case *lua.LNilType, *lua.LUserData: // nil or cjson.null
		return append(b, "null"...)
	case lua.LBool:
		return strconv.AppendBool(b, bool(v))
	case lua.LNumber:
		f := float64(v)
		if f-f != 0 {
			m.fail("Cannot serialise number: must not be NaN or Inf")
		}
		return append(b, m.formatNumber(f, 14)...)
	case lua.LString:
		return appendJSON(b, string(v))
	case *lua.LTable:
		return m.encodeTable(b, v, depth)
	}
	m.unknown("JSON of a " + v.Type().String())
	return b
}

// encodeTable appends a table. An array with holes is an error if its last index is above 10 and
// above twice the number of its values.
func (m *Machine) encodeTable(b []byte, t *lua.LTable, depth int) []byte {
	most, entries, array := lua.LNumber(0), 0, true
	t.ForEach(func(k, _ lua.LValue) {
		n, ok := k.(lua.LNumber)
		array = array && ok && n >= 1 && n == lua.LNumber(math.Floor(float64(n)))
		most = max(most, n)
		entries++
	})
	switch {
	case !array || entries == 0:
		return m.encodeObject(b, t, depth)
	case most >= math.MaxInt32:
		m.unknown("JSON of a Lua list with a large number as a key")
	case most > lua.LNumber(2*entries) && most > 10:
		m.fail("Cannot serialise table: excessively sparse array")
	}
	b = append(b, '[')
	for i := 1; i <= int(most); i++ {
		if i > 1 {
			b = append(b, ',')
		}
		b = m.encode(b, t.RawGetInt(i), depth+1)
	}
	return append(b, ']')
}

func (m *Machine) encodeObject(b []byte, t *lua.LTable, depth int) []byte {
	b = append(b, '{')
	for k, v := m.nextEntry(t, lua.LNil); k != lua.LNil; k, v = m.nextEntry(t, k) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		switch k := k.(type) {
		case lua.LString:
			b = appendJSON(b, string(k))
		case lua.LNumber:
			b = append(m.encode(append(b, '"'), k, depth), '"')
		case lua.LBool, *lua.LUserData:
			m.fail("Cannot serialise " + k.Type().String() + ": table key must be a number or string")
		default:
			m.unknown("JSON of a table with a key that is not a string")
		}
		b = m.encode(append(b, ':'), v, depth+1)
	}
	return append(b, '}')
}

// appendJSON writes a text, byte by byte; non-ASCII bytes do not change.
func appendJSON(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		if at := strings.IndexByte("\"\\/\b\t\n\f\r", c); at >= 0 {
			b = append(b, '\\', `"\/btnfr`[at])
		} else if c < ' ' || c == 0x7f {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		} else {
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// jsonParser reads JSON as cjson does.
type jsonParser struct {
	m *Machine
	s string
	i int
}

// wrong throws an error, whose message differs slightly from that of cjson.
func (p *jsonParser) wrong() {
	p.m.fail("Expected value but found invalid token at character " + strconv.Itoa(p.i+1))
}

func (p *jsonParser) space() {
	for p.i < len(p.s) && strings.IndexByte(" \t\n\r", p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *jsonParser) take(word string) bool {
	if !strings.HasPrefix(p.s[p.i:], word) {
		return false
	}
	p.i += len(word)
	return true
}

func (p *jsonParser) value(depth int) lua.LValue {
	if depth > maxDepth {
		p.m.unknown("deep JSON")
	}
	p.space()
	switch {
	case p.take("{"):
		return p.object(depth)
	case p.take("["):
		return p.array(depth)
	case p.take(`"`):
		return lua.LString(p.text())
	case p.take("true"):
		return lua.LTrue
	case p.take("false"):
		return lua.LFalse
	case p.take("null"):
		return p.m.null
	}
	return p.number()
}

// jsonNumber matches a JSON number. cjson also accepts others.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?`)

func (p *jsonParser) number() lua.LValue {
	text := jsonNumber.FindString(p.s[p.i:])
	rest := p.s[p.i+len(text):]
	if rest != "" && (text == "" && strings.IndexByte("+-0123456789iInN", rest[0]) >= 0 ||
		text != "" && strings.IndexByte(" \t\n\r,]}", rest[0]) < 0) {
		p.m.unknown("a number in the JSON that a script reads")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // a number that is too large is infinite
		p.wrong()
	}
	p.i += len(text)
	return lua.LNumber(f)
}

func (p *jsonParser) array(depth int) lua.LValue {
	t, n := p.m.l.NewTable(), 0
	if p.space(); p.take("]") {
		return p.m.list(t, n)
	}
	for {
		t.Append(p.value(depth + 1))
		n++
		p.space()
		if p.take("]") {
			return p.m.list(t, n)
		}
		if !p.take(",") {
			p.wrong()
		}
	}
}

func (p *jsonParser) object(depth int) lua.LValue {
	t := p.m.newTable(0, 0)
	if p.space(); p.take("}") {
		return t
	}
	for {
		if p.space(); !p.take(`"`) {
			p.wrong()
		}
		name := p.text()
		if p.space(); !p.take(":") {
			p.wrong()
		}
		p.m.set(t, lua.LString(name), p.value(depth+1))
		p.space()
		if p.take("}") {
			return t
		}
		if !p.take(",") {
			p.wrong()
		}
	}
}

// text reads a string after its quotation mark.
func (p *jsonParser) text() string {
	var b []byte
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return string(b)
		case c == '\\':
			b = p.escape(b)
		case c < ' ':
			p.m.unknown("a control character in the JSON that a script reads")
		default:
			b = append(b, c)
		}
	}
	p.wrong()
	return ""
}

func (p *jsonParser) escape(b []byte) []byte {
	if p.i >= len(p.s) {
		p.wrong()
	}
	c := p.s[p.i]
	p.i++
	if at := strings.IndexByte(`"\/btnfr`, c); at >= 0 {
		return append(b, "\"\\/\b\t\n\f\r"[at])
	}
	if c != 'u' {
		p.wrong()
	}
	r := rune(p.hex4())
	if utf16.IsSurrogate(r) {
		if !p.take(`\u`) {
			p.wrong()
		}
		r = utf16.DecodeRune(r, rune(p.hex4()))
		if r == utf8.RuneError {
			p.wrong()
		}
	}
	return utf8.AppendRune(b, r)
}

func (p *jsonParser) hex4() uint64 {
	if p.i+4 > len(p.s) {
		p.wrong()
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	if err != nil {
		p.wrong()
	}
	p.i += 4
	return n
}
