package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"oversell/reports"
)

func someClaims(answers ...string) reports.Claims {
	c := reports.Claims{Schema: reports.ClaimsSchema, Target: "process", ServerVersions: []string{"7.0.15"}, Cores: 2, Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ElapsedMS: 61000, Command: "oversell claims"}
	for i, a := range answers {
		c.Claims = append(c.Claims, reports.Claim{
			Number: "C" + reports.Thousands(int64(i+1)), Words: "A | B", From: "0, 2", Answer: a, Declared: reports.Confirmed,
			Sentence:  strings.Repeat("word ", 60) + "end.",
			Numbers:   []reports.Quantity{{Name: "a | b", Value: 1234.4, Unit: "ms", Spread: &reports.Spread{Median: 1234.4, Low: 0.25, High: 2000}}},
			Method:    "by hand",
			Repeat:    []string{"oversell claims C1", "oversell run --lock none"},
			DependsOn: map[bool]string{true: "the weather."}[a == reports.Depends],
		})
	}
	return c
}

func TestClaimsOnATerminal(t *testing.T) {
	shown := func(c reports.Claims) string {
		var b strings.Builder
		if err := (Terminal{W: &b}).Claims(c); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	many := shown(someClaims(reports.Confirmed, reports.Refuted, reports.Depends, reports.Inconclusive))
	for _, want := range []string{"C1  confirmed ", "C2  refuted! ", "C4  inconclusive ", "Declared: confirmed. Measured: word", "\n4 claims: 1 confirmed, 1 refuted, 1 depend on a condition, 1 inconclusive; 2 not as declared"} {
		if !strings.Contains(many, want) {
			t.Errorf("missing %q in\n%s", want, many)
		}
	}
	if !strings.HasSuffix(strings.Join(strings.Fields(many), " "), "oversell claims C1") || strings.Contains(many, "Repeat") {
		t.Errorf("of many claims, not the details but how to see them:\n%s", many)
	}
	for line := range strings.Lines(many) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > DefaultWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	few := shown(someClaims(reports.Depends))
	for _, want := range []string{"a | b  1,234 ms (0.25 to 2,000)", "Depends on: the weather.", "Measured: by hand", "\n       oversell run --lock none\n"} {
		if !strings.Contains(few, want) {
			t.Errorf("missing %q in\n%s", want, few)
		}
	}
}

func TestClaimsAsAPage(t *testing.T) {
	var b strings.Builder
	if err := ClaimsMarkdown(&b, someClaims(reports.Confirmed, reports.Refuted)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Measured on 2026-01-02 by `oversell claims`, on Redis 7.0.15 (target: process) and 2 cores, in 61 seconds.",
		"| [C1](#c1) | A \\| B | 0, 2 | confirmed |\n",
		"| [C2](#c2) | A \\| B | 0, 2 | refuted (declared: confirmed) |\n",
		"## C2\n\n> A | B\n\n**refuted (declared: confirmed)** (0, 2). word",
		"| a \\| b | 1,234 ms (0.25 to 2,000) |\n",
		"```\noversell claims C1\noversell run --lock none\n```\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in\n%s", want, b.String())
		}
	}
}
