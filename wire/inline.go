package wire

import (
	"bytes"
	"strconv"
)

// splitLine splits a request that is a line into its arguments as Redis does:
// at blanks, with double quotes, in which backslashes escape, and single quotes,
// in which only \' does. ok is false when the quotes do not match.
func splitLine(line []byte) (args [][]byte, ok bool) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	for {
		line = bytes.TrimLeft(line, " \t\n\v\f\r")
		if len(line) == 0 {
			return args, true
		}
		var arg []byte
		if arg, line, ok = firstWord(line); !ok {
			return nil, false
		}
		args = append(args, arg)
	}
}

// firstWord takes the first argument of a line that does not begin with a blank.
func firstWord(line []byte) (word, rest []byte, ok bool) {
	word = []byte{}
	for len(line) > 0 && !isBlank(line[0]) {
		switch c := line[0]; c {
		case '"', '\'':
			var quoted []byte
			if quoted, line, ok = unquote(c, line[1:]); !ok {
				return nil, nil, false
			}
			return append(word, quoted...), line, len(line) == 0 || isBlank(line[0])
		default:
			word, line = append(word, c), line[1:]
		}
	}
	return word, line, true
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// unquote reads up to the closing quote.
func unquote(quote byte, in []byte) (out, rest []byte, ok bool) {
	for len(in) > 0 {
		switch c := in[0]; {
		case c == quote:
			return out, in[1:], true
		case c == '\\' && quote == '\'' && len(in) > 1 && in[1] == '\'':
			out, in = append(out, '\''), in[2:]
		case c == '\\' && quote == '"' && len(in) > 1:
			var value byte
			value, in = unescape(in[1:])
			out = append(out, value)
		default:
			out, in = append(out, c), in[1:]
		}
	}
	return nil, nil, false
}

// unescape reads what stands behind a backslash.
func unescape(in []byte) (value byte, rest []byte) {
	if in[0] == 'x' && len(in) > 2 {
		if v, err := strconv.ParseUint(string(in[1:3]), 16, 8); err == nil {
			return byte(v), in[3:]
		}
	}
	switch in[0] {
	case 'n':
		return '\n', in[1:]
	case 'r':
		return '\r', in[1:]
	case 't':
		return '\t', in[1:]
	case 'b':
		return '\b', in[1:]
	case 'a':
		return '\a', in[1:]
	}
	return in[0], in[1:]
}
