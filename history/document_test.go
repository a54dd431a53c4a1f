package history

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oversell/variant"
)

// document returns the text of docs/history.md.
func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table returns the cells of the table whose first line begins with this text.
func table(t *testing.T, head string) (rows [][]string) {
	t.Helper()
	_, rest, found := strings.Cut(document(t), "\n"+head)
	if !found {
		t.Fatalf("docs/history.md has no table that begins with %q", head)
	}
	lines := strings.Split(rest, "\n")[2:]
	for _, line := range lines {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

var inCode = regexp.MustCompile("`([^`]*)`")

// code returns the pieces of code in a cell.
func code(cell string) (words []string) {
	for _, m := range inCode.FindAllStringSubmatch(cell, -1) {
		words = append(words, m[1])
	}
	return words
}

// column returns the pieces of code in a column of a table.
func column(rows [][]string, i int) (words []string) {
	for _, row := range rows {
		words = append(words, code(row[i])...)
	}
	return words
}

func section(t *testing.T, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(document(t), "\n## "+name+"\n")
	if !found {
		t.Fatalf("docs/history.md has no section %q", name)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// fieldsIn returns the fields in the table at the beginning of a section.
func fieldsIn(t *testing.T, name string) (words []string) {
	t.Helper()
	_, rest, _ := strings.Cut(section(t, name), "|---|---|\n")
	for line := range strings.SplitSeq(rest, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		words = append(words, code(strings.Split(line, "|")[1])...)
	}
	return words
}

// same compares the names in the document with those in the code.
func same(t *testing.T, what string, told, is []string) {
	t.Helper()
	for _, name := range is {
		if !slices.Contains(told, name) {
			t.Errorf("%s: docs/history.md does not explain %q", what, name)
		}
	}
	for i, name := range told {
		if !slices.Contains(is, name) {
			t.Errorf("%s: docs/history.md explains %q, and there is no such", what, name)
		}
		if slices.Contains(told[:i], name) {
			t.Errorf("%s: docs/history.md explains %q twice", what, name)
		}
	}
}

// TestDocumentedNames checks that docs/history.md has every field, kind, reason and property, and no others.
func TestDocumentedNames(t *testing.T) {
	same(t, "header", fieldsIn(t, "The header"), fieldNames[sealedHeader]())
	same(t, "operation", fieldsIn(t, "Operations"), opFields)
	same(t, "trailer", fieldsIn(t, "The trailer"), fieldNames[sealed]())
	same(t, "kind", column(table(t, "| kind |"), 0), kindNames[1:])
	reasons := table(t, "| reason |")
	same(t, "reason", column(reasons, 0), reasonNames[1:])
	for _, row := range reasons {
		if want := row[0] == "`repeated`"; (row[1] == "ok") != want {
			t.Errorf("%s comes with %s", row[0], row[1])
		}
	}
	for _, name := range outcomeNames {
		if !strings.Contains(section(t, "Operations"), "`"+name+"`") {
			t.Errorf("docs/history.md does not explain the outcome %q", name)
		}
	}
	var told, is []string
	for _, row := range table(t, "| of | property |") {
		told = append(told, row[0]+" "+strings.Trim(row[1], "`"))
	}
	for _, p := range variant.Properties {
		is = append(is, fmt.Sprintf("%s %s", p.Of, p.Name))
	}
	same(t, "property", told, is)
	faults := code(regexp.MustCompile("(?m)^\\| `faults` \\| what became.*$").FindString(document(t)))
	same(t, "fault", faults[1:], fieldNames[FaultCount]())
}

// TestDocumentedKinds checks that an operation with the fields that docs/history.md requires is read, and that it is
// refused if any of them is missing.
func TestDocumentedKinds(t *testing.T) {
	objects := map[string]variant.Object{"sale": variant.Sale, "lock": variant.Lock, "queue": variant.Queue, "ids": variant.IDs, "dispatch": variant.Dispatch}
	values := map[string]string{"arg": `"a"`, "result": `5`, "session": `"s"`, "key": `"k"`, "amount": "1", "fence": "7", "until_ns": "90"}
	for _, row := range table(t, "| kind |") {
		kind := strings.Trim(row[0], "`")
		k, _ := ParseKind(kind)
		if got := objectOf[k.class()]; got != objects[row[1]] && k != Peek {
			t.Errorf("%s is about %q, and in docs/history.md about %q", kind, got, row[1])
		}
		read := func(fields []string) error {
			line := fmt.Sprintf(`{"client":1,"kind":%q,"outcome":"ok","call_ns":50,"return_ns":60`, kind)
			for _, f := range fields {
				line += fmt.Sprintf(",%q:%s", f, values[f])
			}
			key := ""
			if slices.Contains(fields, "key") {
				key = `,"key":"k"`
			}
			context := []string{
				fmt.Sprintf(`{"client":8,"kind":"buy","arg":"a","outcome":"ok","call_ns":1,"return_ns":2%s}`, key),
				fmt.Sprintf(`{"client":9,"kind":"pop","result":"a","session":"s","outcome":"ok","call_ns":3,"return_ns":4%s}`, key),
			}
			if kind == "pop" || kind == "buy" {
				context = nil
			}
			_, err := ReadFrom(strings.NewReader(foreignText(`,"stock":5,"promises":[]`, append(context, line+"}")...)))
			return err
		}
		must, may := code(row[2]), code(row[3])
		if err := read(must); err != nil {
			t.Errorf("%s with %v: %v", kind, must, err)
		}
		if err := read(slices.Concat(must, may)); err != nil {
			t.Errorf("%s with %v and %v: %v", kind, must, may, err)
		}
		for i, f := range must {
			if err := read(slices.Delete(slices.Clone(must), i, i+1)); err == nil {
				t.Errorf("%s is read without %s", kind, f)
			}
		}
		for _, f := range slices.Concat(must, may) {
			if values[f] == "" {
				t.Errorf("%s: what is %s?", kind, f)
			}
		}
	}
}

// TestDocumentedAssumptions checks that docs/history.md names the promises that are assumed.
func TestDocumentedAssumptions(t *testing.T) {
	text := strings.Join(strings.Fields(section(t, "Promises")), " ")
	for _, p := range Assumed {
		if want := fmt.Sprintf("`%s` of the %s", p.Property, p.Of); !strings.Contains(text, want) {
			t.Errorf("docs/history.md does not say that %s is assumed", want)
		}
	}
}

// TestDocumentedWriter checks that docs/history.md shows the writer as it is, and that it is short.
func TestDocumentedWriter(t *testing.T) {
	writer, err := os.ReadFile("../examples/history/history.py")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(writer), "\n"); n > 40 {
		t.Errorf("examples/history/history.py has %d lines", n)
	}
	if !strings.Contains(document(t), "```python\n"+string(writer)+"```\n") {
		t.Error("docs/history.md shows another examples/history/history.py")
	}
	_, rest, _ := strings.Cut(document(t), "```json\n")
	smallest, _, _ := strings.Cut(rest, "```")
	if h, err := ReadFrom(strings.NewReader(smallest)); err != nil || h.Trailer == nil || len(h.Ops) != 2 {
		t.Errorf("the smallest history: %+v, %v", h, err)
	}
}
