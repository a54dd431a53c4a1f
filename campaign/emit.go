package campaign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"unicode"

	"oversell/explore"
	"oversell/internal/phrase"
	"oversell/reports"
)

// errEmit means that no test can be written at a path.
var errEmit = errors.New("no test can be written")

// CheckTest reports in advance whether a test can be written to path.
func CheckTest(path string) error {
	if !strings.HasSuffix(path, "_test.go") {
		return fmt.Errorf("%w to %s: the name of a Go test ends in _test.go", errEmit, path)
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w to %s: the file exists already", errEmit, path)
	}
	if _, err := packageIn(filepath.Dir(path)); err != nil {
		return err
	}
	err := writable("--emit-test", path)
	if err != nil && !errors.Is(err, ErrUnwritable) {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return err
}

// WriteTest writes a Go test that replays the schedule of a counterexample, and fails while it breaks its promise.
// The test compiles in a module that can import oversell/lockimpl/locktest. Its package is that of the other files
// in the directory.
func WriteTest(path string, e reports.Exploration) error {
	if err := CheckTest(path); err != nil {
		return err
	}
	name, err := packageIn(filepath.Dir(path))
	if err != nil {
		return err
	}
	text, err := testSource(name, e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// packageIn returns the package of a test in dir. Beside code it is the external test package, to avoid conflicts
// of names.
func packageIn(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, f := range files {
		if f.IsDir() || !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.PackageClauseOnly)
		if err != nil {
			return "", fmt.Errorf("%w beside a file that is not valid Go: %w", errEmit, err)
		}
		return strings.TrimSuffix(parsed.Name.Name, "_test") + "_test", nil
	}
	return ownPackage, nil
}

// ownPackage is the package of a test in a directory without other Go files.
const ownPackage = "regression"

// OwnPackage returns the package of a test written to path, if it is the only Go file there; otherwise "".
func OwnPackage(path string) string {
	files, _ := filepath.Glob(filepath.Join(GlobEscape(filepath.Dir(path)), "*.go"))
	if len(files) > 1 {
		return ""
	}
	return ownPackage
}

// testSource returns the formatted source of the test.
func testSource(name string, e reports.Exploration) ([]byte, error) {
	if e.System != "" {
		return nil, fmt.Errorf("%w: the schedule is one of %s, whose code is not Go: replay it with %s", errEmit, e.System, "oversell explore --replay")
	}
	if _, err := explore.ConfigOf(e); err != nil {
		return nil, err
	}
	trace, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := testTemplate.Execute(&b, map[string]any{
		"Package":  name,
		"Name":     testName(e),
		"Title":    e.Title(),
		"Sentence": phrase.OneLine(e.Counterexample.Sentence),
		"Steps":    len(e.Counterexample.Steps),
		"Property": e.Counterexample.Property,
		"Trace":    "`" + strings.ReplaceAll(string(trace), "`", "` + \"`\" + `") + "`",
	}); err != nil {
		return nil, err
	}
	return format.Source(b.Bytes())
}

// testName describes what was searched and what broke.
func testName(e reports.Exploration) string {
	var b strings.Builder
	for _, part := range []string{e.Lock, e.Sale, e.Queue, e.IDs, string(e.Counterexample.Property)} {
		for word := range strings.FieldsFuncSeq(part, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

var testTemplate = template.Must(template.New("test").Parse(`package {{.Package}}

import (
	"testing"

	"oversell/lockimpl/locktest"
)

// Test{{.Name}} drives a schedule against a real Redis that oversell explore
// found, of {{.Steps}} steps ({{.Title}}). It fails as long as that breaks {{.Property}}:
//
//	{{.Sentence}}
func Test{{.Name}}(t *testing.T) { locktest.Replay(t, []byte(trace{{.Name}})) }

const trace{{.Name}} = {{.Trace}}
`))
