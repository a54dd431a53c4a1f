// Package alike makes different tokens and names that careless code takes for the same, because it compares
// only a part of them, reads them as numbers, paths or escapes, cuts them, or rewrites them.
package alike

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// A Token is a way in which tokens are alike.
type Token struct {
	What string
	// New makes a token from 32 hexadecimal digits.
	New func(digits string) string
	// Like returns the n-th token that is like one that New made, counted from 0. All of them differ. It is
	// empty if there are no more.
	Like func(token string, n int) string
}

// Tokens are the ways in which tokens are alike.
var Tokens = []Token{
	{"differ at the end", same, func(t string, n int) string { return changed(t, len(t)-1, len(t)-2, n) }},
	{"differ at the beginning", same, func(t string, n int) string { return changed(t, 0, 1, n) }},
	{"differ in the middle", same, func(t string, n int) string { return changed(t, 16, 17, n) }},
	{"differ in capitals", func(d string) string { return d[:24] + "abcdefab" }, func(t string, n int) string {
		if n > 255 {
			return ""
		}
		b := []byte(strings.ToUpper(t))
		for i := range 8 {
			if n>>i&1 == 1 {
				b[len(b)-1-i] = t[len(t)-1-i]
			}
		}
		return string(b)
	}},
	{"begin with the other", same, func(t string, n int) string { return t + fmt.Sprintf("%x", n) }},
	{"end with the other", same, func(t string, n int) string { return fmt.Sprintf("%x", n) + t }},
	{"contain the other", same, func(t string, n int) string {
		if n >= 9*8 {
			return ""
		}
		return t[8-n%9 : 24+n/9]
	}},
	{"are the same as numbers of 53 bits", decimal, func(t string, n int) string {
		if n > 98 {
			return ""
		}
		end := int(t[30]-'0')*10 + int(t[31]-'0')
		return t[:30] + fmt.Sprintf("%02d", (end+n+1)%100)
	}},
	{"differ in zeros before them", decimal, func(t string, n int) string { return strings.Repeat("0", n+1) + t }},
	{"are the same number, with an exponent", func(d string) string { return decimal(d)[:7] + "00" }, func(t string, n int) string {
		if n == 0 {
			return t[:7] + "e2"
		}
		return t[:7] + "." + strings.Repeat("0", n) + "e2"
	}},
	{"differ in a dash", same, func(t string, n int) string {
		if n >= 31 {
			return ""
		}
		at := 1 + (7+n)%31
		return t[:at] + "-" + t[at:]
	}},
	{"are of 96 letters, and differ at the end", long, func(t string, n int) string { return changed(t, len(t)-1, len(t)-2, n) }},
	{"differ only behind separators", separated, func(t string, n int) string { return changed(t, len(t)-1, len(t)-2, n) }},
	{"differ only before separators", separated, func(t string, n int) string { return changed(t, 0, 1, n) }},
	{"are the same in another order", same, func(t string, n int) string {
		if n >= 31 {
			return ""
		}
		at := 1 + (15+n)%31
		return t[at:] + t[:at]
	}},
}

func same(digits string) string { return digits }
func long(digits string) string { return digits + digits + digits }

// separated puts separators that tokens of libraries contain, as in a UUID, host:process, or base64, between some digits.
func separated(digits string) string {
	return digits[:6] + "-" + digits[6:10] + ":" + digits[10:14] + "." + digits[14:18] + "_" + digits[18:22] + "/" + digits[22:26] + "+" + digits[26:]
}

// decimal makes decimal digits, the first of which is not 0.
func decimal(digits string) string {
	b := []byte(digits)
	for i, c := range b {
		if c >= 'a' {
			b[i] = c - 'a' + '1'
		}
	}
	if b[0] == '0' {
		b[0] = '1'
	}
	return string(b)
}

// changed returns the n-th text, from 0, that differs from t in one or both of two hexadecimal digits; "" if there are
// no more.
func changed(t string, one, other, n int) string {
	const digits = "0123456789abcdef"
	if n > 254 {
		return ""
	}
	b := []byte(t)
	for i, at := range []int{one, other} {
		b[at] = digits[strings.IndexByte(digits, b[at])^(n+1)>>(4*i)&15]
	}
	return string(b)
}

