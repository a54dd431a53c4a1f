package edn

import (
	"strings"
	"testing"
)

func readAll(text string) ([]Value, error) {
	r := NewReader(text)
	var all []Value
	for {
		v, more, err := r.Next()
		if err != nil || !more {
			return all, err
		}
		all = append(all, v)
	}
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{:process 0, :type :ok}`:                      `{:process 0 :type :ok}`,
		`[1 -2 +3 007 5N 1/2 0x1f 2.5M]`:               `[1 -2 3 7 5 1/2 31 2.5M]`,
		`#{3 1 2}`:                                     `#{1 2 3}`,
		`{:b 1 :a 2}`:                                  `{:a 2 :b 1}`,
		`(true false nil foo/bar)`:                     `(true false nil foo/bar)`,
		`#jepsen.history.Op{:index 0}`:                 `#jepsen.history.Op {:index 0}`,
		`#object[java.lang.Object 0x1f "a@1"]`:         `#object [java.lang.Object 31 "a@1"]`,
		`#:jepsen{:f :read}`:                           `{:jepsen/f :read}`,
		"; a comment\n[1 ; another\n 2]":               `[1 2]`,
		`[1 #_2 #_{:a 1} 3]`:                           `[1 3]`,
		`"a\nb\"\\\u00e9\q"`:                           `"a\nb\"\\é\\q"`,
		`[\a \newline \( #"x\d" ##NaN #'a/b ^:m v @c]`: `[\a \newline \( #"x\\d" ##NaN #'a/b v c]`,
		"\ufeff[]":                                     `[]`,
		`#:a{:b 1 :_/c 2 :d/e 3 "f" 4}`:                `{"f" 4 :a/b 1 :c 2 :d/e 3}`,
		`#a #b 1`:                                      `#a #b 1`,
		`"\ud83d\ude00" "\ud800" "\ud800\ud801"`:       "\"\U0001f600\" \"\\\\ud800\" \"\\\\ud800\\\\ud801\"",
		`-0`:                                           `0`,
		"":                                             ``,
	} {
		all, err := readAll(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var said []string
		for _, v := range all {
			said = append(said, v.String())
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
}

func TestWrong(t *testing.T) {
	for text, want := range map[string]string{
		"{:a 1\n :b}":             `2:2: the key :b of a map has no value`,
		"{:a 1,\n :a 2}":          `2:2: the key :a of a map is there twice`,
		"#{1 [2] 1}":              `1:9: the element 1 of a set is there twice`,
		"#:a{:b 1 :a/b 2}":        `1:10: the key :a/b of a map is there twice`,
		"[1 2":                    `1:1: [ is not closed: ] is missing at the end of the file`,
		"[1 }":                    `1:4: "}" closes nothing`,
		"é \"abc":                 `1:3: a string is not closed: " is missing`,
		"#":                       `1:1: the file ends behind #`,
		"#tag":                    `1:5: the file ends; want the value of the tag tag`,
		"[#_]":                    `1:4: "]" closes nothing`,
		":":                       `1:1: a keyword has no name: it is written :name`,
		"#)":                      `1:1: # is followed by ")": want a tag, {, or _`,
		`\`:                       `1:1: the file ends behind \`,
		strings.Repeat("#_", 1e6): `1:403: values are nested more than 200 deep`,
		strings.Repeat("[", 1000): `1:202: values are nested more than 200 deep`,
	} {
		if _, err := readAll(text); err == nil || err.Error() != want {
			t.Errorf("%.20s: %v, want %s", text, err, want)
		}
	}
}

// TestCanon checks that values have the same canonical form if and only if Clojure considers them equal.
func TestCanon(t *testing.T) {
	for text, equal := range map[string]bool{
		`(1 2) [1 2]`: true, `[(1)] ([1])`: true, `[1 2] [2 1]`: false, `#{1 2} [1 2]`: false, `#{(1) 2} #{2 [1]}`: true,
		`16 0x10`: true, `5 5N`: true, `17 0x10`: false, `8 010`: true, `5 2r101`: true, `-16 -0x10`: true, `1 "1"`: false, `1 1.0`: false,
		`1.5 1.50`: true, `1.5 15e-1`: true, `1.5 1.5M`: false, `1.5M 1.50M`: true, `2/4 1/2`: true, `1/2 0.5`: false,
		`#:a{:b 1} {:a/b 1}`: true, `#:a{:b 1} #:c{:b 1}`: false, `#:a{:b 1} {:b 1}`: false, `{:a (1)} {:a [1]}`: true,
		`#inst"2020-01-01T00:00:00.000-00:00" #inst"2020-01-01"`: true, `#inst"2020-01-01T01:00:00+01:00" #inst"2020-01-01T00:00:00Z"`: true,
		`#inst"2020-01-01T00:00:00.5" #inst"2020-01-01T00:00:00.500001"`: true, `#inst"2020-01-01T00:00:00.5" #inst"2020-01-01T00:00:00.501"`: false,
		`#inst"2020" #inst"2020-01-01T00"`: true, `#inst"2020-01" #inst"2020-02"`: false, `#inst"x" #inst"x"`: true, `#inst"2020" "2020"`: false, `[#inst"2020"] (#inst"2020-01")`: true,
		`#uuid"F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6" #uuid"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`: true, `#uuid"00000001-0-0-0-0" #uuid"1-0-0-0-0"`: true, `#uuid"1-0-0-0-0" #uuid"0-1-0-0-0"`: false,
		`#x"A" #x"a"`: false, `##NaN ##NaN`: false, `[##NaN] [##NaN]`: false, `##Inf ##Inf`: true, `##Inf ##-Inf`: false, `#"a" #"a"`: false, `0.0 -0.0`: true,
		`\a \u0061`: true, `\newline \u000a`: true, `\o141 \a`: true, `\o \u006f`: true, `\u \u0075`: true, `\a \b`: false, `\a "a"`: false,
		`#a #b 1 #a #c 1`: false, `#a (1) #a [1]`: true, `:a "a"`: false, `nil ""`: false, `nil false`: false,
	} {
		all, err := readAll(text)
		if err != nil || len(all) != 2 {
			t.Errorf("%s: %v %v", text, all, err)
			continue
		}
		if a, b := all[0].Canon(), all[1].Canon(); (a == b) != equal {
			t.Errorf("%s and %s are %s and %s; want equal: %v", all[0], all[1], a, b, equal)
		}
	}
}

func TestGet(t *testing.T) {
	v, _, err := NewReader(`{:x/type 1, :type 2, "f" 3, :op/value 4}`).Next()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"type": "2", "f": "3", "value": "4"} {
		if got, found := v.Get(name); !found || got.String() != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	if _, found := v.Get("process"); found {
		t.Error("there is no process")
	}
}

// FuzzRead checks that no text makes the reader panic or hang, and that a value that was written reads back the same.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{:process 0, :value [1 #{2}]}`, `#a #b "c\u0041"`, `#_#_1 2 3`, `[\( #"(" ##Inf ^{:a 1} x]`, "(((", "\\\u00e9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readAll(text)
		if err != nil {
			return
		}
		for _, v := range all {
			again, err := readAll(v.String())
			if err != nil || len(again) != 1 || again[0].String() != v.String() {
				t.Fatalf("%q of %q reads back as %v, %v", v, text, again, err)
			}
		}
	})
}
