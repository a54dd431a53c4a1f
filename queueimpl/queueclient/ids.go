package queueclient

import (
	"context"
	"errors"
	"strings"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// StrangeIDs are ids that careless code cuts, splits, quotes, matches, or reads as numbers.
var StrangeIDs = append(separated(), []string{
	"1", "01", "1.0", "1e0", "-1", "0x1", "12345678901234567890", "9007199254740993", "9007199254740992", "nan", "inf", "nil", "null", "true",
	"a:b", "a:b:c", ":", "a,b", "a|b", "a/b", "a b", " a", "a ", "a\tb", "a\nb", "a\r\nb", "a\x00b", "\x00", "\x1f", "a\x01b",
	`a"b`, `"a"`, `a\b`, `a\nb`, "'a'", "{a}", "[1]", `{"id":"a"}`, "\x80", "a\xff", "a\xfe", "a\xc3(", "\xf0\x9f", "\xed\xa0\x80", "\xef\xbf\xbd", "a*", "a?", "*", "%s", "%d", "$1", "a=b", "a&b", "<a>", "é", "日本", "A", "a", strings.Repeat("x", 5000),
}...)

// separated returns ids with each character that an implementation might use to separate an id from other data. The first
// one has all of these characters: a test that has time for few ids tries that one.
func separated() []string {
	var each []string
	var all strings.Builder
	for sign := byte(1); sign < 0x80; sign++ {
		letter := sign|0x20 >= 'a' && sign|0x20 <= 'z' || sign >= '0' && sign <= '9'
		if !letter {
			each = append(each, "x"+string(sign)+"y", "x"+strings.Repeat(string(sign), 2)+"1")
			all.WriteString("x" + string(sign))
		}
	}
	return append([]string{all.String() + "y"}, each...)
}

// Accepted are the ids that a queue takes: it may refuse an id as a bad call.
func (b Bench) Accepted(ctx context.Context, ids []string) (accepted []string, _ error) {
	c := b.Client()
	c.Name += "-taken"
	for _, id := range ids {
		_, err := c.Enqueue(ctx, c.Name, id)
		if errors.Is(err, queueimpl.ErrBadCall) {
			continue
		}
		if err != nil {
			return nil, suitetest.Broken(variant.NoLostTask, "enqueue of %q answered %q; want success, or %q if the queue does not take such ids", id, err, queueimpl.ErrBadCall)
		}
		accepted = append(accepted, id)
	}
	return accepted, nil
}
