package faults

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/wire"
)

// summary holds the fields of a fault that can be compared.
type summary struct {
	Kind   string
	Amount time.Duration
	Empty  bool
	Where  Where
	When   When
}

func summaryOf(f Fault) summary { return summary{f.Kind.Name, f.Amount, f.Empty, f.Where, f.When} }

const ms = time.Millisecond

var once = When{At: firstScheduled}

// sentences lists some sentences of every kind of fault, with what they mean.
var sentences = []struct {
	text string
	want summary
}{
	{"crash", summary{Kind: "crash"}},
	{"crash after SETNX 1%", summary{Kind: "crash", Where: Where{Moment: After, Command: "SETNX"}, When: When{Chance: 0.01}}},
	{"CRASH  1%\tBefore the setnx\n", summary{Kind: "crash", Where: Where{Moment: Before, Command: "SETNX"}, When: When{Chance: 0.01}}},
	{"crash holder nth 3", summary{Kind: "crash", Where: Where{State: Holding}, When: When{Nth: 3}}},
	{"crash after CLIENT on client 3", summary{Kind: "crash", Where: Where{Moment: After, Command: "CLIENT", Client: 3}}},
	{"crash GET always", summary{Kind: "crash", Where: Where{Command: "GET"}, When: When{Chance: 1}}},
	{"crash after SCRIPT|LOAD once", summary{Kind: "crash", Where: Where{Moment: After, Command: "SCRIPT|LOAD"}, When: When{Times: 1}}},
	{"crash after bf.add", summary{Kind: "crash", Where: Where{Moment: After, Command: "BF.ADD"}}},
	{"crash after NEWCMD", summary{Kind: "crash", Where: Where{Moment: After, Command: "NEWCMD"}}},
	{"cancel in acquire after EXPIRE 2% times 10", summary{Kind: "cancel", Where: Where{Moment: After, Command: "EXPIRE", During: "acquire"}, When: When{Chance: 0.02, Times: 10}}},
	{"pause after GET 80ms in buy 10%", summary{Kind: "pause", Amount: 80 * ms, Where: Where{Moment: After, Command: "GET", During: "buy"}, When: When{Chance: 0.1}}},
	{"freeze holder 3s every 2s", summary{Kind: "freeze", Amount: 3 * time.Second, Where: Where{State: Holding}, When: When{Every: 2 * time.Second}}},
	{"freeze a waiter 1m30s at 2s", summary{Kind: "freeze", Amount: 90 * time.Second, Where: Where{State: Waiting}, When: When{At: 2 * time.Second}}},
	{"slow 300ms 10%", summary{Kind: "slow", Amount: 300 * ms, Where: Where{State: Holding, First: true}, When: When{Chance: 0.1}}},
	{"clock +5s on client 3", summary{Kind: "clock", Amount: 5 * time.Second, Where: Where{Client: 3}}},
	{"clock -2s 25%", summary{Kind: "clock", Amount: -2 * time.Second, When: When{Chance: 0.25}}},
	{"clock +60s on node 2", summary{Kind: "clock-node", Amount: time.Minute, Where: Where{Node: 2}, When: When{At: firstScheduled, ForGood: true}}},
	{"clock -60s on node 2 at 1s for 2s", summary{Kind: "clock-node", Amount: -time.Minute, Where: Where{Node: 2}, When: When{At: time.Second, For: 2 * time.Second}}},
	{"resend DECR 5%", summary{Kind: "resend", Where: Where{Moment: After, Command: "DECR"}, When: When{Chance: 0.05}}},

	{"delay key Lock:* 50ms 100%", summary{Kind: "delay", Amount: 50 * ms, Where: Where{Key: "Lock:*"}, When: When{Chance: 1}}},
	{"drop-request SET nth 1", summary{Kind: "drop-request", Where: Where{Command: "SET"}, When: When{Nth: 1}}},
	{"drop-reply DECR nth 7", summary{Kind: "drop-reply", Where: Where{Command: "DECR"}, When: When{Nth: 7}}},
	{"late EVALSHA key Lock:* 50ms 5%", summary{Kind: "late", Amount: 50 * ms, Where: Where{Command: "EVALSHA", Key: "Lock:*"}, When: When{Chance: 0.05}}},
	{"late key in 50ms", summary{Kind: "late", Amount: 50 * ms, Where: Where{Key: "in"}}},
	{"reset after SET on node 2", summary{Kind: "reset", Where: Where{Moment: After, Command: "SET", Node: 2}}},
	{"half-open for 2s holder", summary{Kind: "half-open", Where: Where{State: Holding}, When: When{For: 2 * time.Second}}},
	{"half-open GET", summary{Kind: "half-open", Where: Where{Command: "GET"}}},
	{"trickle replies 1ms GET always", summary{Kind: "trickle", Amount: ms, Where: Where{Command: "GET", Direction: wire.Replies}, When: When{Chance: 1}}},
	{"cut requests node 2 at 1s for 2s", summary{Kind: "cut", Where: Where{Node: 2, Direction: wire.Requests}, When: When{At: time.Second, For: 2 * time.Second}}},
	{"cut for good at 0s", summary{Kind: "cut", When: When{ForGood: true}}},
	{"cut for 100ms every 1s times 3", summary{Kind: "cut", When: When{At: time.Second, For: 100 * ms, Every: time.Second, Times: 3}}},

	{"failover at 5s", summary{Kind: "failover", When: When{At: 5 * time.Second}}},
	{"failover", summary{Kind: "failover", When: once}},
	{"script-flush every 500ms", summary{Kind: "script-flush", When: When{At: 500 * ms, Every: 500 * ms}}},
	{"restart node 3 empty after 0s", summary{Kind: "restart", Empty: true, Where: Where{Node: 3}, When: once}},
	{"restart node 3 at 1s after 250ms", summary{Kind: "restart", Amount: 250 * ms, Where: Where{Node: 3}, When: When{At: time.Second}}},
	{"kill node 4 at 0s for good", summary{Kind: "kill", Where: Where{Node: 4}, When: When{ForGood: true}}},
	{"freeze node 2 3s at 1s", summary{Kind: "freeze-node", Amount: 3 * time.Second, Where: Where{Node: 2}, When: When{At: time.Second}}},
}

