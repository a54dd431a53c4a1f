package database

import "oversell/internal/errclass"

// The two classes of errors of this package, for errors.Is.
var (
	// ErrUsage: what was asked for makes no sense or is not allowed.
	ErrUsage = errclass.ErrUsage
	// ErrEnvironment: the machine or the database does not provide what is needed.
	ErrEnvironment = errclass.ErrEnvironment
)
