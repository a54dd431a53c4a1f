package servers

import (
	"strconv"
	"strings"

	"oversell/internal/names"
)

// Replies shows the answers to a call.
func Replies(c Call, reply string) string {
	var parts []string
	for rest := reply; rest != ""; {
		var part string
		part, rest = value(rest)
		parts = append(parts, part)
	}
	if c.Tx && len(parts) > 0 {
		return names.Readable(parts[len(parts)-1]) // what EXEC answered
	}
	return names.Readable(strings.Join(parts, "; "))
}

// value shows the first value of a reply in RESP, and returns the rest.
func value(reply string) (text, rest string) {
	line, rest, _ := strings.Cut(reply, "\r\n")
	if line == "" {
		return "", ""
	}
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		if n < 0 {
			return "(nil)", rest
		}
		n = min(n, len(rest))
		return Quoted(rest[:n]), strings.TrimPrefix(rest[n:], "\r\n")
	case '*':
		if n < 0 {
			return "(nil)", rest
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i], rest = value(rest)
		}
		return "[" + strings.Join(parts, " ") + "]", rest
	case '-':
		return "error: " + line[1:], rest
	}
	return line[1:], rest
}

// Quoted returns an argument as redis-cli shows it, quoted if necessary.
func Quoted(arg string) string {
	if arg == "" || strings.ContainsAny(arg, " \t\r\n\"\\") {
		return strconv.Quote(arg)
	}
	return arg
}
