package replay

import (
	"strings"
	"testing"
	"time"

	"oversell/explore/servers"
)

// later is the start of the schedule by a clock that is a billion seconds ahead of it.
var later = servers.Epoch.Add(1e9 * time.Second)

// TestTimesMove checks that times are moved between the two clocks, both ways, and that nothing else is.
func TestTimesMove(t *testing.T) {
	for _, test := range []struct{ schedule, real string }{
		{"1704063600", "2704063600"},
		{"(1704063601.25", "(2704063601.25"},
		{"until=1704063600123;", "until=2704063600123;"},
		{"1704063600123-7", "2704063600123-7"},
		{"1704063600000456 and 1704063599", "2704063600000456 and 2704063599"},
		{"1704063600000000789", "2704063600000000789"},
		{"1.7040636000004560e+15", "2.704063600000456e+15"},
		{"1704063600-7", "1704063600-7"}, // no id of an entry
		{"1704059999 1706655601", "1704059999 1706655601"},
		{"17040636001", "17040636001"},
		{"a1b22c-333 7.5e+3", "a1b22c-333 7.5e+3"},
	} {
		if got := newTimes().toServers(test.schedule, later); got != test.real {
			t.Errorf("%q of a schedule became %q; want %q", test.schedule, got, test.real)
		}
		if strings.Contains(test.schedule, "e+15") {
			continue // it is written in another way
		}
		if got, want := newTimes().toSchedule(bulk(test.real), later), bulk(test.schedule); got != want {
			t.Errorf("%q of a server became %q; want %q", test.real, got, want)
		}
	}
}

func bulk(text string) string {
	return "$" + string(rune('0'+len(text)/10)) + string(rune('0'+len(text)%10)) + "\r\n" + text + "\r\n"
}

// TestAsksTime checks that only a call of TIME alone gets the answer of the schedule whatever the server says.
func TestAsksTime(t *testing.T) {
	time, get := []string{"time"}, []string{"get", "time"}
	for _, test := range []struct {
		commands [][]string
		want     bool
	}{{[][]string{time}, true}, {[][]string{get}, false}, {[][]string{time, get}, false}, {nil, false}} {
		if got := asksTime(servers.Call{Commands: test.commands}); got != test.want {
			t.Errorf("%q: %v; want %v", test.commands, got, test.want)
		}
	}
}

// TestTimesAreRemembered checks that a time that a server has told is told to it as it was, although the server was late.
func TestTimesAreRemembered(t *testing.T) {
	all := newTimes()
	equal := func(got, want string) bool { return got == want }
	if !all.same("*1\r\n$15\r\n2704063600250-0\r\n", "*1\r\n$15\r\n1704063600000-1\r\n", later, equal) {
		t.Fatal("an id that is 250 ms late is another one")
	}
	if got, want := all.toServers("1704063600000-1", later), "2704063600250-0"; got != want {
		t.Errorf("the id became %s; want %s", got, want)
	}
	if got, want := all.toSchedule("+2704063600250-0\r\n", later), "+1704063600000-1\r\n"; got != want {
		t.Errorf("the server's id became %q; want %q", got, want)
	}
	for _, got := range []string{"+2704063603000-0\r\n", "+2704063600000\r\n+1\r\n", "+2704063600\r\n", "+OK\r\n"} {
		if all.same(got, "+1704063600000-1\r\n", later, equal) {
			t.Errorf("%q is the same as the id", got)
		}
	}
}
