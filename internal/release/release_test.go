// Package release tests the ways to get this program: by the commands in README.md, under another module path, as a
// released program, as an image, and as an action in a workflow.
package release

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The version and the commit of the releases that these tests build.
const (
	version = "v0.0.0-test"
	commit  = "0123456789abcdef0123456789abcdef01234567"
)

const root = "../.."

// long reports whether the long tests run.
var long = os.Getenv("OVERSELL_LONG") != ""

// environment returns the environment of all commands in these tests. The go command compiles as for a release, so that
// libraries are compiled only once for all tests.
func environment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GITHUB_") || strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "OVERSELL_LONG=")
	})
	flags, _ := exec.Command("go", "env", "GOFLAGS").Output() // without them, only the defaults would be lost
	env = append(env, "CGO_ENABLED=0", "GOFLAGS="+strings.TrimSpace(string(flags))+" -trimpath", "VERSION="+version, "COMMIT="+commit)
	return append(env, more...)
}

// did runs a command and returns what it prints.
func did(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// copied makes a copy of this module as it is now, and returns its directory.
func copied(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "oversell")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "dist", "oversell-runs"}, d.Name()) {
			return filepath.SkipDir
		}
		// In a linked work tree, .git is a file; a copy with that file would belong to the same work tree.
		if !d.Type().IsRegular() || d.Name() == ".git" || path == root+"/oversell" {
			return nil
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, root))
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		return os.WriteFile(to, text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sums returns the checksums of all files in dir.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		all[strings.TrimPrefix(path, dir+"/")] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRelease builds a release twice, in two directories. It checks that both have the same bytes, and that the program
// needs no libraries and knows its version.
func TestRelease(t *testing.T) {
	name := "oversell-" + runtime.GOOS + "-" + runtime.GOARCH
	var released []map[string]string
	var dist string
	for range 2 {
		dir := copied(t)
		did(t, dir, "make", "release", "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH)
		dist = filepath.Join(dir, "dist")
		released = append(released, sums(t, dist))
	}
	if a, b := released[0], released[1]; len(a) != 2 || a[name] == "" || a[name] != b[name] || a["SHA256SUMS"] != b["SHA256SUMS"] {
		t.Errorf("two builds are not the same %s and SHA256SUMS:\n%v\n%v", name, a, b)
	}
	if line, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS")); err != nil || string(line) != released[1][name]+"  "+name+"\n" {
		t.Errorf("SHA256SUMS has %q (%v), and the sum is %s", line, err, released[1][name])
	}
	program := filepath.Join(dist, name)
	if said := did(t, dist, program, "version"); !strings.HasPrefix(said, "oversell "+version+" (commit "+commit+", "+runtime.Version()+" ") {
		t.Errorf("it says %q", said)
	}
	if said := did(t, dist, program, "list"); !strings.Contains(said, "lua-release") {
		t.Errorf("it lists\n%s", said)
	}
	static(t, program)
}

// static checks that a program for Linux loads no libraries and is stripped.
func static(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s has a %v: it loads libraries", path, p.Type)
		}
	}
	if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
		t.Errorf("%s is not stripped", path)
	}
}

// TestReleaseForAll builds releases for all platforms, which takes minutes.
func TestReleaseForAll(t *testing.T) {
	if !long {
		return // "make long" runs it
	}
	dir := copied(t)
	did(t, dir, "make", "release")
	for name, magic := range map[string]string{
		"linux-amd64": "\x7fELF", "linux-arm64": "\x7fELF", "darwin-amd64": "\xcf\xfa\xed\xfe", "darwin-arm64": "\xcf\xfa\xed\xfe",
	} {
		program, err := os.ReadFile(filepath.Join(dir, "dist", "oversell-"+name))
		if err != nil || !bytes.HasPrefix(program, []byte(magic)) {
			t.Errorf("%s: %v, begins with %q", name, err, program[:min(4, len(program))])
		}
	}
	did(t, filepath.Join(dir, "dist"), "sha256sum", "--check", "SHA256SUMS")
}
