package reports_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/reports"
	"oversell/reports/ci"
	"oversell/reports/page"
	"oversell/reports/text"
)

// hostile is a text that no output may contain unescaped.
const hostile = "\x1b]0;title\x07\u202e<img src=x onerror=alert(1)>\n::error::gone\r\n::set-output name=a::b\n##[error]x\u009b\xff`|*&\"'%0A\u2028\ufeff"

// fill makes every text in v hostile, except verdicts and the like, which become word. Slices get two elements, maps
// one, and pointers something to point to.
func fill(v reflect.Value, word string, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), word, depth-1)
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2)) // two elements, as all numbers are 1, and some are indices
			for i := range 2 {
				fill(v.Index(i), word, depth-1)
			}
		}
	case reflect.Map:
		if depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, word, depth-1)
			fill(value, word, depth-1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[history.Value]() {
			v.Set(reflect.ValueOf(history.Text(hostile)))
			return
		}
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			switch {
			case !v.Type().Field(i).IsExported():
			case slices.Contains([]string{"Verdict", "Result", "Measured", "Expected", "Expect"}, name) && v.Field(i).Kind() == reflect.String:
				v.Field(i).SetString(word)
			default:
				fill(v.Field(i), word, depth)
			}
		}
	}
}

// filled returns a document in which every text is hostile.
func filled[D any](word string) (d D) {
	fill(reflect.ValueOf(&d).Elem(), word, 8)
	return d
}

// drawing draws a hostile document.
type drawing func(w io.Writer, word string) error

// of returns a drawing that uses a function that draws one document.
func of[D any](draw func(io.Writer, D) error) drawing {
	return func(w io.Writer, word string) error { return draw(w, filled[D](word)) }
}

// onTerminal returns a drawing that uses a method of Terminal.
func onTerminal[D any](draw func(text.Terminal, D) error) drawing {
	return func(w io.Writer, word string) error { return draw(text.Terminal{W: w}, filled[D](word)) }
}

// drawings are all functions that write a document. TestEveryDrawingIsLookedAt fails when one is missing.
var drawings = map[string]drawing{
	"text.Terminal.Table":            onTerminal(text.Terminal.Table),
	"text.Terminal.Explain":          onTerminal(text.Terminal.Explain),
	"text.Terminal.Comparison":       onTerminal(text.Terminal.Comparison),
	"text.Terminal.Exploration":      onTerminal(text.Terminal.Exploration),
	"text.Terminal.Explorations":     onTerminal(text.Terminal.Explorations),
	"text.Terminal.Gate":             onTerminal(text.Terminal.Gate),
	"text.Terminal.Claims":           onTerminal(text.Terminal.Claims),
	"text.Terminal.CatalogueDetails": onTerminal(text.Terminal.CatalogueDetails),
	"text.Terminal.Catalogue":        onTerminal(text.Terminal.Catalogue),
	"text.GateMarkdown":              of(text.GateMarkdown),
	"text.ClaimsMarkdown":            of(text.ClaimsMarkdown),
	"ci.JUnit":                       of(ci.JUnit),
	"ci.Annotations": func(w io.Writer, word string) error {
		return ci.Annotations(w, filled[reports.Gate](word), hostile)
	},
	"page.Overview":   of(page.Overview),
	"page.Comparison": of(page.Comparison),
	"page.Diagram":    of(page.Diagram),
	"page.Exploration": func(w io.Writer, word string) error {
		return page.Exploration(w, filled[reports.Exploration](word), hostile)
	},
	"page.Difference": func(w io.Writer, word string) error {
		run := page.DifferenceRun{History: hostileHistory(), Latencies: reports.NewLatencies(), Name: hostile, Page: hostile}
		return page.Difference(w, page.DifferenceInput{Difference: filled[reports.Difference](word), Runs: [2]page.DifferenceRun{run, run}})
	},
	"page.Run": func(w io.Writer, word string) error {
		in := page.RunInput{History: hostileHistory(), Latencies: reports.NewLatencies(), Command: hostile, Check: hostile, Picture: hostile}
		in.Run = filled[reports.Run](word)
		in.Run.Properties[0].Witness = in.History.Ops
		for i := range in.History.Ops {
			in.Latencies.Add(&in.History.Ops[i])
		}
		return page.Run(w, in)
	},
	"reports.WriteJSON": func(w io.Writer, word string) error { return reports.WriteJSON(w, filled[reports.Document](word)) },
}

// notDrawings are exported, but their output is not shown as it is.
var notDrawings = map[string]string{
	"reports.Latencies.WriteHGRM": "writes numbers only",
	"page.Entry.Name":             "is for the template, which escapes it",
	"ci.IsJUnit":                  "draws nothing",
	"text.IsGateMarkdown":         "draws nothing",
	"text.IsClaimsMarkdown":       "draws nothing",
}

