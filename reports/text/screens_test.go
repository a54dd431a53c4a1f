package text

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"oversell/reports"
	"oversell/reports/reportstest"
)

// screens returns what commands show, by name.
func screens() map[string]func(Terminal) error {
	runs := func(d reports.Document) func(Terminal) error {
		return func(t Terminal) error {
			if err := t.Table(d); err != nil {
				return err
			}
			return t.Explain(d)
		}
	}
	many, one := reportstest.Document(), reportstest.Document()
	one.Runs = one.Runs[2:3]
	catalogue := reportstest.Catalogue()
	locks, _ := catalogue.Only("locks")
	return map[string]func(Terminal) error{
		"run":          runs(many),
		"run-one":      runs(one),
		"compare":      func(t Terminal) error { return t.Comparison(everyOutcome()) },
		"list":         func(t Terminal) error { return t.Catalogue(catalogue) },
		"list-details": func(t Terminal) error { return t.CatalogueDetails(locks) },
		"gate":         func(t Terminal) error { return t.Gate(reportstest.Gate()) },
		"explore":      func(t Terminal) error { return t.Exploration(reportstest.Explorations()["late-release"]) },
		"explore-all": func(t Terminal) error {
			var all reports.Explorations
			for _, name := range []string{"takeover", "late-release", "masters", "pass", "inconclusive"} {
				all.Explorations = append(all.Explorations, reportstest.Explorations()[name])
			}
			return t.Explorations(all)
		},
		"claims": func(t Terminal) error { return t.Claims(someClaims(reports.Confirmed, reports.Refuted)) },
	}
}

// shown returns a screen of some width.
func shown(t *testing.T, show func(Terminal) error, width int, color bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := show(Terminal{W: &b, Width: width, Color: color}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestScreens(t *testing.T) {
	for name, show := range screens() {
		for _, width := range []int{80, 100, 120, 200} {
			got := shown(t, show, width, false)
			golden(t, filepath.Join("testdata", "screens", fmt.Sprintf("%s-%d.txt", name, width)), []byte(got))
			for line := range strings.Lines(got) {
				if n := reports.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d columns of %d: %s", name, n, width, line)
				}
				if strings.TrimRight(line, " \n")+"\n" != line {
					t.Errorf("%s ends a line in blanks: %q", name, line)
				}
			}
		}
	}
}

// TestNoWordIsBroken checks that a terminal of any width shows only whole words, except for the note about what was
// left out.
func TestNoWordIsBroken(t *testing.T) {
	for name, show := range screens() {
		whole := map[string]bool{`\`: true, "-": true}
		for word := range strings.FieldsSeq(shown(t, show, 1<<20, false)) {
			whole[word] = true
		}
		for _, width := range []int{1, 20, 40, 60, 80, 100, 120, 200} {
			text := shown(t, show, width, false)
			for _, word := range told(text) {
				if !whole[word] && !(width <= 40 && whole[strings.TrimSuffix(word, ":")]) && utf8.RuneCountInString(word) == len(word) {
					t.Errorf("%s at %d columns has %q, which is no word of it:\n%s", name, width, word, text)
					break
				}
			}
		}
	}
}

// told returns the words of a screen without those that only a narrow screen has: the note about columns that are not
// shown, and the titles of a schedule or a table that became a list.
func told(text string) (words []string) {
	for {
		before, after, found := strings.Cut(text, "Not shown in ")
		words = append(words, strings.Fields(before)...)
		if !found {
			break
		}
		_, text, _ = strings.Cut(strings.Join(strings.Fields(after), " "), " shows more.")
		text = strings.Replace(text, "shows more.", "", 1)
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "|" || w == "who" || w == "step" || w == "who:" || w == "step:" })
}

// TestColoursHaveNoWidth checks that a screen in colour is the same as one without.
func TestColoursHaveNoWidth(t *testing.T) {
	for name, show := range screens() {
		for _, width := range []int{20, 80, 100, 200} {
			plain, colour := shown(t, show, width, false), shown(t, show, width, true)
			stripped := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colour)
			if stripped != plain {
				t.Errorf("%s at %d columns differs in colour:\n%s\n%s", name, width, colour, plain)
			}
			if !strings.HasPrefix(name, "list") && strings.Count(colour, "\x1b[0m") == 0 {
				t.Errorf("%s has no colour", name)
			}
		}
	}
}
