package lua

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// gopher-lua accepts more than Lua 5.1 does, and reads some numbers differently. A script with such a part is unknown.

// A token is a word, a number, a text or a symbol.
type token struct {
	kind   byte // 'w', 'n', 's', or the first byte of a symbol
	text   string
	line   int  // where it ends
	called bool // an argument list may follow it
	params bool // it closes the parameters of a function
}

// scanner reads the tokens of a script as Lua 5.1 does.
type scanner struct {
	text string
	at   int
	line int
}

// refused returns a part of a script that Lua 5.1 refuses, or reads differently than gopher-lua, or "".
func refused(text string) string {
	var (
		s      = &scanner{text: text, line: 1}
		prev   token
		head   string // in the head of a function: "function", then "("
		braces []bool // whether a table may be the argument of a call
		nested int    // how many brackets are open
	)
	for {
		t, err := s.next()
		switch {
		case err != nil:
			return err.Error()
		case t.kind == 0:
			return ""
		case (t.kind == ';' || t.kind == ',') && !prev.endsStatement():
			return "an empty Lua statement or field"
		case nested > mostNested:
			return "a deeply nested Lua script"
		case t.kind == '(' && head == "" && prev.called && t.line != prev.line:
			return "a Lua call whose opening parenthesis is on another line"
		case t.kind == 'w':
			t.called = !keywords[t.text]
		case t.kind == 's':
			t.called = prev.called
		case t.kind == ']':
			t.called = true
		case t.kind == ')':
			t.called, t.params = head == "", head != ""
		case t.kind == '{':
			braces = append(braces, prev.called)
		case t.kind == '}' && len(braces) > 0:
			t.called, braces = braces[len(braces)-1], braces[:len(braces)-1]
		}
		switch {
		case t.kind == 'w' && t.text == "function", t.kind == '(' && head == "function":
			head = t.text
		case t.params:
			head = ""
		}
		switch t.kind {
		case '(', '[', '{':
			nested++
		case ')', ']', '}':
			nested--
		}
		prev = t
	}
}

var keywords = map[string]bool{}

func init() {
	for word := range strings.FieldsSeq("and break do else elseif end false for function if in local nil not or repeat return then true until while") {
		keywords[word] = true
	}
}

// endsStatement reports whether a token may be the last one of a statement or of a field.
func (t token) endsStatement() bool {
	switch t.kind {
	case 'w':
		return !keywords[t.text] || strings.Contains(" end nil true false break return ", " "+t.text+" ")
	case '.':
		return t.text == "..."
	case ')':
		return !t.params
	}
	return strings.IndexByte("ns]}", t.kind) >= 0
}

// next returns the next token; its kind is 0 at the end.
func (s *scanner) next() (token, error) {
	if err := s.skip(); err != nil || s.at == len(s.text) {
		return token{}, err
	}
	start, c := s.at, s.text[s.at]
	t := token{kind: c}
	var err error
	level := s.bracket()
	switch {
	case isLetter(c):
		for s.at < len(s.text) && isWord(s.text[s.at]) {
			s.at++
		}
		t.kind = 'w'
	case isDigit(c), c == '.' && s.at+1 < len(s.text) && isDigit(s.text[s.at+1]):
		err = s.number()
		t.kind = 'n'
	case c == '"', c == '\'':
		err = s.quoted(c)
		t.kind = 's'
	case level >= 0:
		err = s.long(level)
		t.kind = 's'
	case c == '.':
		for s.at < len(s.text) && s.at < start+3 && s.text[s.at] == '.' {
			s.at++
		}
	case strings.IndexByte("+-*/%^#=~<>(){}[];:,", c) >= 0:
		s.at++
	default:
		err = errors.New("a byte that is not allowed in a Lua script")
	}
	t.text, t.line = s.text[start:s.at], s.line
	return t, err
}

// skip passes spaces and comments.
func (s *scanner) skip() error {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.line++
		case c == ' ', c == '\t', c == '\r':
		case strings.HasPrefix(s.text[s.at:], "--"):
			s.at += len("--")
			if level := s.bracket(); level >= 0 {
				if err := s.long(level); err != nil {
					return err
				}
			} else if end := strings.IndexByte(s.text[s.at:], '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
				return nil
			}
			s.at--
		default:
			return nil
		}
	}
	return nil
}

// bracket returns the number of equals signs in the long bracket that begins here, or -1.
func (s *scanner) bracket() int {
	rest, ok := strings.CutPrefix(s.text[s.at:], "[")
	if !ok {
		return -1
	}
	after := strings.TrimLeft(rest, "=")
	if !strings.HasPrefix(after, "[") {
		return -1
	}
	return len(rest) - len(after)
}

// long skips a string or a comment in long brackets.
func (s *scanner) long(level int) error {
	signs := strings.Repeat("=", level)
	inside, _, ok := strings.Cut(s.text[s.at+level+2:], "]"+signs+"]")
	switch {
	case !ok:
		return errors.New("an unfinished Lua string or comment")
	case strings.ContainsAny(inside, "\r\x00"):
		return errors.New("a Lua string or comment with a carriage return or a zero byte")
	case level == 0 && strings.Contains(inside, "[["):
		return errors.New("nested long brackets of Lua")
	}
	s.at += len(inside) + 2*(level+2)
	s.line += strings.Count(inside, "\n")
	return nil
}

// quoted passes a text in quotation marks.
func (s *scanner) quoted(quote byte) error {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == quote:
			s.at++
			return nil
		case c == '\n', c == '\r', c == 0:
			return errors.New("a Lua string with a newline, a carriage return or a zero byte")
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		}
	}
	return errors.New("an unfinished Lua string")
}

// escape passes an escape sequence, except for its last byte.
func (s *scanner) escape() error {
	if s.at++; s.at == len(s.text) {
		return nil
	}
	switch c := s.text[s.at]; {
	case c == '\n':
		s.line++
	case c == '\r', c == 0:
		return errors.New("a Lua string with a carriage return or a zero byte")
	case isDigit(c):
		end := s.at
		for end < len(s.text) && end < s.at+3 && isDigit(s.text[end]) {
			end++
		}
		if n, _ := strconv.Atoi(s.text[s.at:end]); n > 255 {
			return errors.New("a Lua escape sequence above 255")
		}
		s.at = end - 1
	}
	return nil
}

// numbers match the numbers that both interpreters read alike. Ours takes a number that begins with a zero for an octal one.
var numbers = regexp.MustCompile(`^((0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?|0[xX][0-9a-fA-F]{1,13})$`)

// number passes a number, and all that Lua 5.1 takes for a part of it.
func (s *scanner) number() error {
	start := s.at
	for s.at < len(s.text) && (isDigit(s.text[s.at]) || s.text[s.at] == '.') {
		s.at++
	}
	if rest := s.text[s.at:]; rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		if s.at++; len(rest) > 1 && (rest[1] == '+' || rest[1] == '-') {
			s.at++
		}
	}
	for s.at < len(s.text) && isWord(s.text[s.at]) {
		s.at++
	}
	text := s.text[start:s.at]
	if _, err := strconv.ParseFloat(text, 64); !numbers.MatchString(text) || errors.Is(err, strconv.ErrRange) {
		return errors.New("the Lua number " + text)
	}
	return nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isWord(c byte) bool { return isLetter(c) || isDigit(c) }
