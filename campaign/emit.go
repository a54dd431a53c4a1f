package campaign

import (
	"encoding/json"
	"io"
	"strings"
	"text/template"
	"unicode"

	"oversell/explore"
	"oversell/reports"
)

// WriteTest writes a Go test that drives the schedule of a counterexample again, and
// fails as long as it breaks its promise. It compiles in a module that can import
// oversell/lockimpl/locktest.
func WriteTest(w io.Writer, e reports.Exploration) error {
	if _, err := explore.ConfigOf(e); err != nil {
		return err
	}
	trace, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return testTemplate.Execute(w, map[string]any{
		"Name":     testName(e),
		"Sentence": e.Counterexample.Sentence,
		"Steps":    len(e.Counterexample.Steps),
		"Property": e.Counterexample.Property,
		"Trace":    "`" + strings.ReplaceAll(string(trace), "`", "` + \"`\" + `") + "`",
	})
}

func testName(e reports.Exploration) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(firstName(e)+"-"+string(e.Counterexample.Property), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func firstName(e reports.Exploration) string {
	for _, n := range []string{e.Sale, e.Queue, e.IDs, e.Lock} {
		if n != "" {
			return n
		}
	}
	return e.Scenario
}

var testTemplate = template.Must(template.New("test").Parse(`package regression

import (
	"testing"

	"oversell/lockimpl/locktest"
)

// Test{{.Name}} drives a schedule of {{.Steps}} steps, found by oversell explore,
// against a real Redis. It fails as long as the schedule breaks {{.Property}}:
//
//	{{.Sentence}}
func Test{{.Name}}(t *testing.T) {
	locktest.Replay(t, []byte({{.Trace}}))
}
`))