// TestHostileTextsAreQuoted checks that no output, whatever the document holds, has control characters other than our
// line breaks, commands to GitHub Actions other than our own, or markup other than ours.
func TestHostileTextsAreQuoted(t *testing.T) {
	for name, draw := range drawings {
		for _, word := range []string{reports.Violated, reports.Inconclusive, reports.Pass, hostile} {
			var b bytes.Buffer
			if err := draw(&b, word); err != nil {
				t.Errorf("%s with %q: %v", name, word, err)
			}
			harmless(t, name, word, b.String())
			if name == "ci.JUnit" && xml.Unmarshal(b.Bytes(), new(struct {
				XMLName xml.Name `xml:"testsuites"`
			})) != nil {
				t.Errorf("%s: the JUnit file is no XML", word)
			}
		}
	}
}

// TestEveryDrawingIsLookedAt checks that every exported function of these packages (of package reports: every one
// that takes a writer) is in drawings or in notDrawings.
func TestEveryDrawingIsLookedAt(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{".", "text", "page", "ci"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files, %v", dir, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if name, exported := exportedName(f); exported && (dir != "." || takesWriter(f)) {
					found[file.Name.Name+"."+name] = true
				}
			}
		}
	}
	for name := range found {
		if drawings[name] == nil && notDrawings[name] == "" {
			t.Errorf("%s is not among the drawings of this test", name)
		}
	}
	for _, known := range slices.Concat(slices.Collect(maps.Keys(drawings)), slices.Collect(maps.Keys(notDrawings))) {
		if !found[known] {
			t.Errorf("%s does not exist: this test looks for the wrong names", known)
		}
	}
}

// exportedName returns the name of a function, or of a method with its type, and whether it is exported.
func exportedName(f *ast.FuncDecl) (name string, exported bool) {
	name = f.Name.Name
	exported = f.Name.IsExported()
	if f.Recv == nil {
		return name, exported
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	id, ok := of.(*ast.Ident)
	if !ok {
		return name, exported // a method of a generic type
	}
	return id.Name + "." + name, exported && id.IsExported()
}

// takesWriter reports whether an io.Writer is among the parameters.
func takesWriter(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		s, ok := p.Type.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Writer"
	})
}

// harmless checks that an output has nothing that a hostile text could smuggle in.
func harmless(t *testing.T, renderer, word, output string) {
	t.Helper()
	if !utf8.ValidString(output) {
		t.Errorf("%s with %q writes invalid UTF-8", renderer, word)
	}
	if i := strings.IndexFunc(output, func(r rune) bool { return !printable.Prints(r) && r != '\n' && r != '\t' }); i >= 0 {
		t.Errorf("%s with %q writes %+q", renderer, word, output[max(0, i-60):min(len(output), i+20)])
	}
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "::") && !strings.HasPrefix(line, "::error file=") || strings.Contains(line, "##[") {
			t.Errorf("%s with %q writes the line %.80q", renderer, word, line)
		}
	}
	markup := output
	switch {
	case strings.HasPrefix(renderer, "text.Terminal."), renderer == "ci.Annotations", renderer == "reports.WriteJSON":
		return // markup means nothing in these outputs
	case strings.HasSuffix(renderer, "Markdown"):
		var b strings.Builder
		if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(output), &b); err != nil {
			t.Fatal(err)
		}
		markup = b.String()
	}
	if i := strings.Index(strings.ToLower(markup), "<img"); i >= 0 {
		t.Errorf("%s with %.20q has markup in %.120q", renderer, word, markup[max(0, i-60):])
	}
}

// hostileHistory returns a history in which every text is hostile, and two clients hold one lock.
func hostileHistory() *history.History {
	h := &history.History{}
	fill(reflect.ValueOf(&h.Header).Elem(), hostile, 8)
	key := history.Text(hostile)
	at := func(kind history.Kind, client int32, call, end time.Duration) history.Op {
		return history.Op{Client: client, Kind: kind, Key: key, Arg: key, Result: key, Outcome: history.OK, Due: call, Call: call, Return: end, Until: end + time.Second}
	}
	h.Ops = []history.Op{
		at(history.Acquire, 1, 1e6, 2e6), at(history.Acquire, 2, 3e6, 4e6), at(history.Fault, 1, 4e6, 5e6),
		at(history.Buy, 1, 5e6, 6e6), at(history.Buy, 2, 7e6, 8e6), at(history.Release, 1, 9e6, 10e6), at(history.Release, 2, 11e6, 12e6),
	}
	return h
}

// TestJSONIsExact checks that unprintable characters are escaped, and that nothing is lost.
func TestJSONIsExact(t *testing.T) {
	var b bytes.Buffer
	in := []string{"\x1b\u202e\u009b\U000e0041 <b> 超卖", "plain"}
	if err := reports.WriteJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	var out []string
	if err := json.Unmarshal(b.Bytes(), &out); err != nil || !slices.Equal(in, out) {
		t.Errorf("%q became %q, %v", in, out, err)
	}
	if !strings.Contains(b.String(), `\u001b\u202e\u009b\udb40\udc41 <b> 超卖`) {
		t.Errorf("written: %s", b.String())
	}
}
