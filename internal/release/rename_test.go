package release

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRename checks that a sample of the module builds and passes its tests under another module path (in "make long", all
// of it builds), and that renaming it back restores every byte.
func TestRename(t *testing.T) {
	const path = "example.com/acme/over.sell/v3"
	dir := copied(t)
	ours := strings.TrimSpace(did(t, dir, "go", "list", "-m"))
	before := sums(t, dir)
	if said := did(t, dir, "make", "rename", "MODULE="+path); !strings.Contains(said, "the module is "+path) {
		t.Errorf("make rename says %q", said)
	}
	for file, want := range map[string]string{
		"Makefile":                      " " + path + "/cmd/oversell\n",
		"README.md":                     "go mod edit -require=" + path + "@v0.0.0 -replace=" + path + "=../oversell\n",
		"docs/install.md":               "    replace " + path + " => ../oversell\n",
		"docs/explore.md":               "`" + path + "/lockimpl/locktest`",
		"explore/explore.go":            "[" + path + "/internal/coro]",
		"lockimpl/locktest/locktest.go": "//\t\t\"" + path + "/variant\"\n",
		"history/header.go":             `Schema = "oversell-history/`,
		"campaign/command.go":           `words: []string{"oversell", "run"}`,
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, it does not have %q", file, err, want)
		}
	}
	left := regexp.MustCompile(`"` + regexp.QuoteMeta(ours) + `/[a-z]+(/[a-z]+)*"`)
	for file := range before {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || strings.HasSuffix(file, ".go") && left.Match(text) {
			t.Errorf("%s: %v, still has %s", file, err, left.Find(text))
		}
	}
	did(t, dir, "go", "list", "-deps", "-test", "./...") // fails if an import is not found
	sample := []string{"go", "test", "-vet=off", "./internal/layout", "./variant", "./clock"}
	if long {
		program := filepath.Join(t.TempDir(), "oversell")
		did(t, dir, "go", "build", "-o", program, "./cmd/oversell")
		if said := did(t, dir, program, "version"); !strings.HasPrefix(said, "oversell ") || !strings.Contains(said, "oversell-history/") {
			t.Errorf("it says %q", said)
		}
		did(t, dir, "go", "vet", "./...")
		sample = append(sample, "./lockimpl/...", "./campaign/...", "./explore", "./cmd/oversell")
	}
	did(t, dir, sample...)
	did(t, dir, "make", "rename", "MODULE="+ours)
	after := sums(t, dir)
	if !maps.Equal(before, after) {
		for file, sum := range before {
			if after[file] != sum {
				t.Errorf("%s is not as it was", file)
			}
		}
	}
}
