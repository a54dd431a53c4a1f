package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
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
)

// hostile is a text that no output may hold as it is.
const hostile = "\x1b]0;title\x07\u202e<img src=x onerror=alert(1)>\n::error::gone\r\n::set-output name=a::b\n##[error]x\u009b\xff`|*&\"'%0A\u2028\ufeff"

// fill makes every text in v hostile, but for those that are words of ours, which are
// word. Slices get two elements, maps one, and pointers something to point to.
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
			v.Set(reflect.MakeSlice(v.Type(), 2, 2)) // numbers are 1, and some are indices
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

// filled is a hostile document.
func filled(t reflect.Type, word string) reflect.Value {
	v := reflect.New(t).Elem()
	fill(v, word, 8)
	return v
}

// TestHostileTextsAreQuoted: whatever a document holds, and whatever renders it, what
// comes out has no control characters but line breaks of ours, no commands to GitHub
// Actions but our own, and no markup but ours. Methods of Terminal, and methods of the
// documents that write, are found by themselves.
func TestHostileTextsAreQuoted(t *testing.T) {
	rendered := 0
	for _, word := range []string{reports.Violated, reports.Inconclusive, reports.Pass, hostile} {
		documents := []reflect.Type{reflect.TypeFor[reports.Explorations]()}
		terminal := reflect.TypeFor[reports.Terminal]()
		for i := range terminal.NumMethod() {
			m := terminal.Method(i)
			if m.Type.NumIn() != 2 {
				t.Fatalf("Terminal.%s takes other than one document: extend this test", m.Name)
			}
			documents = append(documents, m.Type.In(1))
			var b bytes.Buffer
			out := m.Func.Call([]reflect.Value{reflect.ValueOf(reports.Terminal{W: &b}), filled(m.Type.In(1), word)})
			harmless(t, "Terminal."+m.Name, word, b.String(), out)
			rendered++
		}
		for _, d := range documents {
			for i := range d.NumMethod() {
				m := d.Method(i)
				if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[io.Writer]() {
					continue
				}
				var b bytes.Buffer
				in := []reflect.Value{filled(d, word), reflect.ValueOf(&b)}
				for i := 2; i < m.Type.NumIn(); i++ {
					in = append(in, filled(m.Type.In(i), word))
				}
				out := m.Func.Call(in)
				harmless(t, d.Name()+"."+m.Name, word, b.String(), out)
				if m.Name == "JUnit" && xml.Unmarshal(b.Bytes(), new(struct {
					XMLName xml.Name `xml:"testsuites"`
				})) != nil {
					t.Errorf("%s: the JUnit file is no XML", word)
				}
				rendered++
			}
		}
		for name, page := range map[string]func(io.Writer) error{
			"Overview": func(w io.Writer) error {
				return Overview(w, filled(reflect.TypeFor[OverviewInput](), word).Interface().(OverviewInput))
			},
			"RunPage": func(w io.Writer) error {
				in := RunInput{History: hostileHistory(), Latencies: reports.NewLatencies(), Command: hostile, Check: hostile, Picture: hostile}
				fill(reflect.ValueOf(&in.Run).Elem(), word, 8)
				in.Run.Properties[0].Witness = in.History.Ops
				for _, op := range in.History.Ops {
					in.Latencies.Add(op)
				}
				return Run(w, in)
			},
			"ComparisonPage": func(w io.Writer) error {
				return Comparison(w, filled(reflect.TypeFor[reports.Comparison](), word).Interface().(reports.Comparison))
			},
			"ExplorationPage": func(w io.Writer) error {
				return Exploration(w, filled(reflect.TypeFor[reports.Exploration](), word).Interface().(reports.Exploration))
			},
			"WriteJSON": func(w io.Writer) error {
				return reports.WriteJSON(w, filled(reflect.TypeFor[reports.Document](), word).Interface())
			},
		} {
			var b bytes.Buffer
			harmless(t, name, word, b.String(), []reflect.Value{reflect.ValueOf(errorOf(page(&b)))})
			harmless(t, name, word, b.String(), nil)
			rendered++
		}
	}
	if rendered < 4*15 {
		t.Errorf("only %d renderings were looked at", rendered)
	}
}

// errorOf keeps a nil error a value that can be asked.
func errorOf(err error) error {
	if err == nil {
		return errors.New("")
	}
	return err
}

// harmless looks for what must not be in an output.
func harmless(t *testing.T, renderer, word, output string, results []reflect.Value) {
	t.Helper()
	for _, r := range results {
		if err, failed := r.Interface().(error); failed && err.Error() != "" {
			t.Errorf("%s with %q: %v", renderer, word, err)
		}
	}
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
	page := output
	switch {
	case strings.HasPrefix(renderer, "Terminal."), strings.HasSuffix(renderer, ".Annotations"), renderer == "WriteJSON":
		return // markup means nothing there
	case strings.HasSuffix(renderer, ".Markdown"):
		var b strings.Builder
		if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(output), &b); err != nil {
			t.Fatal(err)
		}
		page = b.String()
	}
	if i := strings.Index(strings.ToLower(page), "<img"); i >= 0 {
		t.Errorf("%s with %.20q has markup in %.120q", renderer, word, page[max(0, i-60):])
	}
}

// hostileHistory is a history in which every text is hostile, and two hold one lock.
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

// TestJSONIsExact: what does not print is escaped, and nothing is lost.
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
