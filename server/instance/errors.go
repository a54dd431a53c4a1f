package instance

import (
	"errors"
	"fmt"
)

// The two classes of errors of this package, for errors.Is. The class decides a
// program's exit code; it is not part of the message.
var (
	// ErrUsage: what was asked for makes no sense or is not allowed.
	ErrUsage = errors.New("usage")
	// ErrEnvironment: the machine or the server does not provide what is needed.
	ErrEnvironment = errors.New("environment")
)

// classified is an error that belongs to a class without mentioning it.
type classified struct {
	class error
	err   error
}

func (e *classified) Error() string   { return e.err.Error() }
func (e *classified) Unwrap() []error { return []error{e.class, e.err} }

func Usagef(format string, args ...any) error {
	return &classified{ErrUsage, fmt.Errorf(format, args...)}
}

func Environmentf(format string, args ...any) error {
	return &classified{ErrEnvironment, fmt.Errorf(format, args...)}
}
