package errclass

import (
	"errors"
	"io"
	"testing"
)

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		err, class, other error
	}{
		{Usagef("read %d: %w", 1, io.EOF), ErrUsage, ErrEnvironment},
		{Environmentf("read %d: %w", 1, io.EOF), ErrEnvironment, ErrUsage},
	} {
		if !errors.Is(c.err, c.class) || errors.Is(c.err, c.other) || !errors.Is(c.err, io.EOF) || c.err.Error() != "read 1: EOF" {
			t.Errorf("%v: not (only) of class %v", c.err, c.class)
		}
	}
}
