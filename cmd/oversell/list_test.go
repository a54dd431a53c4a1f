package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"oversell/internal/phrase"
	"oversell/reports"
)

// list returns the output of list, and the document that it prints with --json.
func list(t *testing.T, args ...string) (text string, c reports.Catalogue) {
	t.Helper()
	code, text, stderr := cli(t, append([]string{"list"}, args...)...)
	if code != reports.ExitPass {
		t.Fatalf("list %q exits with %d: %s", args, code, stderr)
	}
	_, doc, _ := cli(t, append([]string{"list", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(doc), &c); err != nil {
		t.Fatal(err)
	}
	return text, c
}

func TestListIsComplete(t *testing.T) {
	text, c := list(t)
	if len(c.Locks) < 20 || len(c.Sales) < 9 || len(c.Scenarios) < 2 || len(c.Properties) < 11 {
		t.Errorf("the list has %d locks, %d sales, %d scenarios, %d properties", len(c.Locks), len(c.Sales), len(c.Scenarios), len(c.Properties))
	}
	for _, name := range c.Names() {
		if !strings.Contains(text, name) {
			t.Errorf("the text does not name %s", name)
		}
	}
}

func TestListSections(t *testing.T) {
	for _, section := range reports.Sections {
		text, c := list(t, section)
		doc, err := json.Marshal(c)
		if err != nil || !strings.Contains(string(doc), fmt.Sprintf("%q:[", section)) || len(c.Names()) == 0 {
			t.Errorf("list %s --json prints %s, %v", section, doc, err)
		}
		if n := strings.Count(text, "\n"); n < 5 || n > 70 {
			t.Errorf("list %s has %d lines, and should be one screen:\n%s", section, n, text)
		}
	}
	text, _ := list(t, "faults")
	for _, want := range []string{"drop-reply [COMMAND]", "  crash [before|after]", "[at D] (all)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list of faults lacks %q:\n%s", want, text)
		}
	}
}

// TestListFlaws checks that the overview says each flaw at most once, also one that most variants share,
// and that the details say each reason exactly once, even if it is declared for several properties and faults.
func TestListFlaws(t *testing.T) {
	for _, section := range []string{"locks", "sales", "queues", "ids", "dispatches"} {
		overview, c := list(t, section)
		for _, name := range c.Names() {
			details, c := list(t, section, name)
			oneLine := phrase.OneLine(details)
			for _, v := range append(append(append(append(c.Locks, c.Sales...), c.Queues...), c.IDs...), c.Dispatches...) {
				for _, f := range v.Flaws {
					said := regexp.MustCompile(`breaks [^:]* under [^:]*: ` + regexp.QuoteMeta(f.Why) + "( breaks|$)")
					if n := len(said.FindAllString(oneLine, -1)); n != 1 {
						t.Errorf("%s says %d times: %s\n%s", name, n, f.Why, details)
					}
					if n := strings.Count(phrase.OneLine(overview), f.Why); n > 1 {
						t.Errorf("list %s says %d times: %s", section, n, f.Why)
					}
				}
				for _, was := range v.Was {
					if again, _ := list(t, section, was); again != details || !strings.Contains(details, was) || !strings.Contains(phrase.OneLine(overview), was+" ("+v.Name+")") {
						t.Errorf("the old name %s of %s is not understood or not told:\n%s", was, v.Name, again)
					}
				}
			}
		}
	}
}

func TestListOfWhatIsNotThere(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"fults"}, "did you mean faults?"},
		{[]string{"locks", "lua-relase"}, `the list has no "lua-relase": did you mean lua-release?`},
		{[]string{"locks", "plain"}, `the list has no "plain": it has none, php-lock-printed,`},
		{[]string{"faults", "crash", "xyz"}, `the list has no "xyz"`},
	} {
		if code, _, stderr := cli(t, append([]string{"list"}, c.args...)...); code != reports.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("list %q exits with %d: %s; want %q", c.args, code, stderr, c.want)
		}
	}
}
