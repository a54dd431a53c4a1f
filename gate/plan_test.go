package gate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWrongPlans checks that a plan that could not be run is refused before anything starts, with its position, in
// one line that says what would be right.
func TestWrongPlans(t *testing.T) {
	safety := func(rest string) string {
		return "safety:\n  - name: x\n    expect: pass\n" + rest
	}
	speed := func(rest string) string {
		return "performance:\n  - name: x\n    run: {scenario: mutex, lock: lua-release}\n" + rest
	}
	for _, c := range []struct{ plan, at, want string }{
		{"", "1:1", "empty"},
		{"# nothing\n", "1:1", "empty"},
		{"hello\n", "1:1", ""},
		{"safety: [\n", "1:9", ""},
		{"safety: []\n", "1:1", "guards nothing"},
		{"safty: []\n", "1:1", "did you mean safety"},
		{"schema: oversell-gate-plan/9\nsafety: []\n", "1:9", `this build reads "oversell-gate-plan/1"`},
		{safety("    run: {lock: none}\n") + "---\nsafety: []\n", "6:1", "second document"},
		{safety("    runs: {lock: none}\n"), "4:5", "did you mean run"},
		{safety("    run: {lok: none}\n"), "4:11", `flag of oversell run "lok" is not known: did you mean lock`},
		{safety("    run: {lock: lua-relase}\n"), "4:17", "did you mean lua-release"},
		{safety("    run:\n      lock: lua-release\n      sale: plian\n"), "6:13", "did you mean plain"},
		{safety("    run: {lock: lua-release, fault: [frezze holder 1s]}\n"), "4:38", "freeze"},
		{safety("    run: {lock: lua-release, clients: many}\n"), "4:39", "many"},
		{safety("    run: {lock: lua-release, clients: 0}\n"), "4:39", "--clients 0: must be 1 to"},
		{safety("    run: {lock: lua-release, clients: [1, 2]}\n"), "4:30", "takes one value"},
		{safety("    run: {lock: lua-release, ttl: {a: b}}\n"), "4:36", "a value of the flag ttl"},
		{safety("    run: {lock: lua-release, ttl: }\n"), "4:", "a value of the flag ttl"},
		{safety("    run: {lock: lua-release, ttl: 100}\n"), "4:35", "--ttl 100: must be a duration like 80ms"},
		{safety("    run: {scenario: mutex, stock: 5, lock: lua-release}\n"), "4:35", "leave out --stock: in scenario mutex"},
		{safety("    run: {lock: php-lock, ttl: 100ms}\n"), "4:", "whole seconds"},
		{safety("    run: lua-release\n"), "4:10", "keys with values"},
		{safety("    run: *shared\n"), "4:11", "shared"},
		{safety("    run: {lock: lua-release, lock: none}\n"), "4:", "lock"},
		{safety("    run: {lock: lua-release}\n    repeat: 0\n"), "5:13", "must be 1 to 10000"},
		{safety("    run: {lock: lua-release}\n    repeat: often\n"), "5:13", "whole number"},
		{safety("    run: {lock: lua-release}\n    budget: 30\n"), "5:13", "must be a duration like 80ms"},
		{safety("    run: {lock: lua-release}\n    budget: -3s\n"), "5:13", "must be 1µs to 168h"},
		{safety("    run: {lock: lua-release}\n    seeds: [1, x]\n"), "5:16", "a seed is"},
		{safety("    run: {lock: lua-release}\n    seeds: [1, 2]\n    repeat: 3\n"), "6:13", "give one of the two"},
		{safety("    run: {lock: lua-release, seed: 4}\n    seeds: [1, 2]\n"), "4:", "give one of the two"},
		{safety("    run: {lock: lua-release}\n    limits: {acqire.p99: 1ms}\n"), "5:14", "did you mean acquire"},
		{safety("    run: {lock: lua-release}\n    limits: {acquire.p98: 1ms}\n"), "5:14", "did you mean p90"},
		{safety("    run: {lock: lua-release}\n    limits: {acquire.p99: 0s}\n"), "5:27", "must be 1µs to 168h"},
		{safety("    run: {lock: lua-release}\n    control: sometimes\n"), "5:14", `control "sometimes" is not known`},
		{safety("    run: {lock: lua-release}\n    control: {lock: nune}\n"), "5:21", "did you mean none"},
		{safety("    run: {lock: lua-release}\n    control: {command: ['true']}\n"), "5:", "the flags that it sets differently"},
		{safety("    run: {lock: lua-release}\n    explore: {lock: none}\n"), "2:11", "2 of run, explore and command"},
		{safety(""), "2:11", "0 of run, explore and command"},
		{safety("    run: {lock: lua-release}\n    history: x.jsonl\n"), "5:14", "go with command only"},
		{safety("    explore: {lock: lua-release}\n    repeat: 3\n"), "5:13", "a search is made once"},
		{safety("    explore: {lock: lua-release, clients: 99}\n"), "4:43", "--clients 99: must be 1 to 6"},
		{safety("    explore: {lock: lua-release, duration: 3s}\n"), "4:34", "flag of oversell explore"},
		{safety("    command: [no-such-program-anywhere]\n"), "4:15", "cannot be run"},
		{safety("    command: []\n"), "4:14", "list is empty"},
		{safety("    command: ['true']\n    dir: nowhere\n"), "5:10", "not a directory"},
		{safety("    command: ['true']\n    control: {lock: none}\n"), "5:", "another command"},
		{safety("    command: ['true']\n    control: {command: ['false'], lock: none}\n"), "5:35", "not known here"},
		{"safety:\n  - name: x\n    run: {lock: none}\n", "2:11", "add expect: pass or expect: violated"},
		{"safety:\n  - expect: pass\n    run: {lock: none}\n", "2:5", "no name"},
		{"performance:\n  - run: {lock: none}\n", "2:5", "no name"},
		{"safety:\n  - name: x\n    expect: violated\n    limits: {buy.p99: 1ms}\n    run: {lock: none}\n", "4:14", "leave out limits"},
		{safety("    limits: {acquire.p99: 1s, buy.p99: 1ms}\n    run: {scenario: mutex, lock: lua-release}\n"), "4:31", "no run of this entry has a buy"},
		{"defaults:\n  run: {lokc: none}\n" + safety("    run: {lock: none}\n"), "2:9", "did you mean lock"},
		{"defaults:\n  explore: {clients: many}\n" + safety("    run: {lock: none}\n"), "2:22", "many"},
		{"defaults:\n  control: sometimes\n" + safety("    control: auto\n    run: {lock: none}\n"), "2:12", `control "sometimes" is not known`},
		{"controls:\n  unused: {lokc: none}\n" + safety("    run: {lock: none}\n"), "2:12", "did you mean lock"},
		{"controls:\n  unused: {command: [no-such-program-anywhere]}\n" + safety("    run: {lock: none}\n"), "2:22", "cannot be run"},
		{safety("    run: {lock: none}\n    repeat:\n"), "5:5", "repeat has no value"},
		{safety("    run: {lock: none}\n    seeds: ~\n"), "5:5", "seeds has no value"},
		{safety("    run: {lock: none}\n    limits:\n"), "5:5", "limits has no value"},
		{safety("    run: {lock: none}\n    control: null\n"), "5:5", "control has no value"},
		{safety("    command: ['true']\n    history:\n"), "5:5", "history has no value"},
		{safety("    run: {lock: none}\n") + "  -\n", "5:", "an item of safety has no value"},
		{"safety:\n  - name: x\n    expect: fail\n    run: {lock: none}\n", "3:13", `outcome "fail" is not known: it is one of pass, violated`},
		{"safety:\n  - name: x\n    expect: violated\n    control: none\n    run: {lock: none}\n", "4:14", "is a control itself"},
		{safety("    run: {lock: lua-release}\n") + "  - name: x\n    expect: pass\n    run: {lock: none}\n", "5:11", "two entries"},
		{"controls:\n  auto: {lock: none}\n" + safety("    run: {lock: none}\n"), "2:3", "cannot be called auto"},
		{speed(""), "2:11", "no baseline to compare with"},
		{speed("    baseline: {lock: none}\n    build: ./other\n"), "2:11", "no baseline to compare with"},
		{speed("    build: ./no-such-build\n"), "4:12", "cannot be run"},
		{speed("    baseline: {lock: 'none,lua-release'}\n"), "2:11", "2 combinations"},
		{speed("    baseline: {lock: none}\n    max_slowdown: 10\n"), "5:19", "with its sign"},
		{speed("    baseline: {lock: none}\n    max_slowdown: 0%\n"), "5:19", "must be 1%"},
		{speed("    baseline: {lock: none}\n    max_slowdown: -5%\n"), "5:19", "must be 1%"},
		{speed("    baseline: {lock: none}\n    max_p99_slowdown: NaN%\n"), "5:23", "must be 1%"},
		{speed("    baseline: {lock: none}\n    rounds: 5\n"), "5:13", "rounds are too few"},
		{speed("    baseline: {lock: none}\n    measure: [troughput]\n"), "5:15", "did you mean throughput"},
		{speed("    baseline: {lock: none}\n    measure: [p99, p99]\n"), "5:20", "twice"},
		{speed("    baseline: {lock: none}\n    operation: aquire\n"), "5:16", "did you mean acquire"},
		{"performance:\n  - name: x\n    baseline: {lock: none}\n", "2:11", "has no candidate"},
	} {
		_, err := loaded(t, c.plan)
		if err == nil {
			t.Errorf("accepted:\n%s", c.plan)
			continue
		}
		_, said, _ := strings.Cut(err.Error(), "plan.yaml:")
		if !strings.HasPrefix(said, c.at) || !strings.Contains(said, c.want) || strings.Contains(said, "\n") {
			t.Errorf("%s\n  says %q; must begin with %q, say %q, and be one line", c.plan, err, c.at, c.want)
		}
	}
	if _, err := Load(t.Context(), filepath.Join(t.TempDir(), "none.yaml")); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a plan that is not there: %v", err)
	}
}

