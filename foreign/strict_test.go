package foreign

import (
	"strings"
	"testing"

	"oversell/checker"
)

// TestEventsThatAreNone checks that a line that looks like an event but is not one is an error, and is not skipped.
func TestEventsThatAreNone(t *testing.T) {
	const util = "INFO  jepsen.util - "
	good := util + "0\t:invoke\t:write\t1\n" + util + "0\t:ok\t:write\t1\n"
	for text, want := range map[string]string{
		good + util + "0\tinvoke\t:read\tnil\n":                                                 `3:1: the line looks like an event but is not: want a process, its type, what it does and a value, such as 0 :invoke :read nil`,
		good + util + "0\t:invoke\tread\tnil\n":                                                 `3:1: the line looks like an event`,
		good + util + "0\t:ok\n":                                                                `3:1: the line looks like an event`,
		good + util + "0\t:invoke\t:write\t1 2\n":                                               `3:38: the value "1 2" is not one value: 1:3: 2 follows the value 1`,
		good + util + "0\t:invoke\t:write\t1\n" + util + "0\t:info\t:write\t1\t:timed-out\n":    ``,
		good + util + "1\t:ok\t:read\t\n":                                                       `3:1: the line looks like an event`,
		good + util + "1\t:ok\t:read\n":                                                         `3:1: the line looks like an event`,
		good + util + "1\t:o\n":                                                                 `3:1: the line looks like an event`,
		good + util + "1\tok\tread\t2\n":                                                        `3:1: the line looks like an event`,
		good + util + "x\t:ok\t:read\t2\n":                                                      `3:1: the line looks like an event`,
		good + "INFO  jepsen.util - :ok\t:read\t2\n":                                            `3:1: the line looks like an event`,
		good + "INFO  jepsen.util 1\t:ok\t:rea\n":                                               `3:1: the line looks like an event`,
		good + "INFO  jepsen.util 1\t:ok\t:read\t2\n":                                           `3:19: process 1 completes read, and it never invoked anything`,
		good + util + ":nemesis\t:info\t:start\n":                                               ``,
		good + util + "{:op {:process 1 :type :ok :f :read}}\n" + util + "said \":ok :read\"\n": ``,
		good + util + "1\t:o":                                                                   ``, // the log was cut off in this line
		good + util + "Worker 1 done\n" + util + "120 ok reads\n":                               ``,
		util + "-1\t:invoke\t:write\t1\n" + util + "1\t:ok\t:write\t1\n":                        `2:21: process 1 completes write, and it never invoked anything`,
		events("0i:write=1") + "{:process 1.0, :type :ok, :f :write, :value 1}":                 `2:11: :process is 1.0: want a whole number, or a keyword such as :nemesis`,
		events("0i:write=1") + "{:process [1], :type :ok, :f :write, :value 1}":                 `2:11: :process is [1]: want a whole number`,
		events("0i:write=1") + "{:process worker, :type :ok, :f :write, :value 1}":              ``,
		events("0i:write=1") + "{:process 0, :type :ok, :type :fail, :f :write}":                `2:25: the key :type of a map is there twice`,
		events("0i:write=1 1i:read") + "{:process 0, :type :ok, :f :write, :index 0}":           `3:1: an event with index 0 follows one with index 1: want events in order of their indexes`,
	} {
		if got := refusal(text, ""); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s\n%s, want\n%s", text, got, want)
		}
	}
}

