package text

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"oversell/reports"
	"oversell/reports/reportstest"
)

// TestMarkdown checks that the summary, rendered as on GitHub, begins with the verdict, and has a table whose rows
// all have six cells, and no tags but its own.
func TestMarkdown(t *testing.T) {
	g := reportstest.Gate()
	page, source := rendered(t, g)
	if !strings.HasPrefix(page, "<h2>oversell gate: RED: violated") {
		t.Errorf("it does not begin with the verdict:\n%s", page)
	}
	rows := strings.Count(page, "<tr>")
	if rows != 6 || strings.Count(page, "<td>")+strings.Count(page, "<td ") != (rows-1)*6 {
		t.Errorf("%d rows with %d cells:\n%s", rows, strings.Count(page, "<td"), page)
	}
	for _, want := range []string{
		"a|b `c`, &lt;d&gt; 100%: *e* &amp;", "3/1,284 = 0.23 %", "<details><summary>", "client 2 acquire order", "*a story*", "<td>a|b `c`, ", "lock lua-release, sale plain",
		"crash after `ZREM`",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s\n%s", want, page, source)
		}
	}
	for _, never := range []string{"<d>", "<em>", "<strong>e", "<p>|"} {
		if strings.Contains(page, never) {
			t.Errorf("%q is in\n%s", never, page)
		}
	}
	if strings.Count(page, "<details>") != strings.Count(page, "</details>") {
		t.Errorf("unbalanced details:\n%s", page)
	}
}

func rendered(t *testing.T, g reports.Gate) (page, source string) {
	t.Helper()
	var b, out bytes.Buffer
	if err := GateMarkdown(&b, g); err != nil {
		t.Fatal(err)
	}
	// WithUnsafe lets details and summary through, as GitHub does.
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe())).Convert(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String(), b.String()
}

// TestMarkdownIsCut checks that a summary stays small, however much there is to tell, and says what it leaves out.
func TestMarkdownIsCut(t *testing.T) {
	g := reportstest.Gate()
	long := strings.Repeat("a long story | ", 2000)
	for i := range 300 {
		e := g.Safety[1]
		e.Name = fmt.Sprintf("%s %d", e.Name, i)
		e.Cases = []reports.GateCase{g.Safety[1].Cases[0]}
		e.Cases[0].Properties = []reports.GateProperty{{Name: "mutual-exclusion", Of: "lock", Result: reports.Broken, Why: long}}
		g.Safety = append(g.Safety, e)
	}
	page, source := rendered(t, g)
	if len(source) > longestMarkdown || !strings.Contains(page, "sections are left out") || !strings.Contains(page, "rows more") || !strings.HasPrefix(page, "<h2>oversell gate: RED") {
		t.Errorf("%d bytes, which end in …%s", len(source), source[max(0, len(source)-600):])
	}
	if strings.Count(page, "<details>") != strings.Count(page, "</details>") {
		t.Error("it was cut within details")
	}
}