// TestPlanMeans checks that what a plan says is what is run, defaults included.
func TestPlanMeans(t *testing.T) {
	p := mustLoad(t, `
schema: oversell-gate-plan/1
defaults:
  run: {clients: 7, target: embedded, ttl: 3s}
  repeat: 5
  max_slowdown: 20%
controls:
  unlocked: {lock: none, sale: plain}
safety:
  - name: several locks
    expect: pass
    run:
      lock: [lua-release, fair]
      clients: 9
      fault:
        - freeze holder 150ms 5%
        - slow 20ms 1%
    control: unlocked
  - name: seeds
    expect: violated
    seeds: [4, 5]
    run: {lock: none}
  - name: time only
    expect: pass
    budget: 20s
    run: {lock: lua-release}
  - name: a search
    expect: pass
    explore: {lock: lua-release, clients: 3}
performance:
  - name: speed
    run: {scenario: mutex, lock: lua-release, clients: 1}
    baseline: {lock: set-nx-ex}
    measure: throughput
`)
	several := p.safety[0]
	if n := len(several.plan.Runs); n != 2 || several.plan.Runs[0].Clients != 9 || several.plan.Runs[1].TTL != 3*time.Second || several.repeat != 5 {
		t.Errorf("several locks: %d runs, repeat %d", n, several.repeat)
	}
	if fs := several.plan.Runs[0].Faults; len(fs) != 2 || fs[1].Text != "slow 20ms 1%" {
		t.Errorf("faults: %v", fs)
	}
	if v, _ := several.control.flags.value("sale"); v != "plain" {
		t.Errorf("the control that several entries share: %v", several.control)
	}
	if s := p.safety[1]; s.repeat != 2 || !slices.Equal(s.seeds, []uint64{4, 5}) {
		t.Errorf("seeds: %d runs with %v", s.repeat, s.seeds)
	}
	if s := p.safety[3].searches; len(s) != 1 || s[0].Bounds.Clients != 3 {
		t.Errorf("a search: %+v", s)
	}
	r := p.speed[0]
	if r.slower[throughput] != 0.2 || !slices.Equal(r.measures, []string{throughput}) || r.baseline.Runs[0].Lock.Name != "set-nx-ex" || r.candidate.Runs[0].Duration != defaultRaceRun {
		t.Errorf("speed: %+v", r)
	}
}

