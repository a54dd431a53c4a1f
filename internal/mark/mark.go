// Package mark marks the names of a run's keys and tables: so they are recognizable, share a hash slot, and can be
// removed without touching others.
package mark

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
)

// In finds marks in a text.
var In = regexp.MustCompile(`\{ov-[0-9a-f]{8}\}`)

// New makes a mark. Two on one server are unlikely to be equal.
func New() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return "{ov-" + hex.EncodeToString(b[:]) + "}"
}
