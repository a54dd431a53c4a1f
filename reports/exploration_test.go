package reports

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"oversell/variant"
)

var update = flag.Bool("update", false, "write testdata anew")

func holding(o variant.Object, p variant.Property) Property {
	return Property{Name: p, Of: o, Result: Holds, Measured: Holds}
}

func breaking(o variant.Object, p variant.Property, why string) Property {
	return Property{Name: p, Of: o, Result: Broken, Measured: Broken, Count: 1, Why: why}
}

// explorations are made by hand, one for each kind of thing that is told.
func explorations() map[string]Exploration {
	return map[string]Exploration{
		"takeover":     takeover(),
		"late-release": lateRelease(),
		"crash":        crash(),
		"masters":      masters(),
		"pass":         safe(),
		"inconclusive": inconclusive(),
	}
}

// takeover is the example of the specification.
func takeover() Exploration {
	why := "client 1 took the lock over while client 0, alive, had not yet set its expiry"
	return Exploration{
		Schema: ExplorationSchema, Scenario: "mutex", Lock: "redislock-printed", Masters: 1, TTLMS: 1000,
		Bounds:  Bounds{Clients: 2, Tries: 1, Crashes: 1, Lost: 1, Late: 1, Advances: 2},
		Verdict: Violated, Why: why, Expected: Violated,
		ExpectedWhy: []string{"SETNX and EXPIRE are two commands: between them the lock looks abandoned"},
		Properties: []Property{
			breaking(variant.Lock, variant.MutualExclusion, why),
			{Name: variant.Progress, Of: variant.Lock, Result: Unknown, Measured: Unknown, Why: "the search ended at the counterexample"},
			{Name: variant.FIFO, Of: variant.Lock, Result: NotClaimed, Measured: Unknown, Why: "not judged"},
		},
		Counterexample: &Counterexample{
			Of: variant.Lock, Property: variant.MutualExclusion, Sentence: why, Clients: []string{"client 0", "client 1"},
			Steps: []Step{
				{Kind: StepCommand, Client: 0, Text: "set lock exp nx -> OK", Redis: "lock=exp", Commands: [][]string{{"set", "Lock:order", "1768-exp", "nx"}}, Reply: "+OK\r\n"},
				{Kind: StepCommand, Client: 1, Text: "set lock exp nx -> (nil)", Redis: "lock=exp"},
				{Kind: StepCommand, Client: 1, Text: "ttl lock -> -1", Redis: "lock=exp"},
				{Kind: StepCommand, Client: 0, Text: "expire lock 1 -> 1", Marks: []string{MarkEnter}, Redis: "lock=exp (1 s)"},
				{Kind: StepCommand, Client: 1, Text: "set lock exp ex 1 -> OK", Marks: []string{MarkEnter}, Redis: "lock=exp (1 s)"},
			},
		},
		Stats:   Effort{States: 311, Transitions: 702, Depth: 5, Executions: 28, Observed: 19, Entered: 3, Expiries: 4, Advances: 6, Crashes: 40, Lost: 22, Late: 8, Collision: 1.4e-34, BytesPerState: 88, ElapsedMS: 0.231},
		Command: "oversell explore --scenario mutex --lock redislock-printed --clients 2 --tries 1",
	}
}

