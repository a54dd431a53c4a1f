package campaign_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/compare"
	"oversell/internal/limits"
	"oversell/internal/printable"
)

// extremes are values that a number may be set to by accident or on purpose.
var extremes = []string{
	"", " ", "0", "-0", "+0", "1", "-1", "+1", "2", "00", "007", "08", "0x10", "0b1", "0o7", "1_000", "_1", "1__0", "1e3", "1e308", "1e309", "-1e308", "1e-308", "5e-324",
	"NaN", "nan", "-NaN", "Inf", "+Inf", "-Inf", "infinity", "0.5", "-0.5", "1.0", "1.5", "0.9999999999999999", "1.0000000000000002", ".5", "5.", ".", "-", "+", "--1",
	"127", "128", "255", "256", "32767", "65535", "65536", "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296",
	"9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
	"99999999999999999999999999", "100000000", "100001", "10001", "1000000001", "1000001", "101", "7",
	"0s", "-0s", "1ns", "-1ns", "1us", "999us", "1ms", "1.5ms", "1500us", "1s", "-1s", "1h", "1h0m1ns", "24h", "24h1ms", "168h", "169h", "2562047h", "2562047h47m16.854775807s", "-2562047h47m16.854775808s", "2562048h", "9999999999h", "1e3s", "1d", "5 s", "s", "1", "1sms",
	"٣", "３", "１２", "𝟏", "½", "Ⅷ", "一", "1\x00", "1\n2", "1\u202e", "\xff", "true", "null", "0;1", "$(id)", "%d", "1%",
}

// TestExtremeValuesOfEveryNumber checks that each value is within the limits or is refused in one line that names the
// flag. Nothing is started.
func TestExtremeValuesOfEveryNumber(t *testing.T) {
	if len(extremes) < 100 {
		t.Fatalf("only %d values", len(extremes))
	}
	for _, c := range []struct {
		command string
		table   limits.Table
		args    []string
		bind    func(f *pflag.FlagSet)
	}{
		{"run", limits.Run, []string{"--lock=lua-release", "--target=process"}, new(campaign.Options).Bind},
		{"run", limits.Run, []string{"--scenario=queue", "--queue=zset-atomic", "--target=process"}, new(campaign.Options).Bind},
		{"explore", limits.Explore, []string{"--lock=lua-release"}, new(campaign.SearchOptions).BindSearch},
		{"explore", limits.Explore, []string{"--sale=lua", "--lock=none"}, new(campaign.SearchOptions).BindSearch},
		{"compare", slices.Concat(limits.Compare, limits.Run), []string{"--lock=lua-release", "--target=process"}, (&compare.Options{}).Bind},
	} {
		f := pflag.NewFlagSet(c.command, pflag.ContinueOnError)
		c.bind(f)
		f.VisitAll(func(flag *pflag.Flag) {
			if !numeric(flag) {
				return
			}
			l, ok := c.table.Find(flag.Name)
			if !ok {
				t.Errorf("%s --%s has no limit", c.command, flag.Name)
				return
			}
			for _, value := range extremes {
				err := planFor(t, append([]string{c.command, "--" + flag.Name + "=" + value}, c.args...))
				if err == nil {
					if _, err := l.Read(value); err != nil && !strings.Contains(value, ",") {
						t.Errorf("%s --%s=%q is accepted: %v", c.command, flag.Name, value, err)
					}
					continue
				}
				if err = limits.Explain(err); !strings.Contains(err.Error(), "--"+flag.Name) || printable.Text(err.Error()) != err.Error() {
					t.Errorf("%s --%s=%q says %q, in other than one line that names the flag", c.command, flag.Name, value, err)
				}
			}
		})
	}
}

// numeric reports whether a flag takes numbers or durations.
func numeric(f *pflag.Flag) bool {
	return slices.ContainsFunc([]string{"int", "uint", "float", "duration"}, func(kind string) bool { return strings.HasPrefix(f.Value.Type(), kind) })
}

// FuzzFlags checks that a command line of run, compare or explore makes a plan or is refused in one line. Nothing is
// started.
func FuzzFlags(f *testing.F) {
	for i, line := range []string{
		"--lock\nlua-release\n--quantity\n9223372036854775807",
		"--lock=lua-release\n--pool=100000000\n--hold=2562047h",
		"--scenario=queue\n--queue=zset-atomic\n--delay=9223372036854775807ns\n--repeat=NaN",
		"--lock=lua-release,fenced\n--clients=1,10\n--ttl=100ms,1s\n--fault=freeze holder 150ms 5%\n--quick",
		"--sale=lua\n--lock=none\n--stock=1\n--resends=1\n--crashes=6",
		"--scenario=dispatch\n--ops=100000000\n--die=0.999",
		"--scenario=ids\n--ids=incr\n--lock=none\n--ops=-1",
		"--topology=masters:999999999\n--lock=redlock",
		"--waiting=\x1b\n--seed=-1\n--\n-x\n--=",
		"--scenario=seckill-queued\n--stock=1000000000\n--clients=100000",
	} {
		f.Add(byte(i), line)
	}
	f.Fuzz(func(t *testing.T, command byte, line string) {
		if strings.Contains(line, "//") || strings.Contains(line, "tcp") || strings.Contains(line, "sql") || len(line) > 2000 {
			return // avoids looking up host names
		}
		words := append([]string{[]string{"run", "compare", "explore"}[command%3]}, strings.Split(line, "\n")...)
		err := limits.Explain(planFor(t, words))
		if err != nil && strings.Contains(err.Error(), "\n") && !strings.Contains(line, "\n\n") {
			t.Errorf("%q says in several lines: %v", words, strconv.Quote(err.Error()))
		}
	})
}