// TestMessages checks that messages say what is wrong, and where.
func TestMessages(t *testing.T) {
	if got := refusal(events("0i:add=99999999999999999999 1i:read 1o:read=1"), ""); !strings.Contains(got, "want a whole number of 64 bits") {
		t.Error(got)
	}
	for fence, want := range map[string]string{
		`"3"`: `has the fencing token "3": want a whole number of 64 bits`, "3.0": "has the fencing token 3.0: want", "9223372036854775808": "has the fencing token 9223372036854775808: want",
		"{:token,3}": "no acquire has a fencing token", "{:fence,:a}": "has the fencing token :a: want", "[9,\"a\"]": "has the fencing token", "nil": "no acquire has a fencing token", "0": "", "{:fence,3}": "",
	} {
		if got := refusal(events("0i:acquire 0o:acquire="+fence), "fenced-mutex"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("a fence %s: %q, want %q", fence, got, want)
		}
	}
	if got := refusal(events("0i:add=\"a\" 0o:add=\"a\" 1i:read 1f:read"), ""); got != "" {
		t.Error(got)
	}
	if _, vs := judged(t, strings.ReplaceAll(events("0i:write=1 0o:write=1 0i:read 0o:read=2"), "\n", " "), "", ""); strings.Contains(vs[0].Why, "line 0") {
		t.Error(vs[0].Why)
	}
	const times = "fields: {kind: {value: buy}, client: user, call: {column: at, format: \"2006\"}, return: at}\noutcome: {column: s, ok: [a]}\n"
	for _, c := range []struct{ with, log, form, want string }{
		{orders, "user,action,order,began,took,status\nann,purchase,o1,-0.5,12,201\n", "csv", `2:17: call is "-0.5": want a number of ms`},
		{orders, "user,action,order,began,took,status,user\nann,purchase,o1,1,12,201,bob\n", "csv", `1:37: the column "user", which the map names, appears twice`},
		{orders, "user,action,order,began,took,status,x,x\nann,purchase,o1,1,12,201,,\n", "csv", ``},
		{strings.Replace(orders, "skip: [{column: action", "skip: [{column: acts", 1), "user,action,order,began,took,status\nann,purchase,o1,1,12,201\n", "csv", `1:1: there is no column "acts", which the map names under skip`},
		{times, "user,at,s\nann,3000,a\n", "csv", `2:5: call is "3000": want a time from 1970 to 2043`},
		{times, "user,at,s\nann,1960,a\n", "csv", `2:5: call is "1960": want a time from 1970 to 2043`},
		{times, "user,at,s\nann,x,a\n", "csv", `2:5: call is "x": want a time as the format "2006" has it, in which Go writes 2 January 2006`},
		{orders, "[\n", "jsonl", `1:1: the line is not a JSON object: want one such as`},
		{orders, "[1]\n", "jsonl", `1:1: the line is not a JSON object: want one such as`},
		{strings.Replace(orders, `"504"]`, `"201"]`, 1), "", "csv", `12:3: "201" is in more than one of ok, refused and unknown`},
		{strings.Replace(orders, `{"409": sold-out}`, `{"201": sold-out}`, 1), "", "csv", `12:3: "201" is in more than one of`},
		{strings.Replace(orders, "arg: order", "arg: {column: order, unit: ms}", 1), "", "csv", `8:9: arg has a unit or a format: only times have one`},
		{orders + "separator: '\"'\n", "", "csv", `1:1: separator: "\"" cannot separate columns`},
	} {
		m, err := parseMap([]byte(c.with))
		if err == nil && c.log != "" {
			_, err = m.read([]byte(c.log), c.form)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s\n%v, want\n%s", c.log, err, c.want)
		}
	}
}

// TestCutOff checks that a log whose last line has no newline counts as cut off: that line tells nothing, and the
// history does not pass.
func TestCutOff(t *testing.T) {
	const util = "INFO  jepsen.util - "
	line := func(s string) string { return util + strings.ReplaceAll(s, " ", "\t") + "\n" }
	register := line("0 :invoke :write 12") + line("0 :ok :write 12") + line("1 :invoke :read nil")
	set := line("0 :invoke :add 1") + line("0 :ok :add 1") + line("1 :invoke :read nil")
	for _, c := range []struct {
		model, text string
		want        checker.Result
	}{
		{"register", register + line("1 :ok :read 12"), checker.Holds},
		{"register", register + util + "1\t:ok\t:read\t12", checker.Unknown},
		{"register", register + util + "1\t:ok\t:read\t1", checker.Unknown}, // perhaps the beginning of 12
		{"register", register + util + "1\t:ok\t:rea", checker.Unknown},
		{"register", register + line("1 :ok :read 1") + util, checker.Violated},
		{"set", set + line("1 :ok :read #{}"), checker.Violated},
		{"set", set + line("1 :ok :read #{}") + util + "1\t:in", checker.Unknown}, // a later read may find the element
	} {
		if _, vs := judged(t, c.text, c.model, ""); vs[0].Result != c.want {
			t.Errorf("%s\n%v, want %v: %s", c.text, vs[0].Result, c.want, vs[0].Why)
		}
	}
}

// TestPlacesInALog checks that an error in a value names its line, and that NaN, which equals nothing, does not equal
// a NaN on another line either.
func TestPlacesInALog(t *testing.T) {
	const util = "INFO  jepsen.util - "
	set := util + "0\t:invoke\t:add\t1\n" + util + "0\t:ok\t:add\t1\n" + util + "1\t:invoke\t:read\tnil\n" + util + "1\t:ok\t:read\t7\n"
	if got, want := refusal(set, "set"), "h.edn:4:33: a read of a set returned 7"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	nan := util + "0\t:invoke\t:write\t[##NaN]\n" + util + "0\t:ok\t:write\t[##NaN]\n" + util + "0\t:invoke\t:read\tnil\n" + util + "0\t:ok\t:read\t[##NaN]\n"
	for _, text := range []string{nan, events("0i:write=##NaN 0o:write=##NaN 0i:read 0o:read=##NaN")} {
		if _, vs := judged(t, text, "register", ""); vs[0].Result != checker.Violated {
			t.Errorf("%s\n%+v", text, vs[0])
		}
	}
}
