package server

import (
	"oversell/internal/errclass"
	"oversell/server/instance"
	"oversell/server/topology"
)

// What is said of one server belongs to package instance, and of how servers stand in
// for each other to package topology. These are the names that users of a target need.

// Member is one server of a target, as it was when the target was opened.
type Member = instance.Member

// Role is what a server is for.
type Role = instance.Role

// The roles.
const (
	Master   = instance.Master
	Replica  = instance.Replica
	Sentinel = instance.Sentinel
)

// ConnOptions is what a run may choose about its connections.
type ConnOptions = instance.ConnOptions

// DialFunc is how a client gets its connections.
type DialFunc = topology.DialFunc

// PasswordVariable is the environment variable that holds the password for addresses
// that have none.
const PasswordVariable = instance.PasswordVariable

// The two classes of errors of this package, for errors.Is.
var (
	// ErrUsage: what was asked for makes no sense or is not allowed.
	ErrUsage = errclass.ErrUsage
	// ErrEnvironment: the machine or the server does not provide what is needed.
	ErrEnvironment = errclass.ErrEnvironment
)