func lateRelease() Exploration {
	why := "client 1 bought the last piece, and so did client 0, whose release had deleted another's lock"
	return Exploration{
		Schema: ExplorationSchema, Scenario: "seckill", Lock: "set-nx-ex", Sale: "plain", Masters: 1, TTLMS: 1000, Stock: 1, Quantity: 1,
		Bounds:  Bounds{Clients: 3, Tries: 2, Lost: 1, Late: 1, Advances: 1},
		Verdict: Violated, Why: why, Expected: Pass,
		Properties: []Property{
			breaking(variant.Sale, variant.NoOversell, "sold 2 of 1"),
			{Name: variant.MutualExclusion, Of: variant.Lock, Result: NotClaimed, Measured: Broken, Why: "two were inside at once"},
		},
		Counterexample: &Counterexample{
			Of: variant.Sale, Property: variant.NoOversell, Sentence: why, Clients: []string{"client 0", "client 1", "client 2"},
			Steps: []Step{
				{Kind: StepStart, Client: 0, Redis: "stock=1"},
				{Kind: StepCommand, Client: 0, Text: "set lock 0-5f8d7a3e11c04b7c nx ex 1 -> OK", Marks: []string{MarkEnter}, Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=1"},
				{Kind: StepCommand, Client: 0, Text: "get stock -> 1", Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=1"},
				{Kind: StepNoReply, Client: 0, Text: "set stock 0 -> OK", Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=0"},
				{Kind: StepLate, Client: 0, Text: "del lock", Marks: []string{MarkLeave}, Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=0"},
				{Kind: StepAdvance, Client: TheClock, AdvanceMS: 1000, Text: "lock expires", Redis: "stock=0"},
				{AtMS: 1000, Kind: StepLost, Client: 2, Text: "set lock 2-77aa01 nx ex 1", Redis: "stock=0"},
				{AtMS: 1000, Kind: StepCommand, Client: 1, Text: "set lock 1-9b1c44d2 nx ex 1 -> OK", Marks: []string{MarkEnter}, Redis: "lock=1-9b1c44d2 (1 s), stock=0"},
				{AtMS: 1000, Kind: StepArrive, Client: 0, Of: 4, Text: "del lock -> 1", Redis: "stock=0"},
				{AtMS: 1000, Kind: StepCommand, Client: 2, Text: "set lock 2-77aa01 nx ex 1 -> OK", Marks: []string{MarkEnter}, Redis: "lock=2-77aa01 (1 s), stock=0"},
				{AtMS: 1000.5, Kind: StepCommand, Client: 1, Text: "decr stock -> -1", Marks: []string{"SOLD 2"}, Redis: "lock=2-77aa01 (1 s), stock=-1"},
			},
		},
		Stats: Effort{States: 88_211, Transitions: 301_944, Depth: 11, Executions: 214, Observed: 120, Entered: 9_310, Sold: 4_004, Expiries: 811, Advances: 2_904, Lost: 1_022, Late: 998, Collision: 1.1e-29, BytesPerState: 61.4, ElapsedMS: 412},
	}
}

func crash() Exploration {
	why := "client 0 died between SETNX and EXPIRE, and the lock it left has no expiry: nobody can ever take it"
	return Exploration{
		Schema: ExplorationSchema, Scenario: "mutex", Lock: "setnx-expire", Masters: 1, TTLMS: 1000,
		Bounds:  Bounds{Clients: 2, Tries: 1, Crashes: 1, TimeMS: 60_000, MemoryMB: 2048},
		Verdict: Violated, Why: why, Expected: Violated,
		Properties: []Property{holding(variant.Lock, variant.MutualExclusion), breaking(variant.Lock, variant.Progress, why)},
		Counterexample: &Counterexample{
			Of: variant.Lock, Property: variant.Progress, Sentence: why, Clients: []string{"client 0", "client 1"},
			Steps: []Step{
				{Kind: StepCommand, Client: 0, Text: "setnx lock 0 -> 1", Redis: "lock=0"},
				{Kind: StepCrash, Client: 0, Redis: "lock=0"},
				{Kind: StepCommand, Client: 1, Text: "setnx lock 1 -> 0", Redis: "lock=0"},
				{Kind: StepPause, Client: 1, Text: "gives up", Redis: "lock=0"},
				{Kind: StepEnd, Client: TheClock, Text: "lock is held, never expires, and nobody is left to release it", Redis: "lock=0"},
			},
		},
		Stats: Effort{States: 41, Transitions: 77, Depth: 5, Executions: 9, Observed: 7, Entered: 2, Crashes: 12, Ends: 1, Collision: 4e-36, BytesPerState: 90, ElapsedMS: 0.09},
	}
}

// masters has a node of its own for each of several servers.
func masters() Exploration {
	why := "client 0 counted two of three nodes, one of which had let its lock expire before"
	names := []string{"client 0", "client 1"}
	return Exploration{
		Schema: ExplorationSchema, Scenario: "mutex", Lock: "redlock", Masters: 3, TTLMS: 1000,
		Bounds: Bounds{Clients: 2, Tries: 1, Advances: 2}, Verdict: Violated, Why: why, Expected: Violated,
		Properties: []Property{breaking(variant.Lock, variant.MutualExclusion, why)},
		Counterexample: &Counterexample{
			Of: variant.Lock, Property: variant.MutualExclusion, Sentence: why, Clients: names,
			Steps: []Step{
				{Kind: StepCommand, Client: 0, Node: 0, Text: "set lock a nx px 1000 -> OK", Redis: "0: lock=a (1 s)"},
				{Kind: StepCommand, Client: 0, Node: 1, Thread: 1, Text: "set lock a nx px 1000 -> OK", Marks: []string{MarkEnter}, Redis: "0: lock=a (1 s); 1: lock=a (1 s)"},
				{Kind: StepLost, Client: 0, Node: 2, Thread: 2, Text: "set lock a nx px 1000", Redis: "0: lock=a (1 s); 1: lock=a (1 s)"},
				{Kind: StepAdvance, Client: TheClock, AdvanceMS: 1000, Redis: ""},
				{AtMS: 1000, Kind: StepCommand, Client: 1, Node: 1, Text: "set lock b nx px 1000 -> OK", Redis: "1: lock=b (1 s)"},
				{AtMS: 1000, Kind: StepCommand, Client: 1, Node: 2, Text: "set lock b nx px 1000 -> OK", Marks: []string{MarkEnter}, Redis: "1: lock=b (1 s); 2: lock=b (1 s)"},
			},
		},
		Stats: Effort{States: 4, Transitions: 7, Depth: 6, Executions: 3, Observed: 3, Entered: 2, ElapsedMS: 1},
	}
}

func safe() Exploration {
	return Exploration{
		Schema: ExplorationSchema, Scenario: "seckill", Lock: "fenced", Sale: "fenced-read", Masters: 1, TTLMS: 1000, Stock: 2, Quantity: 1,
		Bounds:  Bounds{Clients: 3, Tries: 3, Crashes: 2, Lost: 2, Late: 1, Advances: 4, TimeMS: 60_000},
		Verdict: Pass, Why: "every interleaving within the bounds was tried, and no promise was broken", Expected: Pass,
		Properties: []Property{holding(variant.Sale, variant.NoOversell), holding(variant.Sale, variant.Fencing), holding(variant.Lock, variant.MutualExclusion)},
		Stats: Effort{States: 1_090_441, Transitions: 8_120_977, Depth: 61, Executions: 954, Observed: 411, Entered: 310_022, Sold: 120_331, Advances: 88_100,
			Expiries: 51_007, Crashes: 412_990, Lost: 301_775, Late: 98_111, Ends: 20_114, Collision: 3.5e-27, BytesPerState: 43.7, ElapsedMS: 4_020},
		NotChecked: []string{
			"more than 3 clients, or more than 3 tries of each",
			"failover: the server never loses what it has acknowledged",
			"clocks that run at different speeds",
		},
		Command: "oversell explore --lock fenced --sale fenced-read --clients 3 --tries 3 --crashes 2 --lost 2 --late 1 --advances 4",
	}
}

func inconclusive() Exploration {
	return Exploration{
		Schema: ExplorationSchema, Scenario: "queue", Queue: "msetnx", Masters: 1,
		Bounds:  Bounds{Clients: 2, Tries: 1, Depth: 40},
		Verdict: Inconclusive, Why: "the model does not know the command MSETNX, so nothing is proved", Expected: Pass,
		Properties: []Property{{Name: variant.NoLostTask, Of: variant.Queue, Result: Unknown, Measured: Unknown, Why: "the search could not go on"}},
		Stats:      Effort{States: 2, Transitions: 1, Depth: 1, Executions: 2, Observed: 1, ElapsedMS: 0},
		NotChecked: []string{"everything after the first MSETNX"},
	}
}

func TestExplorationText(t *testing.T) {
	for name, e := range explorations() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := (Terminal{W: &b}).Exploration(e); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "exploration-"+name+".txt"), b.Bytes())
			for line := range strings.Lines(b.String()) {
				if strings.TrimRight(line, " \n")+"\n" != line {
					t.Errorf("a line ends in blanks: %q", line)
				}
			}
		})
	}
}

