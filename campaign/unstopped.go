package campaign

import (
	"context"
	"errors"
	"io/fs"
)

// Unstopped is what of an error is a failure: all of it or, once ctx has ended, that a file
// could not be written or read. Whatever else failed then failed because of that.
func Unstopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return unstopped(err)
}

// unstopped is Unstopped of a run that was stopped.
func unstopped(err error) error {
	if f := (*fs.PathError)(nil); errors.As(err, &f) && f.Op != "fork/exec" {
		return f
	}
	return nil
}
