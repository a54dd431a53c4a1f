package clients

import (
	"crypto/sha1"
	"fmt"
	"testing"
	"time"

	"oversell/explore/servers"
)

// TestGlimpses compares texts that a client sends at different times.
func TestGlimpses(t *testing.T) {
	digest := func(v string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(v))) }
	unix := func(at time.Duration) int64 { return servers.Epoch.Add(at).Unix() }
	for name, c := range map[string]struct {
		says  func(at time.Duration) string
		key   bool
		same  bool // whether an hour later it counts as the same text
		vague bool
	}{
		"a number":              {func(time.Duration) string { return "1500" }, false, true, false},
		"another number":        {func(at time.Duration) string { return fmt.Sprint(1 + at/time.Hour) }, false, false, false},
		"another word":          {func(at time.Duration) string { return fmt.Sprint("v", 1+at/time.Hour) }, false, false, false},
		"seconds":               {func(at time.Duration) string { return fmt.Sprint("t", unix(at+1500*time.Millisecond)) }, false, true, false},
		"seconds in a key":      {func(at time.Duration) string { return fmt.Sprint("t", unix(at)) }, true, false, false},
		"microseconds in a key": {func(at time.Duration) string { return fmt.Sprint("t", servers.Epoch.Add(at).UnixMicro()) }, true, true, false},
		"milliseconds, later longer": {func(at time.Duration) string {
			return fmt.Sprint(servers.Epoch.Add(at+at/time.Hour*7).UnixMilli() + int64(at/time.Hour)*7)
		}, false, false, false},
		"what is left":             {func(at time.Duration) string { return fmt.Sprint((2*time.Hour - at).Milliseconds()) }, false, true, false},
		"minutes":                  {func(at time.Duration) string { return fmt.Sprint(unix(at) / 60) }, false, false, false},
		"ten for each millisecond": {func(at time.Duration) string { return fmt.Sprint(servers.Epoch.Add(at).UnixMilli()*10 + 3) }, false, true, false},
		"a hash":                   {func(at time.Duration) string { return digest(fmt.Sprint(at)) }, false, true, true},
		"a hash after a word":      {func(at time.Duration) string { return fmt.Sprint("m", 1+at/time.Hour, ":", digest(fmt.Sprint(at))) }, false, false, true},
	} {
		at := func(at time.Duration) *glimpse {
			return &glimpse{at: at, fields: []field{{c.key, c.says(at)}}}
		}
		vague := false
		how := learn(at(0), at(0), []*glimpse{at(servers.TickUnit), at(2 * servers.TickUnit)}, []*glimpse{at(time.Millisecond), at(2 * time.Millisecond)}, func() { vague = true })
		if same := at(0).same(at(time.Hour), how); same != c.same || vague != c.vague {
			t.Errorf("%s: same %t, vague %t", name, same, vague)
		}
	}
}
