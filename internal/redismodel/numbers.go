package redismodel

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// parseInt reads an integer as Redis does: no plus, no leading zeros, no spaces.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	// Only the shortest writing counts.
	if s[0] == '+' || s[0] == '0' && len(s) > 1 || s[0] == '-' && (s[1] == '0') {
		return 0, false
	}
	return n, true
}

// int64Arg reads an integer or replies that it is none.
func (x *exec) int64Arg(s string) (int64, bool) {
	n, ok := parseInt(s)
	if !ok {
		x.notInteger()
	}
	return n, ok
}

// isSpace is C's isspace.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// strtod is C's: it reads as much as is a number and returns the rest. n is 0 if
// there is none. The writings of infinity and NaN count.
func strtod(s string) (f float64, rest string, ok bool) {
	t := strings.TrimLeft(s, " \t\n\v\f\r")
	n := numberLen(t)
	if n == 0 {
		return 0, s, false
	}
	text := t[:n]
	if low := strings.ToLower(text); strings.Contains(low, "0x") && !strings.Contains(low, "p") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, s, false
	}
	return f, t[n:], true
}

// numberLen is how many bytes at the beginning of s are a number.
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

// parseFloat reads a score as Redis does.
func parseFloat(s string) (float64, bool) {
	if s == "" || isSpace(s[0]) {
		return 0, false
	}
	f, rest, ok := strtod(s)
	if !ok || rest != "" || math.IsNaN(f) {
		return 0, false
	}
	// Too large or too small a number is refused; infinity itself is not.
	if math.IsInf(f, 0) && !strings.Contains(strings.ToLower(s), "inf") || f == 0 && strings.ContainsAny(mantissa(s), "123456789") {
		return 0, false
	}
	return f, true
}

// mantissa is a number's text without its exponent.
func mantissa(s string) string {
	low := strings.ToLower(s)
	if strings.Contains(low, "0x") {
		low, _, _ = strings.Cut(low, "p")
		if _, digits, _ := strings.Cut(low, "0x"); strings.ContainsAny(digits, "123456789abcdef") {
			return "1"
		}
		return "0"
	}
	low, _, _ = strings.Cut(low, "e")
	return low
}

// formatG is C's %.<precision>g.
func formatG(f float64, precision int) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', precision, 64)
}

// formatDouble is how Redis 7.0 replies a score.
func formatDouble(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 && (f != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(int64(f), 10)
	}
	return formatG(f, 17)
}