// golden compares with a file, or writes it when asked to by -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./reports -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s (go test ./reports -update writes it anew) has:\n%s\ngot:\n%s", path, want, got)
	}
}

func TestColourDoesNotMoveAnExploration(t *testing.T) {
	for name, e := range explorations() {
		var plain, colour bytes.Buffer
		if err := (Terminal{W: &plain}).Exploration(e); err != nil {
			t.Fatal(err)
		}
		if err := (Terminal{W: &colour, Color: true}).Exploration(e); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(colour.String(), "\x1b[3") {
			t.Errorf("%s: nothing is coloured", name)
		}
		stripped := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colour.String())
		if stripped != plain.String() {
			t.Errorf("%s: without its colours the text differs:\n%s\n%s", name, stripped, plain.String())
		}
	}
}

// TestColumnsStayAligned: whatever stands in a table, its separators stand below
// each other and it is as wide as it may be.
func TestColumnsStayAligned(t *testing.T) {
	long := strings.Repeat("héllo-", 40)
	for _, clients := range [][]string{{"client 0"}, {"client 0", "client 1"}, {"a", "b", "c", "client with quite a long name of its own"}} {
		c := Counterexample{Clients: clients}
		for i := range clients {
			c.Steps = append(c.Steps,
				Step{Kind: StepCommand, Client: i, Text: "set " + long + " -> " + long, Marks: []string{MarkEnter}, Redis: long},
				Step{Kind: StepLate, Client: i, Text: "del " + long},
				Step{Kind: StepAdvance, Client: TheClock, AdvanceMS: 1e9, Text: long})
		}
		table := c.table(1)
		var bars []int
		for line := range strings.Lines(table) {
			runes := []rune(strings.TrimRight(line, "\n"))
			if most := max(tableWidth, (len(clients)+1)*(narrowest+3)+20); len(runes) > most {
				t.Errorf("%d runes wide, and may be %d: %s", len(runes), most, line)
			}
			var here []int
			for i, r := range runes {
				if r == '|' {
					here = append(here, i)
				}
			}
			if bars == nil {
				bars = here
			}
			for _, i := range here {
				if !slices.Contains(bars, i) {
					t.Errorf("a separator at %d; the head has them at %v:\n%s", i, bars, table)
				}
			}
		}
	}
}

func TestCutKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"abcdefgh", 8, "abcdefgh"}, {"abcdefgh", 5, "ab…gh"}, {"abcdefgh", 4, "ab…h"}, {"äöüäöü", 3, "ä…ü"}, {"ab", 1, "…"}, {"ab", 0, ""}} {
		got := cut(c.text, c.width)
		if got != c.want || utf8.RuneCountInString(got) > c.width {
			t.Errorf("cut(%q, %d) = %q; want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestDiagramsStayInside: however many clients and nodes there are, everything that
// is drawn is inside the picture, and the lifelines stand in their order.
func TestDiagramsStayInside(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for clients := 1; clients <= 4; clients++ {
		for _, masters := range []int{1, 3, 5} {
			c := Counterexample{}
			for i := range clients {
				c.Clients = append(c.Clients, fmt.Sprint("client ", i))
				for _, kind := range []string{StepStart, StepCommand, StepLost, StepNoReply, StepLate, StepArrive, StepAdvance, StepCrash, StepEnd} {
					c.Steps = append(c.Steps, Step{Kind: kind, Client: i, Node: i % masters, Text: long + " -> " + long, Marks: []string{MarkEnter, "SOLD 1"}, Redis: long + kind})
				}
			}
			for _, d := range []diagram{c.draw(masters, wide), c.draw(masters, narrow)} {
				inside(t, fmt.Sprintf("%s, %d clients, %d masters", d.ID, clients, masters), d)
			}
		}
	}
}

func inside(t *testing.T, name string, d diagram) {
	t.Helper()
	at := func(what string, xs ...int) {
		for _, x := range xs {
			if x < 0 || x > d.Width {
				t.Errorf("%s: %s at %d of %d", name, what, x, d.Width)
			}
		}
	}
	before := 0
	for _, l := range d.Lines {
		at("a line", l.X1, l.X2)
		if strings.HasPrefix(l.Class, "life") {
			if l.X1 < before+20 {
				t.Errorf("%s: a lifeline at %d follows one at %d", name, l.X1, before)
			}
			before = l.X1
		}
	}
	for _, a := range d.Arrows {
		at("an arrow", a.X1, a.X2)
	}
	for _, p := range d.Pills {
		at("the box of "+p.Text, p.X, p.X+p.W)
	}
	for _, r := range slices.Concat(d.Under, d.Over) {
		at("a rectangle", r.X, r.X+r.W)
		if r.H < 0 || r.Y+r.H > d.Height {
			t.Errorf("%s: a rectangle from %d, %d high, of %d", name, r.Y, r.H, d.Height)
		}
	}
}

func TestOverlapsAreThoseOfTwoOrMore(t *testing.T) {
	got := overlaps([]bar{{client: 0, from: 0, to: 10}, {client: 1, from: 5, to: 20}, {client: 2, from: 8, to: 9}, {client: 3, from: 20, to: 30}})
	want := []shared{{[]int{0, 1}, 5, 8}, {[]int{0, 1, 2}, 8, 9}, {[]int{0, 1}, 9, 10}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("overlaps: %v; want %v", got, want)
	}
}

// TestPagesStandByThemselves: nothing of what clients send becomes markup, and a page
// names no other file.
func TestPagesStandByThemselves(t *testing.T) {
	e := takeover()
	e.Counterexample.Steps[2].Text = `get <script>alert(1)</script> -> "&`
	e.Command = `oversell explore --lock "<b>"`
	var b bytes.Buffer
	if err := e.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<b>\"", "http:", "https:", "src=", "ZgotmplZ", "@import"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"<html lang=\"en\">", "default-src 'none'", "&lt;script&gt;", "violated: mutual-exclusion of lock redislock-printed, in 5 steps", "both inside", "oversell explore --replay trace.json --target process"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
