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

// TestInt64 checks which literals are whole numbers of 64 bits.
func TestInt64(t *testing.T) {
	for literal, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0": 0, "0e9": 0, "0.00e-400": 0, "0e99999999999999999999": 0,
		"1e1": 10, "10.00": 10, "1E+2": 100, "70e-1": 7, "-12.50e1": -125, "0.001e3": 1,
		"9007199254740993": 9007199254740993, "9007199254740993.0": 9007199254740993, "9.007199254740993e15": 9007199254740993,
		"9223372036854775807": 9223372036854775807, "-9223372036854775808.0": -9223372036854775808,
	} {
		if got, ok := Int64(json.Number(literal)); !ok || got != want {
			t.Errorf("%s: %d, %t; want %d", literal, got, ok, want)
		}
	}
	for _, literal := range []string{
		"0.5", "1.0000000000000000001", "1e-1", "1e400", "1e99999999999999999999", "9223372036854775808", "-9223372036854775809", "9.3e18",
		"0.1234567890e-9223372036854775808", "1234567890e-9223372036854775808", "1e9223372036854775807", "12.34567890e9223372036854775807",
	} {
		if got, ok := Int64(json.Number(literal)); ok {
			t.Errorf("%s: %d, and it is no whole number of 64 bits", literal, got)
		}
		var v any
		if err := Unmarshal([]byte(literal), &v); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Errorf("%s: %v", literal, err)
		}
	}
}

// TestEqual checks that numbers are compared without rounding.
func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1000000", "1e6", true}, {"1.50", "15E-1", true}, {"0", "-0.0e7", true}, {"1e400", "10e399", true},
		{"9007199254740993", "9007199254740992.0", false}, {"0.1", "0.1000000000000000000001", false},
		{"1", "-1", false}, {"1e400", "1e401", false}, {"1e99999999999", "1e99999999999", true}, {"1e99999999999", "1e99999999998", false},
	} {
		if got := Equal(json.Number(c.a), json.Number(c.b)); got != c.want {
			t.Errorf("%s and %s: %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

// TestInWords checks that an error says what is wrong with the text, and what would be right.
func TestInWords(t *testing.T) {
	type inner struct {
		High float64 `json:"high"`
		N    int32   `json:"n"`
	}
	type outer struct {
		List []inner `json:"list"`
		Name string  `json:"name"`
		Is   bool    `json:"is"`
	}
	for text, want := range map[string]string{
		"":                            "it is empty",
		" \n":                         "it is empty",
		"[]":                          "it is a JSON array, it must be an object",
		`{"list":[{"high":"1"}]}`:     `"list.high" is a JSON string, it must be a number`,
		`{"list":[{"high":1e999}]}`:   `"list.high" is a JSON number 1e999, it must be a number`,
		`{"list":[{"n":3000000000}]}`: `"list.n" is a JSON number 3000000000, it must be a whole number of 32 bits`,
		`{"list":7}`:                  `"list" is a JSON number, it must be an array`,
		`{"name":7}`:                  `"name" is a JSON number, it must be a string`,
		`{"is":7}`:                    `"is" is a JSON number, it must be true or false`,
		"{\n\"name\": x}":             "line 2: invalid character 'x' looking for beginning of value",
		`{"name":`:                    "line 1: it ends within the JSON text",
	} {
		err := Unmarshal([]byte(text), new(outer))
		if err == nil {
			t.Fatalf("%s: no error", text)
		}
		if got := InWords([]byte(text), err).Error(); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}
