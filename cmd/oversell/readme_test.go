package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"oversell/campaign"
	"oversell/server"
)

// TestReadmesInStep checks that README.zh-CN.md has the same headings, commands, tables and links as README.md. Only
// a reader can tell whether it says the same in good Chinese.
func TestReadmesInStep(t *testing.T) {
	english, chinese := skeleton(t, "../../README.md"), skeleton(t, "../../README.zh-CN.md")
	for i := range min(len(english), len(chinese)) {
		if english[i].text != chinese[i].text {
			t.Fatalf("README.md has, under %q,\n%s\nand README.zh-CN.md, under %q,\n%s", english[i].under, english[i].text, chinese[i].under, chinese[i].text)
		}
	}
	if e, c := len(english), len(chinese); e != c {
		t.Errorf("README.md has %d parts, README.zh-CN.md %d: one of them ends too soon", e, c)
	}
	if len(english) < 25 {
		t.Errorf("only %d parts were found", len(english))
	}
	text, err := os.ReadFile("../../README.zh-CN.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"超卖", "秒杀", "分布式锁", "任务队列"} {
		if strings.Count(string(text), word) < 2 {
			t.Errorf("README.zh-CN.md hardly says %s, by which people look for it", word)
		}
	}
}

// TestFaultsOfReadme checks that the faults in the README can be used as they stand.
func TestFaultsOfReadme(t *testing.T) {
	source, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`--fault '([^']*)'`").FindAllStringSubmatch(string(source), -1)
	for _, m := range found {
		o := campaign.Options{Scenario: "seckill", Faults: []string{m[1]}, Target: server.Spec{Target: "process"}, Clients: 64, Stock: 500, Quantity: 1, Waiting: "poll", Wait: 10 * time.Second, Timeout: time.Second}
		if p, err := campaign.NewPlan(t.Context(), o); err != nil || len(p.Skipped) > 0 {
			t.Errorf("%s: %v %v", m[0], p.Skipped, err)
		}
	}
	if len(found) == 0 {
		t.Error("README.md shows no --fault")
	}
}

// part is a part of a document that does not depend on its language, and the heading above it.
type part struct{ text, under string }

// skeleton returns the parts of a document that do not depend on its language: the levels of headings, code, the form
// of tables and the code in them, and links.
func skeleton(t *testing.T, path string) (parts []part) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	under := path
	add := func(format string, args ...any) { parts = append(parts, part{fmt.Sprintf(format, args...), under}) }
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			under = string(n.Lines().Value(source))
			add("a heading of level %d", n.Level)
		case *ast.CodeBlock:
			add("%s", commented.ReplaceAllString(string(n.Lines().Value(source)), ""))
		case *ast.FencedCodeBlock:
			add("%s", commented.ReplaceAllString(string(n.Lines().Value(source)), ""))
		case *extast.Table:
			add("a table of %d columns and %d rows", len(n.Alignments), n.ChildCount()-1)
		case *extast.TableRow:
			add("in a row: %s", strings.Join(codeIn(n, source), " "))
		case *ast.List:
			add("a list of %d", n.ChildCount())
		case *ast.Link:
			if to := string(n.Destination); !strings.HasPrefix(to, "README") {
				add("a link to %s", strings.SplitN(to, "#", 2)[0])
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// commented matches the explanation beside a command, after two spaces or more.
var commented = regexp.MustCompile(`(?m)( {2,}#.*| {3,}\S.*)$`)

// codeIn returns the pieces of code in a part of a document, sorted, because their order in a sentence depends on the
// language.
func codeIn(n ast.Node, source []byte) (code []string) {
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if _, ok := n.(*ast.CodeSpan); ok && entering {
			var text strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					text.Write(t.Segment.Value(source))
				}
			}
			code = append(code, text.String())
		}
		return ast.WalkContinue, nil
	})
	slices.Sort(code)
	return code
}
