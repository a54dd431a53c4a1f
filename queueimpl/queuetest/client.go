package queuetest

import (
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// The rules speak of what package queueclient has by these names.
type (
	bench  = queueclient.Bench
	client = queueclient.Client
	never  = queueclient.Never
)

const (
	theInterface      = queueclient.TheInterface
	claim             = queueclient.Claim
	grain             = queueclient.Grain
	look              = queueclient.Look
	lateness          = queueclient.Lateness
	patienceForClaims = queueclient.PatienceForClaims
	patience          = queueclient.Patience
	answer            = queueclient.Answer
	near              = queueclient.Near
)

var (
	idsOf      = queueclient.IDsOf
	say        = queueclient.Say
	firstOf    = suitetest.FirstOf
	numbered   = queueclient.Numbered
	declaredAs = queueclient.DeclaredAs
	early      = queueclient.ExpectNotEarly
	same       = queueclient.Same
	keeps      = queueclient.Keeps
	loses      = queueclient.Loses
	claims     = queueclient.SetVisibility
	bothWays   = queueclient.BothWays
	dueIn      = queueclient.DueIn
	sorted     = queueclient.Sorted
	lends      = queueclient.Lends
)

// can reports whether the queue implements the optional interface T.
func can[T any](v queueimpl.Variant) bool { return queueclient.Can[T](v) }

func broken(promise variant.Property, format string, args ...any) error {
	return suitetest.Broken(promise, format, args...)
}

// visibility is the timeout in rules that let it run out; elsewhere it is the
// default, longer than any rule takes.
const visibility = 40 * time.Millisecond
