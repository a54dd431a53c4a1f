package exactjson

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzExact checks that a text that is accepted is decoded as package json decodes it, if all names are exact.
func FuzzExact(f *testing.F) {
	for _, text := range []string{`{"a":[1.0,{"b":null}," x"],"\u0063":{}}`, ` [ ] `, `"\ud83d\ude00"`, `-0`, `{"a":1,"a":2}`, `[[[[{}]]]]`, "{\"a\":\"\xff\"}", `1e9999999999`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want any
		err, wrong := Unmarshal([]byte(text), &got), json.Unmarshal([]byte(text), &want)
		if wrong != nil && err == nil {
			t.Fatalf("%q is accepted: %v", text, wrong)
		}
		if err != nil {
			return
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !strings.Contains(text, "-0") && string(a) != string(b) { // -0 is 0
			t.Fatalf("%q is read as %s, and not as %s", text, a, b)
		}
	})
}
