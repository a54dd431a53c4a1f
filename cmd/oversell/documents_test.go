package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/variant"
)

// shown is a command line that a document shows.
type shown struct{ document, line string }

// documentedElsewhere are documents whose commands are run by tests of their own: those of the failure matrix and of
// the claims.
var documentedElsewhere = map[string]bool{"faults.md": true, "claims.md": true}

// commandsShown returns the commands in the code of README.md and docs, each once.
func commandsShown(t *testing.T) (all []shown) {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, path := range append([]string{"../../README.md"}, paths...) {
		if documentedElsewhere[filepath.Base(path)] {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		err = ast.Walk(goldmark.New().Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			_, indented := n.(*ast.CodeBlock)
			_, fenced := n.(*ast.FencedCodeBlock)
			if !entering || !indented && !fenced {
				return ast.WalkContinue, nil
			}
			for _, line := range strings.Split(string(n.Lines().Value(source)), "\n") {
				line = strings.TrimPrefix(commented.ReplaceAllString(line, ""), "$ ")
				if strings.HasPrefix(line, "oversell ") && !seen[line] {
					seen[line] = true
					all = append(all, shown{filepath.Base(path), line})
				}
			}
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// longRunning matches commands that run for more than a few seconds, or need more than a redis-server. Only the long
// tests run them.
var longRunning = regexp.MustCompile(`^oversell (compare|claims|gate|explore$|run$|run --clients 5000|run --scenario (queue|ids|dispatch)\b)|--lock fenced --sale fenced|--lock redlock|--fault|lock-flawed.yaml|--target container|--times 20|--clients 3\b|--queue reliable --crashes|--topology sentinel|--engine mux|--stages|explore --system|--rate 5k|--rate 300|--clients 1000|--hold 80ms|--scenario mutex --(system|lock fair)`)

// notRun matches commands that other tests run, because they go on until they are stopped, open a browser, or alter
// the home directory.
var notRun = regexp.MustCompile(`^oversell (proxy|completion|man|version)\b|--open\b|--metrics|redis://|examples/shop/`)

// TestCommandsOfTheDocumentsRun runs every command in README.md and docs as shown, in a directory with the files that
// the documents name. It checks only that the command is not refused and does not fail; other tests check the
// results.
func TestCommandsOfTheDocumentsRun(t *testing.T) {
	servertest.NeedServer(t)
	dir := documentsDirectory(t)
	all := os.Getenv("OVERSELL_LONG") != ""
	ran := 0
	for _, c := range commandsShown(t) {
		if notRun.MatchString(c.line) || longRunning.MatchString(c.line) && !all {
			continue
		}
		ran++
		t.Run(c.document+" "+c.line, func(t *testing.T) {
			if !all {
				t.Parallel()
			}
			if out, code := inShell(t, dir, c.line); code == reports.ExitUsage || code == reports.ExitEnvironment || code > reports.ExitEnvironment {
				t.Errorf("exit %d:\n%s", code, out)
			}
		})
	}
	if ran < 18 {
		t.Errorf("only %d commands were found", ran)
	}
}

// inShell runs a command line in dir as a user does, and returns its output and exit code.
func inShell(t *testing.T, dir, line string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":/usr/bin:"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// documentsDirectory returns a directory that has this program as oversell, and the files that the documents name.
func documentsDirectory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asOversell, binary)
	err = errors.Join(
		os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "bin", "oversell"), []byte(script), 0o755),
		os.Symlink(filepath.Join(repository, "examples"), filepath.Join(dir, "examples")),
		os.Symlink(filepath.Join(repository, "examples/gate/gate.yaml"), filepath.Join(dir, "gate.yaml")))
	if err := errors.Join(err, ownLock(filepath.Join(repository, "docs", "systems.md"), dir)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"oversell run --target embedded --clients 4 --stock 20 --jsonl --out oversell-runs/20260102-150405",
		"oversell explore --lock php-lock --property mutual-exclusion --json >trace.json",
		"ln -s oversell-runs/20260102-150405 before && cp -r oversell-runs/20260102-150405 after",
		"cp trace.json explore-01-mutex-php-lock.json",
		"cp oversell-runs/20260102-150405/01-seckill-none-plain/history.jsonl history.jsonl",
		"oversell compare --lock none --sale lua,plain --clients 4 --stock 20 --target embedded --quick --rounds 1 --measure 100ms --json >comparison.json",
	} {
		if out, code := inShell(t, dir, line); code == reports.ExitUsage || code >= reports.ExitEnvironment {
			t.Fatalf("%s: exit %d:\n%s", line, code, out)
		}
	}
	return dir
}

// ownLock writes the lock that docs/systems.md shows, and its system file, to dir.
func ownLock(document, dir string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	_, section, _ := strings.Cut(string(text), "## Your own lock\n")
	for language, name := range map[string]string{"python": "lock.py", "yaml": "lock.yaml"} {
		_, code, _ := strings.Cut(section, "```"+language+"\n")
		code, _, shown := strings.Cut(code, "```")
		if !shown {
			return fmt.Errorf("%s shows no %s", document, name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// TestDocumentedProperties checks that docs/properties.md lists the properties that are judged.
func TestDocumentedProperties(t *testing.T) {
	source, err := os.ReadFile("../../docs/properties.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, p := range variant.Properties {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", p.Name, p.Of, p.Promise)
	}
	_, table, _ := strings.Cut(string(source), "|---|---|---|\n")
	rows, _, _ := strings.Cut(table, "\n\n")
	if rows += "\n"; rows != want.String() {
		t.Errorf("docs/properties.md has\n%swant\n%s", rows, want.String())
	}
}

// TestReadmeIsAScreenOrTwo checks that README.md has at most 150 lines, and shows nothing wider than 100 columns.
func TestReadmeIsAScreenOrTwo(t *testing.T) {
	source, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(source), "\n"), "\n")
	if len(lines) > 150 {
		t.Errorf("README.md has %d lines; 150 are enough", len(lines))
	}
	for i, line := range lines {
		if code, ok := strings.CutPrefix(line, "    "); ok && len([]rune(code)) > 100 {
			t.Errorf("README.md:%d: the code is %d columns wide; a terminal may have 100", i+1, len([]rune(code)))
		}
	}
}
