package database

import "oversell/internal/errclass"

// The two classes of errors of this package, for errors.Is.
var (
	// ErrUsage: the request is invalid or not allowed.
	ErrUsage = errclass.ErrUsage
	// ErrEnvironment: the machine or the database does not provide what is needed.
	ErrEnvironment = errclass.ErrEnvironment
)
