package limits

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// tables holds all tables of limits.
var tables = map[string]Table{"run": Run, "compare": Compare, "explore": Explore, "gate": Gate, "proxy": Proxy, "fault": Fault}

func TestLimitsMakeSense(t *testing.T) {
	for command, table := range tables {
		seen := map[string]bool{}
		for _, l := range table {
			switch {
			case seen[l.Name]:
				t.Errorf("%s: %s has two limits", command, l.Name)
			case !(l.Least < l.Most), l.Why == "", strings.ContainsAny(l.Why, ".\n"):
				t.Errorf("%s: %+v", command, l)
			case l.Unit == Span && l.Most > float64(math.MaxInt64)/4:
				t.Errorf("%s: sums of %s may overflow", command, l.Name)
			}
			seen[l.Name] = true
			for _, v := range []float64{l.Least, l.Most} {
				if got, err := l.Read(l.format(v)); (err != nil || got != v) && !(l.Below && v == l.Most) {
					t.Errorf("%s: %s %s is read as %v, %v", command, l.Name, l.format(v), got, err)
				}
			}
		}
	}
}

func TestErrorsSayWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"pool", "100000000", "--pool 100000000: must be 0 to 10000: "},
		{"pool", "-1", "--pool -1: must be 0 to 10000: "},
		{"pool", "99999999999999999999", "--pool 99999999999999999999: must be 0 to 10000: "},
		{"pool", "1e3", "--pool 1e3: must be a whole number, 0 to 10000"},
		{"pool", "٣", "--pool ٣: must be a whole number, 0 to 10000"},
		{"pool", "", `--pool "": must be a whole number, 0 to 10000`},
		{"pool", "1\n2", `--pool "1\n2": must be a whole number, 0 to 10000`},
		{"die", "1", "--die 1: must be 0 to below 1: "},
		{"die", "NaN", "--die NaN: must be 0 to below 1: "},
		{"die", "Inf", "--die Inf: must be 0 to below 1: "},
		{"die", "one", "--die one: must be a number like 0.05, 0 to below 1"},
		{"hold", "2562047h", "--hold 2562047h: must be 0 to 1h: "},
		{"hold", "9999999h", "--hold 9999999h: must be a duration like 80ms or 3s, 0 to 1h"},
		{"hold", "5", "--hold 5: must be a duration like 80ms or 3s, 0 to 1h"},
		{"ttl", "1500us", "--ttl 1500us: must be 1ms to 24h, a multiple of 1ms: Redis counts in whole milliseconds"},
		{"seed", "-1", "--seed -1: must be a whole number, 0 to 18446744073709551615"},
		{"switch", "maybe", "--switch maybe: must be a bool"},
	} {
		var (
			f        = pflag.NewFlagSet("", pflag.ContinueOnError)
			n        int
			d        time.Duration
			x        float64
			seed     uint64
			switched bool
		)
		f.SetOutput(io.Discard)
		f.IntVar(&n, "pool", 0, "")
		f.Float64Var(&x, "die", 0, "")
		f.DurationVar(&d, "hold", 0, "")
		f.DurationVar(&d, "ttl", 0, "")
		f.Uint64Var(&seed, "seed", 0, "")
		f.BoolVar(&switched, "switch", false, "")
		Run.Bind(f)
		Run.Bind(f) // a second Bind changes nothing
		err := Explain(f.Parse([]string{fmt.Sprintf("--%s=%s", c.flag, c.value)}))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("--%s=%q says %v; want %q", c.flag, c.value, err, c.want)
		}
	}
}

func TestHelpTellsTheLimits(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Duration("hold", 0, "how long a section lasts")
	Run.Bind(f)
	if got, want := f.FlagUsages(), "how long a section lasts; 0 to 1h\n"; !strings.HasSuffix(got, want) {
		t.Errorf("the help is %q; want %q at its end", got, want)
	}
}
