package servers

import (
	"testing"
	"time"
)

func TestInstantsInText(t *testing.T) {
	epoch := time.Duration(Epoch.UnixNano())
	for text, want := range map[string][]time.Duration{
		"a=1767225601":                {time.Second},
		"{x:1767225600250}":           {250 * time.Millisecond},
		"1767225600000007":            {7 * time.Microsecond},
		"1767225600000008000 and 12":  {8 * time.Microsecond},
		"1767225599 1767229801 17672": nil, // before, too late, too short
		"token1.0 9007190000000001":   nil,
	} {
		var got []time.Duration
		for _, i := range instants(text, epoch) {
			got = append(got, i.At)
		}
		if len(got) != len(want) || len(got) == 1 && got[0] != want[0] {
			t.Errorf("%q: %v; want %v", text, got, want)
		}
	}
}
