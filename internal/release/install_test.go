package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// code returns the code under a heading of a document, block by block.
func code(t *testing.T, path, heading string) (blocks []string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	under := ""
	for n := goldmark.New().Parser().Parse(text.NewReader(source)).FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			under = string(n.Lines().Value(source))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if under == heading {
				blocks = append(blocks, string(n.Lines().Value(source)))
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no code under %q", path, heading)
	}
	return blocks
}

// TestInstall carries out, line by line, what README.md says under "Install" and "Test your own", and what docs/install.md
// says about workspaces and the shell, in a directory that has nothing to do with this repository.
func TestInstall(t *testing.T) {
	repository := copied(t)
	for _, words := range [][]string{
		{"init", "--quiet"}, {"add", "--all"},
		{"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--no-verify", "--message=all"},
	} {
		did(t, repository, append([]string{"git"}, words...)...)
	}
	modules := code(t, "docs/install.md", "In your module")
	lines := append([]string{"set -euxo pipefail"}, code(t, "README.md", "Install")...)
	lines = append(lines, code(t, "README.md", "Test your own")[0], modules[1])
	lines = append(lines, code(t, "docs/install.md", "Completion and man pages")...)
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	script := exec.CommandContext(t.Context(), "bash", "-c", strings.Join(lines, "\n"))
	script.Dir = t.TempDir()
	script.Env = environment("URL="+repository, "HOME="+home, "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOENV="+goEnv(t, "GOENV"),
		"GOFLAGS="+goEnv(t, "GOFLAGS")+" -trimpath -vet=off") // "make vet" has checked all that is tested
	out, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"\noversell ", "ok  \texample.com/shop\t"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the lines print no %q:\n%s", want, out)
		}
	}
	mod, err := os.ReadFile(filepath.Join(script.Dir, "shop", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(modules[0]), "\n") {
		directive, what, _ := strings.Cut(line, " ")
		if !strings.Contains(string(mod), what) {
			t.Errorf("the go.mod of the lines in README.md does not have the %s directive of docs/install.md, %q:\n%s", directive, what, mod)
		}
	}
	for _, file := range []string{".local/share/bash-completion/completions/oversell", ".local/share/man/man1/oversell-run.1"} {
		if info, err := os.Stat(filepath.Join(home, file)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

func goEnv(t *testing.T, name string) string {
	return strings.TrimSpace(did(t, root, "go", "env", name))
}