func TestParse(t *testing.T) {
	for _, s := range sentences {
		f, err := Parse(s.text)
		if err != nil {
			t.Errorf("%q: %v", s.text, err)
			continue
		}
		if got := summaryOf(f); got != s.want {
			t.Errorf("%q is read as\n%+v; want\n%+v", s.text, got, s.want)
		}
		if want := strings.Join(strings.Fields(s.text), " "); f.Text != want || f.String() != want {
			t.Errorf("%q calls itself %q; want %q", s.text, f.Text, want)
		}
		roundTrip(t, f)
	}
}

// roundTrip checks that a printed fault parses as the same fault.
func roundTrip(t *testing.T, f Fault) {
	t.Helper()
	again, err := Parse(f.String())
	if err != nil || summaryOf(again) != summaryOf(f) || again.Text != f.Text {
		t.Errorf("%q becomes\n%+v, %v; want\n%+v", f, summaryOf(again), err, summaryOf(f))
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ sentence, want string }{
		{"", `fault "" says nothing: a fault is like crash after SETNX 1%`},
		{"  \n", `fault "  \n" says nothing: a fault is like crash after SETNX 1%`},
		{"crash aftr SETNX", `fault "crash aftr SETNX": "aftr" (at position 7) is not understood: did you mean after?`},
		{"crash AFTR SETNX", `fault "crash AFTR SETNX": "AFTR" (at position 7) is not understood: did you mean after?`},
		{"crash  after\tsetnxx", `fault "crash  after\tsetnxx": "setnxx" (at position 14) is not understood: did you mean SETNX?`},
		{"crash after frobnicate", `fault "crash after frobnicate": "frobnicate" (at position 13) is not understood; a command that is not known here must be in capitals`},
		{"crash after SET!", `fault "crash after SET!": "SET!" (at position 13) is not understood: did you mean SET?`},
		{"crash после SETNX", `fault "crash после SETNX": "после" (at position 7) is not understood`},
		{"crsh after SETNX", `fault "crsh after SETNX": "crsh" (at position 1) is not a fault: did you mean crash?`},
		{"then freeze", `fault "then freeze": "then" (at position 1) is not a fault: it is one of ` + strings.Join(verbs(), ", ")},
		{"crash freeze 3s", `fault "crash freeze 3s": "freeze" (at position 7) begins another fault: give each a sentence of its own`},
		{"crash after", `fault "crash after": "after" (at position 7) needs a command behind it, as in: after SETNX`},
		{"crash after after", `fault "crash after after": "after" (at position 13) does not belong here`},
		{"crash after 1%", `fault "crash after 1%": "1%" (at position 13) is not understood`},
		{"crash after 3s", `fault "crash after 3s": "after" (at position 7) needs a command behind it; a duration that is not the downtime of a restart stands alone`},
		{"crash after SETNX before EXPIRE", `fault "crash after SETNX before EXPIRE": "before" (at position 19) repeats "after", which may be given once`},
		{"crash GET SET", `fault "crash GET SET": "SET" (at position 11) repeats "GET", which may be given once`},
		{"pause 3s 5s", `fault "pause 3s 5s": "5s" (at position 10) repeats "3s", which may be given once`},
		{"crash 1% always", `fault "crash 1% always": "always" (at position 10) repeats "1%", which may be given once`},
		{"crash once times 2", `fault "crash once times 2": "times" (at position 12) repeats "once", which may be given once`},
		{"crash holder waiter", `fault "crash holder waiter": "waiter" (at position 14) repeats "holder", which may be given once`},
		{"cut for 2s for good", `fault "cut for 2s for good": "for" (at position 12) repeats "for", which may be given once`},
		{"crash nth 3 5%", `fault "crash nth 3 5%": "5%" (at position 13) does not go with "nth"`},
		{"crash every 2s nth 3", `fault "crash every 2s nth 3": "nth" (at position 16) does not go with "every"`},
		{"crash nth 3 once", `fault "crash nth 3 once": "once" (at position 13) does not go with "nth"`},
		{"crash always every 2s", `fault "crash always every 2s": "every" (at position 14) does not go with "always"`},
		{"crash times 3 always", `fault "crash times 3 always": "always" (at position 15) does not go with "times"`},
		{"crash every 2s once", `fault "crash every 2s once": "once" (at position 16) does not go with "every"`},
		{"kill every 5s for good", `fault "kill every 5s for good": "for" (at position 15) does not go with "every"`},
		{"clock +60s on node 2 every 5s", `fault "clock +60s on node 2 every 5s": "every" (at position 22) means nothing here: ` + kindClockNode.Syntax},
		{"failover times 3", `fault "failover times 3": "times" (at position 10) needs to know how often, as in: every 5s times 3`},
		{"pause after GET", `fault "pause after GET": "pause" (at position 1) needs a duration: ` + kindPause.Syntax},
		{"cut node 2", `fault "cut node 2": "cut" (at position 1) needs for D: ` + kindCut.Syntax},
		{"failover GET", `fault "failover GET": "GET" (at position 10) means nothing here: ` + kindFailover.Syntax},
		{"freeze holder on node 2 3s", `fault "freeze holder on node 2 3s": "holder" (at position 8) means nothing here: ` + kindFreezeNode.Syntax},
		{"failover 10%", `fault "failover 10%": "10%" (at position 10) means nothing here: ` + kindFailover.Syntax},
		{"freeze holder for 3s", `fault "freeze holder for 3s": "for" (at position 15) means nothing here; the duration stands alone, without "for": ` + kindFreeze.Syntax},
		{"clock +2s every 3s", `fault "clock +2s every 3s": "every" (at position 11) means nothing here: ` + kindClock.Syntax},
		{"pause 3", `fault "pause 3": "3" (at position 7) is a number without a unit: a duration is like 80ms, 3s or 1m30s`},
		{"pause 0", `fault "pause 0": "0" (at position 7) is a number without a unit: a duration is like 80ms, 3s or 1m30s`},
		{"pause 3sec", `fault "pause 3sec": "3sec" (at position 7) is not a duration: one is like 80ms, 3s or 1m30s`},
		{"pause -3s", `fault "pause -3s": "-3s" (at position 7) is negative`},
		{"pause 0s", `fault "pause 0s": "0s" (at position 7) is too short`},
		{"clock 0s", `fault "clock 0s": "0s" (at position 7) moves no clock`},
		{"restart after -1s", `fault "restart after -1s": "-1s" (at position 15) is negative`},
		{"failover at", `fault "failover at": "at" (at position 10) needs a duration behind it, as in: at 5s`},
		{"failover at noon", `fault "failover at noon": "noon" (at position 13) is not a duration: one is like 80ms, 3s or 1m30s`},
		{"failover every 0s", `fault "failover every 0s": "0s" (at position 16) is too short: 100µs at least`},
		{"freeze holder 1ns", `fault "freeze holder 1ns": "1ns" (at position 15) is too short: 100µs at least`},
		{"crash 0%", `fault "crash 0%": "0%" (at position 7) is not a probability above 0% and up to 100%`},
		{"crash 101%", `fault "crash 101%": "101%" (at position 7) is not a probability above 0% and up to 100%`},
		{"crash NaN%", `fault "crash NaN%": "NaN%" (at position 7) is not a percentage: one is like 1% or 0.5%`},
		{"crash -1%", `fault "crash -1%": "-1%" (at position 7) is not a percentage: one is like 1% or 0.5%`},
		{"crash nth", `fault "crash nth": "nth" (at position 7) needs a number behind it, as in: nth 3`},
		{"crash client zero", `fault "crash client zero": "zero" (at position 14) is not a number of 1 or more, as in: client 3`},
		{"crash client 0", `fault "crash client 0": "0" (at position 14) is not a number of 1 or more, as in: client 3`},
		{"kill node 99999999999", `fault "kill node 99999999999": "99999999999" (at position 11) must be 1 to 192: there are no more servers`},
		{"crash in", `fault "crash in": "in" (at position 7) needs an operation behind it, as in: in acquire`},
		{"crash in aquire", `fault "crash in aquire": "aquire" (at position 10) is not an operation: did you mean acquire?`},
		{"crash key", `fault "crash key": "key" (at position 7) needs a pattern behind it, as in: key Lock:*`},
	} {
		_, err := Parse(c.sentence)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q is refused with\n%v; want\n%s", c.sentence, err, c.want)
		}
	}
}

