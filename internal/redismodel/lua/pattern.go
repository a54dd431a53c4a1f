package lua

import "strings"

// matcher is Lua 5.1's pattern matching, with the same steps.
type matcher struct {
	src, pat string
	captures []capture
	// bad is the error in the pattern.
	bad   string
	depth int
}

// capture is a part of the string. Its length is captureOpen until its end is found, and
// capturePosition for the capture of a position, ().
type capture struct{ start, length int }

const (
	captureOpen     = -1
	capturePosition = -2

	maxCaptures   = 32
	maxMatchDepth = 200
)

// fail ends the matching: the pattern is wrong.
func (m *matcher) fail(text string) int {
	if m.bad == "" {
		m.bad = text
	}
	return -1
}

// at matches the pattern at a place of the text and returns the match's end, -1 for none.
func (m *matcher) at(start int) int {
	m.captures, m.depth = m.captures[:0], 0
	return m.match(start, 0)
}

func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxMatchDepth {
		return m.fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for p < len(m.pat) && m.bad == "" {
		switch c := m.pat[p]; {
		case c == '(' && p+1 < len(m.pat) && m.pat[p+1] == ')':
			return m.open(s, p+2, capturePosition)
		case c == '(':
			return m.open(s, p+1, captureOpen)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pat):
			if s == len(m.src) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pat) && m.pat[p+1] == 'b':
			if s = m.balance(s, p+2); s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.pat) && m.pat[p+1] == 'f':
			p += 2
			end, ok := m.frontier(s, p)
			if !ok {
				return -1
			}
			p = end
			continue
		case c == '%' && p+1 < len(m.pat) && isDigit(m.pat[p+1]):
			if s = m.back(s, m.pat[p+1]); s < 0 {
				return -1
			}
			p += 2
			continue
		}
		end := m.classEnd(p)
		if m.bad != "" {
			return -1
		}
		fits := s < len(m.src) && m.single(m.src[s], p, end)
		suffix := byte(0)
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if fits {
				if r := m.match(s+1, end+1); r >= 0 {
					return r
				}
			}
			p = end + 1
		case '*':
			return m.most(s, p, end)
		case '+':
			if !fits {
				return -1
			}
			return m.most(s+1, p, end)
		case '-':
			return m.least(s, p, end)
		default:
			if !fits {
				return -1
			}
			s, p = s+1, end
		}
	}
	if m.bad != "" {
		return -1
	}
	return s
}

func (m *matcher) open(s, p, length int) int {
	if len(m.captures) >= maxCaptures {
		return m.fail("too many captures")
	}
	m.captures = append(m.captures, capture{s, length})
	n := len(m.captures)
	r := m.match(s, p)
	if r < 0 {
		m.captures = m.captures[:n-1]
	}
	return r
}

func (m *matcher) close(s, p int) int {
	i := len(m.captures) - 1
	for i >= 0 && m.captures[i].length != captureOpen {
		i--
	}
	if i < 0 {
		return m.fail("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].start
	r := m.match(s, p)
	if r < 0 {
		m.captures[i].length = captureOpen
	}
	return r
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		return m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		switch m.src[i] {
		case m.pat[p+1]:
			if depth--; depth == 0 {
				return i + 1
			}
		case m.pat[p]:
			depth++
		}
	}
	return -1
}

func (m *matcher) frontier(s, p int) (end int, ok bool) {
	if p >= len(m.pat) || m.pat[p] != '[' {
		m.fail("missing '[' after '%f' in pattern")
		return 0, false
	}
	if end = m.classEnd(p); m.bad != "" {
		return 0, false
	}
	before, here := byte(0), byte(0)
	if s > 0 {
		before = m.src[s-1]
	}
	if s < len(m.src) {
		here = m.src[s]
	}
	return end, !m.inSet(before, p, end-1) && m.inSet(here, p, end-1)
}

func (m *matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= len(m.captures) || m.captures[i].length == captureOpen {
		return m.fail("invalid capture index")
	}
	c := m.captures[i]
	if c.length < 0 || !strings.HasPrefix(m.src[s:], m.src[c.start:c.start+c.length]) {
		return -1
	}
	return s + c.length
}

func (m *matcher) most(s, p, end int) int {
	n := 0
	for s+n < len(m.src) && m.single(m.src[s+n], p, end) {
		n++
	}
	for ; n >= 0; n-- {
		if r := m.match(s+n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) least(s, p, end int) int {
	for {
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		if m.bad != "" || s >= len(m.src) || !m.single(m.src[s], p, end) {
			return -1
		}
		s++
	}
}

// classEnd returns the end of the single-character pattern that begins at p.
func (m *matcher) classEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
			return p
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
				return p
			}
			c := m.pat[p]
			p++
			if c == '%' && p < len(m.pat) {
				p++
			}
		}
		return p + 1
	}
	return p
}

func (m *matcher) single(c byte, p, end int) bool {
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pat[p] == c
}

// inSet reports whether c is in the set that begins at p; end is its bracket.
func (m *matcher) inSet(c byte, p, end int) bool {
	in := true
	p++
	if m.pat[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if inClass(c, m.pat[p]) {
				return in
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

// inClass reports whether c is of the class that a letter stands for.
func inClass(c, class byte) bool {
	alpha := c|0x20 >= 'a' && c|0x20 <= 'z'
	var in bool
	switch class | 0x20 {
	case 'a':
		in = alpha
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > ' ' && c < 0x7f && !alpha && !isDigit(c)
	case 's':
		in = IsSpace(c)
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = alpha || isDigit(c)
	case 'x':
		in = isHex(c)
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !(class|0x20 >= 'a' && class|0x20 <= 'z') {
		return class == c
	}
	if class >= 'A' && class <= 'Z' {
		return !in
	}
	return in
}
