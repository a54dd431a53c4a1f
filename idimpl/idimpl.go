// Package idimpl holds the id generators under test: globally increasing ids, and the floor numbers of a forum thread
// (1, 2, 3 … without a gap and without a repeat). One generator is one file; [Variants] lists them all.
package idimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// Generator is one client's view of a counter. It is used by one goroutine at a
// time. Any error leaves open whether a number was used up.
type Generator interface {
	// Next returns the next number of the counter; the first is 1. request identifies the request: a generator that
	// knows requests gives the same number to the same request. l is the lock that the caller holds, the zero Lock if
	// it holds none.
	Next(ctx context.Context, request string, l lockimpl.Lock) (int64, error)
	// Last reads the highest number that the server has given out.
	Last(ctx context.Context) (int64, error)
}

// Variant describes a generator under test.
type Variant struct {
	Name, Source, Summary string
	// Promises are what its authors claim; a broken one fails a run.
	Promises []variant.Property
	// Flaws are its known ways to break promises; checks must catch them.
	Flaws []variant.Flaw
	Needs variant.Needs
	// Control marks a generator that is wrong on purpose.
	Control bool
	// New makes one client's Generator of the counter with this name. It must
	// not use the network.
	New func(env variant.Env, counter string) Generator
}

// Described returns what is known of the variant.
func (v Variant) Described() variant.Described {
	return variant.Described{Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control, Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs}
}

// keyOf returns the counter's key.
func keyOf(counter string) string { return "Id:" + counter }