func TestFaultsAreTextInDocuments(t *testing.T) {
	type document struct {
		Faults []Fault `json:"faults"`
	}
	var d document
	text := `{"faults":["crash after SETNX 1%","failover at 5s"]}`
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if d.Faults[1].Kind.Name != "failover" {
		t.Errorf("the document is read as %+v", d)
	}
	if got, err := json.Marshal(d); err != nil || string(got) != text {
		t.Errorf("the document is written as %s, %v; want %s", got, err, text)
	}
	err := json.Unmarshal([]byte(`{"faults":["crash aftr SETNX"]}`), &d)
	if err == nil || !strings.Contains(err.Error(), "did you mean after?") {
		t.Errorf("a bad sentence is refused with %v", err)
	}
}

func TestOneSlip(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"aftr", "after", true}, {"aftre", "after", true}, {"holdre", "holder", true}, {"afterr", "after", true}, {"xafter", "after", true},
		{"offer", "after", false}, {"after", "after", false}, {"aft", "after", false}, {"afetrs", "after", false}, {"time", "times", true},
	} {
		if got := oneSlip(c.a, c.b); got != c.want || oneSlip(c.b, c.a) != c.want {
			t.Errorf("oneSlip(%q, %q) = %v; want %v", c.a, c.b, got, c.want)
		}
	}
}

func ExampleParse() {
	_, err := Parse("crash aftr SETNX")
	fmt.Println(err)
	// Output:
	// fault "crash aftr SETNX": "aftr" (at position 7) is not understood: did you mean after?
}
