package campaign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrUsed means that the plan's directory holds another run or is not a directory.
var ErrUsed = errors.New("the directory cannot be used")

// ErrUnwritable means that a path cannot be written: an environment error.
var ErrUnwritable = errors.New("nothing can be written there")

// Directory returns an error if path cannot be a directory: it or a parent is a file, or it cannot be created or
// written. A missing directory is not an error.
func Directory(path string) error {
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

// Writable reports in advance whether the file that a flag names can be written: after the work it would be too
// late.
func Writable(flag, path string) error {
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
