package layout

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sameLevel lists the imports that are allowed within a level: variant.Env contains a clock.
var sameLevel = map[string]string{"variant": "clock"}

func TestImportsRunDownward(t *testing.T) {
	level := map[string]int{}
	for i, names := range Levels {
		for _, n := range names {
			level[n] = i
		}
	}
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != "." && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "oversell-runs") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		if pkg == "internal/layout" {
			return nil
		}
		mine, known := level[pkg]
		if !known {
			t.Errorf("%s: package %s is not in Levels", path, pkg)
			return nil
		}
		seen[pkg] = true
		for _, imported := range importsOf(t, path) {
			theirs, known := level[imported]
			if known && theirs >= mine && sameLevel[pkg] != imported {
				t.Errorf("%s (level %d) imports %s (level %d): imports run strictly downward", path, mine, imported, theirs)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range level {
		if !seen[name] {
			t.Errorf("Levels names %s, which does not exist", name)
		}
	}
}

// TestTestingStaysInTests checks that only the conformance suites and test files import package testing.
func TestTestingStaysInTests(t *testing.T) {
	for _, names := range Levels {
		for _, n := range names {
			if strings.HasSuffix(n, "test") {
				continue
			}
			files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(n), "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if strings.HasSuffix(f, "_test.go") {
					continue
				}
				if slices.Contains(importsOf(t, f), "testing") {
					t.Errorf("%s imports testing", f)
				}
			}
		}
	}
}

// mostLines is how many lines of Go a package may have, without its tests, but with blank lines and comments. A larger
// package does more than its name says.
const mostLines = 5000

// TestSize checks that no package has more than mostLines lines.
func TestSize(t *testing.T) {
	for _, names := range Levels {
		for _, n := range names {
			files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(n), "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			lines := 0
			for _, f := range files {
				if strings.HasSuffix(f, "_test.go") {
					continue
				}
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				lines += strings.Count(string(text), "\n")
			}
			if lines > mostLines {
				t.Errorf("package %s has %d lines of Go, without tests; at most %d are allowed: split it along a seam, so that a reader finds each part by its name", n, lines, mostLines)
			}
		}
	}
}

// TestScriptsAreCommented checks that every Lua script begins with a comment, and that a comment explains its keys: one of
// its own, or one in the code that scripts of the package share.
func TestScriptsAreCommented(t *testing.T) {
	explained := regexp.MustCompile(`(?m)^ *--.*KEYS\[1\]`)
	for _, names := range Levels {
		for _, n := range names {
			files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(n), "*.lua"))
			if err != nil {
				t.Fatal(err)
			}
			scripts, shared := map[string]string{}, ""
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				scripts[f] = string(text)
				if strings.HasSuffix(f, "common.lua") {
					shared += scripts[f]
				}
			}
			for f, text := range scripts {
				if !strings.HasPrefix(text, "-- ") || strings.Contains(text, "KEYS[") && !explained.MatchString(text+shared) {
					t.Errorf("%s does not begin with a comment, or does not explain its keys", f)
				}
			}
		}
	}
}

// importsOf returns the import paths of a file; those of the module's own packages are without the module path.
func importsOf(t *testing.T, path string) (paths []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, strings.TrimPrefix(p, "oversell/"))
	}
	return paths
}

// TestDocumented checks that CONTRIBUTING.md names every package that is not internal.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range Levels {
		for _, n := range names {
			if strings.HasPrefix(n, "internal/") || strings.HasPrefix(n, "server/") || n == "database/databasetest" {
				continue
			}
			if !strings.Contains(string(text), "`"+n+"`") {
				t.Errorf("CONTRIBUTING.md does not name %s", n)
			}
		}
	}
}
