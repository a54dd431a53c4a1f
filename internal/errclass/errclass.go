// Package errclass has the two classes of errors that decide a program's exit code. A class is not part of an error's
// message; test for it with errors.Is.
package errclass

import (
	"errors"
	"fmt"
)

var (
	// ErrUsage: the request is invalid or not allowed.
	ErrUsage = errors.New("usage")
	// ErrEnvironment: the machine or a server does not provide what is needed.
	ErrEnvironment = errors.New("environment")
)

// classified is an error of a class.
type classified struct {
	class error
	err   error
}

func (e *classified) Error() string   { return e.err.Error() }
func (e *classified) Unwrap() []error { return []error{e.class, e.err} }

// Usagef is fmt.Errorf for an error of class ErrUsage.
func Usagef(format string, args ...any) error {
	return &classified{ErrUsage, fmt.Errorf(format, args...)}
}

// Environmentf is fmt.Errorf for an error of class ErrEnvironment.
func Environmentf(format string, args ...any) error {
	return &classified{ErrEnvironment, fmt.Errorf(format, args...)}
}
