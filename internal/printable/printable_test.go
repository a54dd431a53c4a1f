package printable

import (
	"html/template"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"Lock:order", "Lock:order"},
		{"超卖 — 1,5 ‰", "超卖 — 1,5 ‰"},
		{"no\u00a0break\u3000space", "no\u00a0break\u3000space"},
		{"\x1b[31mred\x1b]0;title\x07", `\x1b[31mred\x1b]0;title\a`},
		{"\u009b31m", `\u009b31m`},
		{"two\nlines\r\t", `two\nlines\r\t`},
		{"a\u202eb\u2066c\u200bd\ufeff\u2028", `a\u202eb\u2066c\u200bd\ufeff\u2028`},
		{"bad \xff\xc0 utf8", `bad \xff\xc0 utf8`},
		{"\U000e0041", `\U000e0041`},
		{"::error file=x::gone", `\x3a:error file=x::gone`},
		{"  ::set-output name=a::b", `  \x3a:set-output name=a::b`},
		{"wrapped here ::warning::x", `wrapped here \x3a:warning::x`},
		{"x ##[error]y", `x \x23#[error]y`},
		{"dial [::1]:6379: refused; std::vector ::1", "dial [::1]:6379: refused; std::vector ::1"},
		{`C:\new`, `C:\new`},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("Text(%q) is %q, not %q", c.in, got, c.want)
		}
		if got := Text(Text(c.in)); got != Text(c.in) {
			t.Errorf("Text(%q) is not stable: %q", c.in, got)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	if got := Text("key " + long + " was held"); len(got) > 400 || !strings.HasSuffix(got, "…(1048576 bytes) was held") {
		t.Errorf("a key of 1 MB is shown in %d bytes: …%q", len(got), got[max(0, len(got)-40):])
	}
	if got := Text(strings.Repeat("a word ", 100_000)); len(got) > 2*longestText {
		t.Errorf("a text of 700 kB is shown in %d bytes", len(got))
	}
	if s := strings.Repeat("a sentence that is long, and not too long. ", 20); Text(s) != s {
		t.Errorf("%d bytes of prose became %q", len(s), Text(s))
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{"8": "8", "": `""`, "1 2": `"1 2"`, "a\x1b": `"a\x1b"`, "٣": "٣"} {
		if got := Word(in); got != want {
			t.Errorf("Word(%q) is %s, not %s", in, got, want)
		}
	}
}

type handle struct{ text string }

func (h handle) Rewrite(f func(string) string) any { return handle{f(h.text)} }

type named string

// TestOfReachesEveryText checks that Of reaches every text in a document, wherever it is.
func TestOfReachesEveryText(t *testing.T) {
	type inner struct {
		S string
		H handle
	}
	type doc struct {
		A     string
		N     named
		L     []string
		M     map[string]inner
		P     *inner
		I     any
		F     [1]string
		At    time.Time
		HTML  template.HTML
		Bytes []byte
		own   string
	}
	bad, good := "x\x1b", `x\x1b`
	fill := func(s string, markup template.HTML, own string) doc {
		return doc{
			A: s, N: named(s), L: []string{s}, M: map[string]inner{s: {s, handle{s}}}, P: &inner{S: s, H: handle{s}},
			I: s, F: [1]string{s}, At: time.Unix(1, 0), HTML: markup, Bytes: []byte{1}, own: own,
		}
	}
	in := fill(bad, "<b>\n</b>", bad)
	if got, want := Of(in), fill(good, "<b>\n</b>", bad); !reflect.DeepEqual(got, want) {
		t.Errorf("Of(…) is\n%#v, not\n%#v", got, want)
	}
	if !reflect.DeepEqual(in, fill(bad, "<b>\n</b>", bad)) {
		t.Error("the document itself was changed")
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J::error::\u202e\n##[group]\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if strings.ContainsFunc(got, func(r rune) bool { return !Prints(r) }) || strings.HasPrefix(strings.TrimSpace(got), "::error") {
			t.Errorf("Text(%q) is %q", s, got)
		}
		if again := Text(got); again != got && len(got) < longestWord {
			t.Errorf("Text(%q) is %q, and of that %q", s, got, again)
		}
	})
}
