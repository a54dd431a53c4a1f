package redismodel

import (
	"math"
	"strconv"
	"strings"

	"oversell/internal/redismodel/lua"
)

// parseInt reads an integer as Redis does: no plus, no leading zeros, no spaces.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	// Only the shortest form is accepted.
	if s[0] == '+' || s[0] == '0' && len(s) > 1 || s[0] == '-' && (s[1] == '0') {
		return 0, false
	}
	return n, true
}

// int64Arg reads an integer or replies that it is not one.
func (x *exec) int64Arg(s string) (int64, bool) {
	n, ok := parseInt(s)
	if !ok {
		x.notInteger()
	}
	return n, ok
}

// parseFloat reads a score as Redis does.
func parseFloat(s string) (float64, bool) {
	if s == "" || lua.IsSpace(s[0]) {
		return 0, false
	}
	f, rest, ok := lua.Strtod(s)
	if !ok || rest != "" || math.IsNaN(f) {
		return 0, false
	}
	// Numbers out of range are refused; infinity itself is not.
	if math.IsInf(f, 0) && !strings.Contains(strings.ToLower(s), "inf") || f == 0 && strings.ContainsAny(mantissa(s), "123456789") {
		return 0, false
	}
	return f, true
}

// mantissa returns the digits of a number without its exponent. For a hexadecimal number it returns
// "1" if one of them is not zero, otherwise "0".
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

// formatDouble formats a score as Redis 7.0 replies it.
func formatDouble(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 && (f != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(int64(f), 10)
	}
	return lua.FormatG(f, 17)
}