// TestSchemaListsTheKeys checks that the schema for editors has exactly the keys that plans have.
func TestSchemaListsTheKeys(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "examples", "gate", "plan.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
		Additional any            `json:"additionalProperties"`
		Defs       map[string]struct {
			Properties map[string]any `json:"properties"`
			Additional any            `json:"additionalProperties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(source, &schema); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join("..", "docs", "gate.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name   string
		of     reflect.Type
		listed map[string]any
		closed any
	}{
		{"plan", reflect.TypeFor[document](), schema.Properties, schema.Additional},
		{"defaults", reflect.TypeFor[defaults](), schema.Defs["defaults"].Properties, schema.Defs["defaults"].Additional},
		{"safety", reflect.TypeFor[entry](), schema.Defs["safety"].Properties, schema.Defs["safety"].Additional},
		{"performance", reflect.TypeFor[comparison](), schema.Defs["performance"].Properties, schema.Defs["performance"].Additional},
	} {
		var listed []string
		for key := range part.listed {
			listed = append(listed, key)
		}
		want := keysOf(part.of)
		slices.Sort(listed)
		slices.Sort(want)
		if !slices.Equal(listed, want) {
			t.Errorf("%s: the schema lists %v, and plans have %v", part.name, listed, want)
		}
		if part.closed != false {
			t.Errorf("%s: the schema allows other keys, which plans refuse", part.name)
		}
		for _, key := range want {
			if !strings.Contains(string(doc), fmt.Sprintf("`%s`", key)) {
				t.Errorf("docs/gate.md does not explain `%s` of %s", key, part.name)
			}
		}
	}
}
