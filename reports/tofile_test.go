package reports

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestToFile checks that a file is replaced as a whole or not at all.
func TestToFile(t *testing.T) {
	dir := t.TempDir()
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	expect := func(path, want string) {
		t.Helper()
		if b, _ := os.ReadFile(path); string(b) != want {
			t.Errorf("%s holds %q; want %q", filepath.Base(path), b, want)
		}
	}
	path, link := filepath.Join(dir, "a.json"), filepath.Join(dir, "link.json")
	if err := errors.Join(ToFile(path, text("first")), os.Chmod(path, 0o600), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	if err := ToFile(link, text("second")); err != nil {
		t.Error(err)
	}
	expect(path, "second")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v: %v", info, err)
	}
	half := func(w io.Writer) error { return errors.Join(text("half")(w), errors.New("no more")) }
	if ToFile(path, half) == nil || ToFile(filepath.Join(dir, "new"), half) == nil {
		t.Error("a failure is not reported")
	}
	expect(path, "second")
	if err := os.WriteFile(path+".part", []byte("somebody's"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := ToFile(path, text("third")); err != nil {
		t.Error(err)
	}
	expect(path, "third")
	expect(path+".part", "somebody's")
	if err := ToFile("/dev/null", text("lost")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device is %v: %v", info, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 3 { // a.json, a.json.part, link.json
		t.Errorf("left: %v", files)
	}
}