// Names are names that are like a name, and the name.
func Names(n string) []string {
	return append([]string{
		n, n + "2", n + "-", n[:len(n)-1], strings.ToUpper(n), n + " ", n + ":", n + ":1", n + "/1", n + "*", n + "?", n[:len(n)-1] + "?", n[:len(n)-1] + "*", "*" + n,
		n + "[a]", n + "\\", n + "\n", n + "\x00", n + "%", n + "é", n + strings.Repeat("x", 300), n + strings.Repeat("x", 300) + "y",
		"cart:" + n, "order:" + n, n + "{a}", n + "{b}", // the same hash tag, or another one after it
		n + "Aa", n + "BB", n + "12", n + "21", n + "1", n + "01", n + ":01", n + "/01", // the same under simple hashes, and as numbers
		" " + n, n + "\t", n + "e\u0301",
	}, Numbers(n)...)
}

// Separators are what names are put together with, which code may cut them at or replace.
const Separators = ":/.-_@#&|;,+=~$! "

// Separated are names that differ only on one side of a separator, or in the separator.
func Separated(n string) (names []string) {
	for _, sep := range Separators {
		s := string(sep)
		names = append(names, n+s+"a", n+s+"b", "x"+s+n, "y"+s+n)
	}
	return names
}

// Between are names that differ only in a separator between two parts.
func Between(n string) (names []string) {
	for _, sep := range Separators {
		names = append(names, n+string(sep)+"b")
	}
	return names
}

// Numbers returns names made from decimal digits, which are the same as numbers, or as numbers of 53 bits. They are chosen by
// n, so that other names have others.
func Numbers(n string) []string {
	h := fnv.New64a()
	h.Write([]byte(n))
	d := fmt.Sprintf("1%016d", h.Sum64()%1e16)
	short := d[:15] // a number of 53 bits
	return []string{short, "0" + short, "+" + short, "-" + short, short + ".0", short + "e0", d + "1", d + "2"}
}

// Spelled returns names that code confuses with n, or with each other, if it cleans paths, decodes
// escapes, repairs text or truncates it.
func Spelled(n string) []string {
	long := func(length int) string { return n + strings.Repeat("x", length) }
	return []string{
		n, n + "/b", n + "//b", n + "/./b", n + "/a/../b", n + "/b/", "/" + n, "./" + n, n + "/..", n + "/.",
		n + `\b`, n + `\\b`, n + "%2Fb", n + "%2fb", n + "%5Cb", n + "%252Fb", n + "%62", n + "b", n + "+b", n + " b", n + "%20b", n + "&amp;b", n + "&b", n + `\u0062`, n + `\x62`,
		n + "\xff", n + "\xfe", n + "\ufffd", n + "?b", n + "\xc3", n + "\xed\xa0\x80", n + "\u00e9", n + "\u200b", n + "\ufeff", n + "\u00a0", n + "\uff11", n + "1", n + "\r", n + "\r\n", n + "\n", n + "\v", n + "\x01", n + "\x7f",
		`"` + n + `"`, "'" + n + "'", "(" + n + ")", "[" + n + "]", "<" + n + ">",
		long(128) + "1", long(128) + "2", long(256) + "1", long(256) + "2", long(600) + "1", long(600) + "2", long(1100) + "1", long(1100) + "2", long(5000) + "1", long(5000) + "2",
	}
}

// Rewritten are names that code confuses with n, or with each other, if it trims or replaces signs, normalises Unicode, drops accents,
// or reads names as addresses or as HTML.
func Rewritten(n string) []string {
	return []string{
		n, " " + n, n + "/", n + "//", n + "b", n + "{b}", "{" + n + "}b", n + "<b>", n + "<b>b", n + "'b", n + " b", n + "  b", n + "-b", n + "_b", n + ".b", n + "..b", n + "b.", n + "b ", n + "--b",
		n + "&lt;b", n + "<b", n + "&#98;", n + "&quot;b", n + `"b`, n + "$b", n + "${b}", n + "%25", n + "%", n + "b?c=d", n + "b?", n + "b#c", n + "b;c", n + "B",
		n + "\ufb01", n + "fi", n + "\u2163", n + "IV", n + "\u00df", n + "ss", n + "\u0130", n + "i", n + "I", n + "\u0131", n + "\u00e4", n + "a\u0308", n + "a", n + "ae", n + "\u212b", n + "\u00c5", n + "A\u030a", n + "A",
		n + "\u00b2", n + "2", n + "\u2014b", n + "\u2019b", n + "\u200db", n + "\u3000b", n + "\u0441", n + "c", // signs that look like others, and such as take no room
	}
}
