package server

import (
	"oversell/internal/errclass"
	"oversell/server/instance"
)

// Package instance describes one server, and package topology how servers replace each other. These are the names that
// users of a target need.

// Member is one server of a target, as it was when the target was opened.
type Member = instance.Member

// Role is the role of a server.
type Role = instance.Role

// The roles.
const (
	Master   = instance.Master
	Replica  = instance.Replica
	Sentinel = instance.Sentinel
)

// ConnOptions are the settings that a run may choose for its connections.
type ConnOptions = instance.ConnOptions

// PasswordVariable is the environment variable that holds the password for addresses
// that have none.
const PasswordVariable = instance.PasswordVariable

// The two classes of errors of this package, for errors.Is.
var (
	// ErrUsage: the request is invalid or not allowed.
	ErrUsage = errclass.ErrUsage
	// ErrEnvironment: the machine or the server does not provide what is needed.
	ErrEnvironment = errclass.ErrEnvironment
)
