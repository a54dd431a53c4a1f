package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"
)

// TestUnstopped checks that an error caused by the signal is no failure, and that a file that could not be written is
// one.
func TestUnstopped(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	full := &fs.PathError{Op: "write", Path: "verdict.json", Err: syscall.ENOSPC}
	other := fmt.Errorf("run 1: %w", errors.Join(context.Canceled, io.ErrUnexpectedEOF))
	for _, c := range []struct {
		ctx       context.Context
		err, want error
	}{
		{ended, nil, nil},
		{ended, other, nil},
		{ended, &fs.PathError{Op: "fork/exec", Path: "redis-server", Err: context.Canceled}, nil},
		{ended, fmt.Errorf("run 1: %w", errors.Join(context.Canceled, full)), full},
		{t.Context(), other, other},
	} {
		if got := Unstopped(c.ctx, c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
