package faults

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// FuzzParse checks that a sentence is either a fault or refused in one line, and that a printed fault parses as the same
// fault.
func FuzzParse(f *testing.F) {
	for _, k := range Kinds {
		f.Add(k.Syntax)
	}
	for _, s := range sentences {
		f.Add(s.text)
	}
	for _, s := range []string{
		"crash after SETNX 1%", "crash before EXPIRE in acquire nth 3", "freeze holder 150ms 5%", "late EVAL key Lock:* in release 40ms 50%",
		"clock +60s on node 2 at 600ms", "clock -2s client 1", "kill node 3 at 0s for good", "cut replies at 300ms for 200ms every 10s times 3",
		"restart node 2 empty after 6s at 600ms", "drop-reply DECR always", "pause 9999999h", "crash nth 99999999999999999999", "delay 1ns 100%",
		"cut for 2562047h", "crash client 2147483648", "crash 0.0000000000000001%", "crash \u0661%", "slow \x1b[31m", "after after", "", "\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sentence string) {
		began := time.Now()
		fault, err := Parse(sentence)
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("%d bytes took %v", len(sentence), took)
		}
		if err != nil {
			parse := (*ParseError)(nil)
			if !errors.As(err, &parse) || strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Fatalf("%q: %q", sentence, err)
			}
			return
		}
		roundTrip(t, fault)
		if fault.Amount > 10*366*24*time.Hour || fault.When.At > 24*time.Hour || fault.When.For > 24*time.Hour || fault.When.Every > 24*time.Hour || fault.Where.Client > 100_000 || fault.When.Nth > 1e9 || fault.When.Times > 1e9 {
			t.Errorf("%q is out of all limits: %+v", sentence, fault)
		}
		again, err := Parse(fault.String())
		if err != nil || again.String() != fault.String() || !reflect.DeepEqual(again.Where, fault.Where) || again.When != fault.When || again.Amount != fault.Amount || again.Kind.Name != fault.Kind.Name {
			t.Errorf("%q prints %q, which is %+v, %v", sentence, fault, again, err)
		}
	})
}

// TestNumbersOfASentenceHaveLimits checks that a sentence with a number beyond its limits is refused, with the word and
// the limits.
func TestNumbersOfASentenceHaveLimits(t *testing.T) {
	for sentence, want := range map[string]string{
		"crash nth 99999999999999999999": `"99999999999999999999" (at position 11) must be 1 to 1000000000`,
		"crash holder times 2000000000":  "must be 1 to 1000000000",
		"crash client 200000":            "must be 1 to 100000",
		"kill node 1000 at 1s for good":  "must be 1 to 192",
		"pause holder 48h":               `"48h" (at position 14) must be 0 to 24h`,
		"kill node 1 at 1000h for good":  "must be 0 to 24h",
		"pause 99999999999999h":          `"99999999999999h" (at position 7) must be 0 to 24h`,
		"clock -9999999h":                "must be -87840h to 87840h",
		"kill node 1 at 1s for 25h":      "must be 0 to 24h",
		"clock +999999h on node 1 at 1s": "must be -87840h to 87840h",
		"clock -999999h on node 1 at 1s": "must be -87840h to 87840h",
		"restart node 1 after 30h at 1s": "must be 0 to 24h",
	} {
		if _, err := Parse(sentence); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s says %v; want %q", sentence, err, want)
		}
	}
}
