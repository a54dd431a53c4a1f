package campaign

import (
	"context"
	"errors"
	"io/fs"
)

// Unstopped returns the part of an error that is a failure: all of it or, once ctx has ended, errors of reading and
// writing files. Other errors are then consequences of the end.
func Unstopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return unstopped(err)
}

// unstopped is Unstopped for a run that was stopped.
func unstopped(err error) error {
	if f := (*fs.PathError)(nil); errors.As(err, &f) && f.Op != "fork/exec" {
		return f
	}
	return nil
}
