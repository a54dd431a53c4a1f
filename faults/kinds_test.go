package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/variant"
	"oversell/wire"
)

// examples holds a sentence for every kind of fault.
var examples = map[string]string{
	"crash": "crash after SETNX 1%", "cancel": "cancel after DECR 1%", "pause": "pause after GET 80ms in buy 10%",
	"freeze": "freeze holder 3s every 2s", "slow": "slow 300ms 10%", "clock": "clock -2s 25%", "resend": "resend DECR 5%",
	"delay": "delay 50ms 10%", "drop-request": "drop-request SET 1%", "drop-reply": "drop-reply DECR nth 7",
	"late": "late EVALSHA key Lock:* 50ms 5%", "reset": "reset after SET 1%", "half-open": "half-open holder for 2s",
	"trickle": "trickle GET 1ms 10%", "cut": "cut requests node 2 at 1s for 2s",
	"kill": "kill node 4 at 0s for good", "restart": "restart node 3 empty after 0s", "freeze-node": "freeze node 2 3s at 1s",
	"failover": "failover at 5s", "split-brain": "split-brain at 1s", "script-flush": "script-flush every 1s",
	"client-kill": "client-kill every 1s", "client-pause": "client-pause 2s at 1s", "evict": "evict every 1s", "oom": "oom at 1s for 2s",
	"read-only": "read-only at 1s for 2s", "clock-node": "clock +60s on node 2",
}

func TestEveryKind(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds {
		if seen[k.Name] {
			t.Errorf("there are two kinds called %s", k.Name)
		}
		seen[k.Name] = true
		if k.Summary == "" || strings.Contains(k.Summary, "\n") || !strings.HasPrefix(k.Syntax, k.verb()) {
			t.Errorf("%s has the syntax %q and the summary %q", k.Name, k.Syntax, k.Summary)
		}
		if (k.Disrupt != nil) != (k.Level == OnClient) || (k.Rule != nil || k.Cuts) != (k.Level == OnWire) {
			t.Errorf("%s does not say what is done at the level of a %s", k.Name, k.Level)
		}
		for _, p := range k.Requires {
			if !slices.Contains(k.Takes, p) {
				t.Errorf("%s requires %s and does not take it", k.Name, p)
			}
		}
		f, err := Parse(examples[k.Name])
		if err != nil || f.Kind.Name != k.Name {
			t.Errorf("the example of %s is a %s, %v", k.Name, f.Kind.Name, err)
			continue
		}
		if k.Provokes == nil {
			t.Errorf("%s does not say what it provokes", k.Name)
			continue
		}
		k.Provokes(f, time.Second)
	}
}

func TestProvokes(t *testing.T) {
	const lease = time.Second
	for sentence, want := range map[string][]variant.Fault{
		"crash 1%":                {variant.Crash},
		"cancel":                  {variant.Crash, variant.DropReply},
		"cancel before DECR":      {variant.Crash},
		"pause 999ms":             nil,
		"pause 1s":                {variant.Overrun},
		"slow 2s":                 {variant.Overrun},
		"freeze 2s":               {variant.Overrun, variant.FreezeRenewal},
		"freeze 2ms":              nil,
		"clock +2s":               {variant.ClockSkew},
		"resend":                  {variant.Retry, variant.Resend},
		"delay 2s":                {variant.Overrun},
		"delay 2ms":               nil,
		"drop-request":            nil,
		"drop-reply":              {variant.DropReply},
		"late 2ms":                {variant.LateRequest, variant.DropReply},
		"reset":                   nil,
		"reset after GET":         {variant.DropReply},
		"half-open":               {variant.Overrun},
		"half-open for good":      {variant.Overrun},
		"half-open for 2ms":       {variant.LateRequest, variant.DropReply},
		"half-open for 2s":        {variant.LateRequest, variant.DropReply, variant.Overrun},
		"cut for 2ms":             {variant.DropReply, variant.LateRequest},
		"cut replies for 2s":      {variant.DropReply, variant.Overrun},
		"cut for good":            {variant.DropReply, variant.LateRequest, variant.Overrun},
		"trickle 2ms":             nil,
		"trickle replies GET 1/4": nil,
	} {
		sentence = strings.Replace(sentence, "1/4", "249ms", 1)
		f, err := Parse(sentence)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Kind.Provokes(f, lease); !slices.Equal(got, want) {
			t.Errorf("%q under a lease of %v provokes %v; want %v", sentence, lease, got, want)
		}
	}
}

func TestBlows(t *testing.T) {
	for sentence, want := range map[string]Disruption{
		"crash":     {Crash: true},
		"cancel":    {Cancel: true},
		"pause 2s":  {Pause: 2 * time.Second},
		"slow 2s":   {Pause: 2 * time.Second},
		"freeze 2s": {Freeze: 2 * time.Second},
		"clock -2s": {Clock: -2 * time.Second},
		"resend":    {Resend: true},
	} {
		f, err := Parse(sentence)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Kind.Disrupt(f); got != want {
			t.Errorf("%q fires with %+v; want %+v", sentence, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	for sentence, want := range map[string]wire.Action{
		"delay 2s":               {Verb: wire.Delay, After: 2 * time.Second},
		"drop-request GET":       {Verb: wire.DropRequest},
		"drop-reply GET":         {Verb: wire.DropReply},
		"late GET 2s":            {Verb: wire.Late, After: 2 * time.Second},
		"reset":                  {Verb: wire.Reset},
		"reset before GET":       {Verb: wire.Reset},
		"reset after GET":        {Verb: wire.ResetAfter},
		"half-open for 2s":       {Verb: wire.HalfOpen, After: 2 * time.Second},
		"half-open for good":     {Verb: wire.HalfOpen},
		"trickle 2ms":            {Verb: wire.Trickle, After: 2 * time.Millisecond},
		"trickle 2ms requests":   {Verb: wire.Trickle, After: 2 * time.Millisecond, Direction: wire.Requests},
		"trickle the 2ms GET 5%": {Verb: wire.Trickle, After: 2 * time.Millisecond},
	} {
		f, err := Parse(sentence)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Kind.Rule(f); got != want {
			t.Errorf("%q does %+v; want %+v", sentence, got, want)
		}
	}
}
