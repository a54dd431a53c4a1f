package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLeftOutTestsAreRunElsewhere checks the tests that one target of the Makefile skips by name in all packages: each exists, and
// another target runs it in every package that has a test of the name.
func TestLeftOutTestsAreRunElsewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + ` = (.*)$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("the Makefile sets no %s", name)
		}
		return string(m[1])
	}
	packages := map[string][]string{} // with a test, by its name
	files, err := filepath.Glob(filepath.Join(root, "*", "*_test.go"))
	for _, deeper := range []string{"*/*", "*/*/*"} {
		more, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(deeper), "*_test.go"))
		files = append(files, more...)
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(root, filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(source, -1) {
			name := string(m[1])
			packages[name] = append(packages[name], "oversell/"+filepath.ToSlash(rel))
		}
	}
	for _, tt := range []struct {
		tests string
		run   []string // the packages in which another target runs them, or variables with these
	}{
		{"SLOW_TESTS", []string{"SLOW_TESTS_OF", "LOADED", "SLOW"}},
		{"SEQUENTIAL_TESTS", []string{"SEQUENTIAL", "BESIDE"}},
		{"SLOW_CLIENTS", []string{"oversell/cmd/oversell"}},
	} {
		run := slices.Clone(tt.run)
		for _, of := range tt.run {
			if !strings.Contains(of, "/") {
				run = append(run, strings.Fields(value(of))...)
			}
		}
		for pattern := range strings.SplitSeq(value(tt.tests), "|") {
			var in []string
			var name string
			for test, of := range packages {
				if regexp.MustCompile("^" + pattern + "$").MatchString(test) {
					name, in = test, append(in, of...)
				}
			}
			if len(in) == 0 {
				t.Errorf("%s names %s, which does not exist", tt.tests, pattern)
			}
			for _, p := range in {
				if !slices.ContainsFunc(run, func(pattern string) bool { return matches(pattern, p) }) {
					t.Errorf("%s names %s of %s: no target runs it there, since %s has no such package", tt.tests, name, p, strings.Join(tt.run, " and "))
				}
			}
		}
	}
}

// matches reports whether a package matches a pattern, which may end in "/...".
func matches(pattern, path string) bool {
	prefix, below := strings.CutSuffix(pattern, "/...")
	return path == prefix || below && strings.HasPrefix(path, prefix+"/")
}
