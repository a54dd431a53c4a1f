package locktest

import (
	"strings"
	"testing"

	"oversell/internal/mark"
	"oversell/lockimpl"
	"oversell/variant"
)

// ruleOf returns the rule with a name.
func ruleOf(t *testing.T, name string) rule {
	t.Helper()
	for _, u := range rules {
		if u.name == name {
			return u
		}
	}
	t.Fatalf("no rule is named %q", name)
	return rule{}
}

// TestPanic checks that a lock that panics fails the rule, with its call and where it panicked, and not the test binary.
func TestPanic(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	v := sound
	v.New = func(env variant.Env) lockimpl.Locker {
		token := env.Token
		env.Token = func() string {
			text := token()
			if len(text) != 32 {
				panic("not 32 digits: " + text)
			}
			return text
		}
		return sound.New(env)
	}
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	err = r.try(t.Context(), ruleOf(t, "tokens that resemble each other"), mark.New()+"panic")
	for _, want := range []string{"tokens that ", "Acquire panicked: not 32 digits: ", "panics_test.go"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("the rule says %v; want %q in it", err, want)
		}
	}
}
