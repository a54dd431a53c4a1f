// Command rename changes the path of this module to the one under which its owner publishes it:
//
//	go run ./internal/rename example.com/acme/oversell
//
// Run it in the root of the module. It changes imports, strings and links of the documentation that name a package,
// commands and directives that name the module, and go.mod. It does not change the command's name, the schemas of files
// and words in prose: it renames the module's path before a directory of the module, as in "oversell/lockimpl", or
// after a directive, as in "require oversell".
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/rename MODULE\n(make rename MODULE=example.com/acme/oversell does the same)")
		os.Exit(2)
	}
	changed, err := rename(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed; the module is %s\n", changed, os.Args[1])
}

// rename changes the path of the module in dir, and returns how many files it changed.
func rename(dir, path string) (changed int, err error) {
	old, err := command(dir, "list", "-m")
	if err != nil {
		return 0, err
	}
	if old == path {
		return 0, nil
	}
	// It refuses an invalid module path before it changes anything.
	if _, err := command(dir, "mod", "edit", "-module="+path); err != nil {
		return 0, err
	}
	files, err := textFiles(dir)
	if err != nil {
		return 0, err
	}
	r := newRenaming(old, path, topLevel(dir, files))
	for _, file := range files {
		did, err := r.file(filepath.Join(dir, file))
		if err != nil {
			return changed, err
		}
		if did {
			changed++
		}
	}
	return changed + 1, nil // and go.mod
}

// command returns the output of the go command. It ignores a workspace of the module.
func command(dir string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// textFiles lists the files in dir that may name the module, relative to dir.
func textFiles(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && slices.Contains([]string{".git", "oversell-runs", "dist"}, name):
			return filepath.SkipDir
		case d.Type().IsRegular():
			relative, err := filepath.Rel(dir, path)
			files = append(files, relative)
			return err
		}
		return nil
	})
	return files, err
}

// topLevel returns the directories in the root that contain Go files at any depth.
func topLevel(dir string, files []string) (dirs []string) {
	for _, file := range files {
		first, _, below := strings.Cut(filepath.ToSlash(file), "/")
		if below && strings.HasSuffix(file, ".go") && !slices.Contains(dirs, first) {
			dirs = append(dirs, first)
		}
	}
	return dirs
}

// renaming holds the search patterns and the replacement.
type renaming struct {
	old, path string
	// packages finds the path of a package: its beginning, and the text before it.
	packages *regexp.Regexp
	// directives finds the module after a word or a flag that takes one, as in go.mod and in the arguments of go mod
	// edit.
	directives *regexp.Regexp
}

func newRenaming(old, path string, dirs []string) renaming {
	for i, d := range dirs {
		dirs[i] = regexp.QuoteMeta(d)
	}
	quoted := regexp.QuoteMeta(old)
	return renaming{
		old: old, path: path,
		packages:   regexp.MustCompile(`(^|[^\w./-])` + quoted + `/((?:` + strings.Join(dirs, "|") + `)\b)`),
		directives: regexp.MustCompile(`((?:\b|\\n)(?:module|require|replace|go get) |-(?:module|require|replace)=)` + quoted + `([\s@="'\\]|$)`),
	}
}

// file renames in one file, and reports whether anything changed.
func (r renaming) file(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil || bytes.IndexByte(text, 0) >= 0 || !bytes.Contains(text, []byte(r.old)) {
		return false, err
	}
	renamed, err := r.text(text, strings.HasSuffix(path, ".go"))
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if bytes.Equal(renamed, text) {
		return false, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return true, os.WriteFile(path, renamed, info.Mode().Perm())
}

func (r renaming) text(text []byte, isGo bool) ([]byte, error) {
	to := []byte("${1}" + strings.ReplaceAll(r.path, "$", "$$"))
	renamed := r.packages.ReplaceAll(text, append(to, "/${2}"...))
	renamed = r.directives.ReplaceAll(renamed, append(to, "${2}"...))
	if !isGo {
		return renamed, nil
	}
	renamed = bytes.ReplaceAll(renamed, []byte(`"`+r.old+`/"`), []byte(`"`+r.path+`/"`))
	formatted, err := format.Source(renamed) // imports are sorted
	if err != nil {
		return nil, errors.Join(errors.New("not Go after the renaming"), err)
	}
	return formatted, nil
}
