package campaign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrUsed means that the plan's directory holds another run or is not a directory.
var ErrUsed = errors.New("the directory cannot be used")

// ErrUnwritable means that a path cannot be written: an environment error.
var ErrUnwritable = errors.New("nothing can be written there")

// CheckDirectory returns an error if path cannot be a directory: it or a parent is a file, or it cannot be created or
// written. A missing directory is not an error.
func CheckDirectory(path string) error {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil {
			if !info.IsDir() {
				return fmt.Errorf("%w: %s is not a directory: choose another --out", ErrUsed, at)
			}
			if err := receives(at); err != nil {
				return fmt.Errorf("--out %s: %w: choose another --out", path, err)
			}
			return nil
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// Named is a file that a command reads or writes, and what names it: a flag, or words such as "the plan".
type Named struct{ By, Path string }

func (n Named) String() string { return n.By + " " + n.Path }

// Output is a file that a command writes when its work is done.
type Output struct {
	Named
	// What says what the command writes, such as "a summary of a gate".
	What string
	// Ours reports whether a file with this text is one that an earlier command wrote, so that it may be replaced. If nil,
	// the command adds to the file.
	Ours func(text []byte) bool
}

// CheckOutputs returns an error if a command cannot write its files, or would destroy one: two of them are the same file, one
// is a file that the command also reads, or a file exists and is not one that such a command wrote.
func CheckOutputs(outputs []Output, inputs ...Named) error {
	for i, o := range outputs {
		if o.Ours != nil {
			if err := writable(o.By, o.Path); err != nil {
				return err
			}
		}
		for _, other := range outputs[:i] {
			if same(o.Path, other.Path) {
				return fmt.Errorf("%s and %s are the same file, and both would be written: name another", other.Named, o.Named)
			}
		}
		for _, input := range inputs {
			if same(o.Path, input.Path) {
				return fmt.Errorf("%s and %s are the same file, which would be overwritten: name another", o.Named, input)
			}
		}
		if err := o.replaces(); err != nil {
			return err
		}
	}
	return nil
}

// replaces returns an error if the file holds something else than an earlier command wrote. An empty one may be
// replaced.
func (o Output) replaces() error {
	info, err := os.Stat(o.Path)
	if o.Ours == nil || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	f, err := os.Open(o.Path)
	if err != nil {
		return fmt.Errorf("%s: the file exists, and cannot be read: %w", o.By, err)
	}
	defer f.Close()
	const most = 64 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return fmt.Errorf("%s: the file exists, and cannot be read: %w", o.By, err)
	}
	if !o.Ours(text) {
		return fmt.Errorf("%s exists and is not %s: name another file, or remove this one", o.Named, o.What)
	}
	return nil
}

// same reports whether two paths are of one file, which need not exist. Devices and pipes may be written twice.
func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	return errors.Is(err1, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist) && target(a) == target(b)
}

// target returns the path of the file that would be created at a path: links are followed, as far as they lead.
func target(path string) string {
	const mostLinks = 40
	for range mostLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return filepath.Clean(path)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, filepath.Base(path))
}

// writable reports in advance whether the file that a flag names can be written: after the work it would be too
// late.
func writable(flag, path string) error {
	if path == "" {
		return fmt.Errorf("%s needs the name of a file", flag)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s %s: that is a directory, and a file is needed", flag, path)
	case err == nil && info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", flag, ErrUnwritable, err)
		}
		return f.Close()
	case err == nil: // opening a pipe or a device may have effects
		return nil
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s %s: there is no directory %s", flag, path, dir)
	}
	if err := receives(dir); err != nil {
		return fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return nil
}

// receives returns an error if no file can be created in an existing directory.
func receives(dir string) error {
	f, err := os.CreateTemp(dir, ".oversell-*")
	if err != nil {
		cause := err
		if e := (*os.PathError)(nil); errors.As(err, &e) {
			cause = e.Err
		}
		return fmt.Errorf("%w: make a file in %s: %w", ErrUnwritable, dir, cause)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
