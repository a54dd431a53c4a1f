package yamlfile

import (
	"strings"
	"testing"
)

// TestWrongKinds checks that a value of the wrong kind is reported in the terms of YAML, with its place.
func TestWrongKinds(t *testing.T) {
	type inner struct {
		Depth int `yaml:"depth"`
	}
	type file struct {
		Count  int               `yaml:"count"`
		Sure   bool              `yaml:"sure"`
		Share  float64           `yaml:"share"`
		Words  []string          `yaml:"words"`
		Env    map[string]string `yaml:"env"`
		Inner  *inner            `yaml:"inner"`
		Inners []inner           `yaml:"inners"`
	}
	for text, want := range map[string]string{
		"count: many":                "1:8: a text stands where a whole number belongs",
		"count: 1.5":                 "1:8: a number stands where a whole number belongs",
		"inner: {depth: 1.5}":        "1:16: a number stands where a whole number belongs",
		"inners: [{depth: 0.5}]":     "1:18: a number stands where a whole number belongs",
		"count: 9999999999999999999": "1:8: the number 9999999999999999999 is too large or too small here",
		"sure: maybe":                "1:7: a text stands where true or false belongs",
		"words: one":                 "1:8: a text stands where a list ([a, b]) belongs",
		"env: [a]":                   "1:6: a list ([a, b]) stands where a mapping (key: value) belongs",
		"inner: 5":                   "1:8: a whole number stands where a mapping (key: value) belongs",
		"coumt: 5":                   `1:1: the key "coumt" is not known here: did you mean count?`,
		"count: 5\nshare: 0.5":       "",
	} {
		err := Decode([]byte(text), &file{}, "file", "docs")
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || strings.Contains(got, "unmarshal") {
			t.Errorf("%q: %s; want %s", text, got, want)
		}
	}
}
