package campaign

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrUsed says that the plan's directory cannot be used: another run is in it, or it is
// none.
var ErrUsed = errors.New("the directory cannot be used")

// ErrUnwritable says that nothing can be written at a place: the environment forbids it.
var ErrUnwritable = errors.New("nothing can be written there")

// Directory refuses a path at which there can be no directory, because it leads to
// something else or through it, or because nobody may make one or write to it. That there is
// none yet is no error.
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

// Writable reports in advance why what flag names is no file that can be written: at the end
// of the work it would be too late.
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
	case err == nil: // a pipe or a device, of which opening may be more than a look
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

// receives tells why no file can be made in a directory that is there.
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
