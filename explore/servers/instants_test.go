package servers

import (
	"strconv"
	"testing"
	"time"
)

func TestInstantsInText(t *testing.T) {
	epoch := time.Duration(Epoch.UnixNano())
	begin := Epoch.Unix()
	number := func(seconds int64, digits string) string { return strconv.FormatInt(begin+seconds, 10) + digits }
	for text, want := range map[string][]time.Duration{
		"a=" + number(1, ""):                               {time.Second},
		"{x:" + number(0, "250") + "}":                     {250 * time.Millisecond},
		number(0, "000007"):                                {7 * time.Microsecond},
		number(0, "000008000") + " and 12":                 {8 * time.Microsecond},
		number(-1, "") + " " + number(4201, "") + " 18619": nil, // before, too late, too short
		"token1.0 9007190000000001":                        nil,
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
