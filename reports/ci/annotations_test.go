package ci

import (
	"strings"
	"testing"

	"oversell/reports/reportstest"
)

// TestAnnotations checks that each red entry has one line, with its position in the plan.
func TestAnnotations(t *testing.T) {
	var b strings.Builder
	if err := Annotations(&b, reportstest.Gate(), "plans/gate,1.yaml"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for i, want := range []string{
		"::error file=plans/gate%2C1.yaml,line=9,col=11,title=a|b `c`%2C <d> 100%25%3A *e* & ",
		"::error file=plans/gate%2C1.yaml,line=30,col=11,title=powerless%3A inconclusive::mutex, lock fair under load alone%0Athe gate had no power%0A",
		"::error file=plans/gate%2C1.yaml,line=40,col=11,title=speed%3A slower::lock a against lock b%0Aslower: throughput: round by round 43 %25 slower",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("%s\nmust begin with\n%s", lines[i], want)
		}
	}
	if !strings.Contains(lines[0], `client 2 got it\nwhile client 1 held it, \x00%0A`) {
		t.Errorf("the story is not in %s", lines[0])
	}
}
