package realtime

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestIn(t *testing.T) {
	now := time.Now()
	for text, want := range map[string]bool{
		"":                                     false,
		"order:17":                             false,
		fmt.Sprint(now.Unix()):                 true,
		fmt.Sprintf("a:%d:b", now.UnixMilli()): true,
		fmt.Sprintf("%f", float64(now.Add(time.Hour).UnixMicro())/1e6): true,
		fmt.Sprint(now.Add(time.Hour).UnixMicro()):                     true,
		fmt.Sprint(now.UnixNano()):                                     true,
		fmt.Sprint(now.Add(Ahead).Unix()):                              false,
		fmt.Sprint(now.Add(Ahead).UnixMilli()):                         false,
		fmt.Sprintf("%012d", now.UnixMilli()/10):                       false, // in none of the units
		"9999999999999999999999":                                       false,
		fmt.Sprintf("a%df", now.Unix()):                                false, // in a digest, or in a random text
		fmt.Sprintf("t%d", now.Unix()):                                 true,
		fmt.Sprintf("%dms", now.UnixMilli()):                           true,
		fmt.Sprintf("a:%d_f", now.Unix()):                              true,
	} {
		if In(text) != want {
			t.Errorf("In(%q) is %t; want %t", text, !want, want)
		}
	}
	if !Of(now.Add(time.Hour)) || Of(now.Add(Ahead)) || !Of(time.Time{}) {
		t.Error("Of takes one clock for the other")
	}
}

// TestConfirmed checks that an error counts unless the code sends times of the real clock each time: a text that looks like one
// by chance comes once, and a name that looks like one does not change.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	errFound := errors.New("found")
	name := fmt.Sprint(time.Now().Unix())
	for _, tt := range []struct {
		name   string
		sends  func(try int) string
		err    error
		tries  int
		sent   bool
		passes int // the try that finds nothing
	}{
		{"nothing", func(int) string { return "token" }, errFound, 1, false, 0},
		{"a clock, and nothing is found", func(int) string { return fmt.Sprint(time.Now().Unix()) }, nil, 1, false, 1},
		{"a clock", func(int) string { return fmt.Sprint(time.Now().Unix()) }, errFound, 2, true, 0},
		{"a clock in milliseconds", func(int) string { return fmt.Sprint("at:", time.Now().UnixMilli()) }, errFound, 2, true, 0},
		{"a random text", func(try int) string {
			if try == 1 {
				return name
			}
			return "token"
		}, errFound, 2, false, 0},
		{"a name", func(int) string { return name }, errFound, 2, false, 0},
		{"a clock, and nothing is found again", func(int) string { return fmt.Sprint(time.Now().Unix()) }, nil, 2, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			at, err := Confirmed(func(s *Seen) error {
				tries++
				s.Look(tt.sends(tries))
				if tries == tt.passes {
					return nil
				}
				return errFound
			})
			if err != tt.err || tries != tt.tries || (at != "") != tt.sent {
				t.Errorf("%v after %d tries, with the time %q; want %v after %d, and a time: %t", err, tries, at, tt.err, tt.tries, tt.sent)
			}
		})
	}
}
