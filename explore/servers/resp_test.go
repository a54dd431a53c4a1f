package servers

import (
	"strings"
	"testing"
)

func TestRepliesForPeople(t *testing.T) {
	for _, c := range []struct {
		reply, want string
		tx          bool
	}{
		{"+OK\r\n", "OK", false},
		{":-1\r\n", "-1", false},
		{"$-1\r\n", "(nil)", false},
		{"*-1\r\n", "(nil)", false},
		{"$0\r\n\r\n", `""`, false},
		{"$5\r\nab\r\nc\r\n", `"ab\r\nc"`, false},
		{"-ERR no\r\n", "error: ERR no", false},
		{"*0\r\n", "[]", false},
		{"*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+x\r\n", "[a [1 (nil)] x]", false},
		{":1\r\n+OK\r\n", "1; OK", false},
		{"+OK\r\n+QUEUED\r\n*1\r\n:4\r\n", "[4]", true},
		{"+OK\r\n+QUEUED\r\n*-1\r\n", "(nil)", true},
		{"", "", false},
		{"$16\r\n9007190003000012\r\n", "#3.12", false},
	} {
		if got := Replies(Call{Tx: c.tx}, c.reply); got != c.want {
			t.Errorf("%q is %q; want %q", c.reply, got, c.want)
		}
	}
	if _, rest := value("*2\r\n:1\r\n:2\r\n:3\r\n"); rest != ":3\r\n" {
		t.Errorf("left: %q", rest)
	}
	// Replies must not panic on a reply that was cut off.
	for whole := "*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n"; whole != ""; whole = whole[:len(whole)-1] {
		_ = Replies(Call{}, whole)
	}
	if got, want := Quoted(`a\x`), `"a\\x"`; got != want {
		t.Errorf("a backslash: %s; want %s, which differs from that of an escaped byte", got, want)
	}
	if strings.Contains(Quoted("a b"), "a b") && Quoted("a b") != `"a b"` {
		t.Error(Quoted("a b"))
	}
}
