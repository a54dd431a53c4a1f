package lua

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// This file has the functions that Lua and Redis use from the C library.

// IsSpace is C's isspace.
func IsSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// Strtod is C's strtod: it reads the longest number and returns the rest. ok is false if there is none. Infinity and
// NaN are accepted.
func Strtod(s string) (f float64, rest string, ok bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	n := numberLen(t)
	if n == 0 {
		return 0, s, false
	}
	text := t[:n]
	if strings.EqualFold(strings.TrimLeft(text, "+-"), "nan") { // Go reads none with a sign
		return math.NaN(), t[n:], true
	}
	if low := strings.ToLower(text); strings.Contains(low, "0x") && !strings.Contains(low, "p") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, s, false
	}
	return f, t[n:], true
}

// numberLen returns how many bytes at the beginning of s are a number.
func numberLen(s string) int {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	for _, word := range []string{"infinity", "inf", "nan"} {
		if len(s)-i >= len(word) && strings.EqualFold(s[i:i+len(word)], word) {
			return i + len(word)
		}
	}
	digit, exponent := isDigit, byte('e')
	if hex := i + 2; hex < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' && (isHex(s[hex]) || s[hex] == '.' && hex+1 < len(s) && isHex(s[hex+1])) {
		i, digit, exponent = hex, isHex, 'p'
	}
	digits := 0
	for ; i < len(s) && digit(s[i]); i++ {
		digits++
	}
	if i < len(s) && s[i] == '.' {
		i++
		for ; i < len(s) && digit(s[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && s[i]|0x20 == exponent {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for i = j; i < len(s) && isDigit(s[i]); i++ {
			}
		}
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// FormatG is C's %.<precision>g.
func FormatG(f float64, precision int) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', precision, 64)
}

// CString returns s as a C function sees it: up to the first zero byte.
func CString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// OneLine returns s with spaces in place of CR and LF, as Redis sends it in a status or error
// reply.
func OneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
}
