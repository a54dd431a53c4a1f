package queueclient

import (
	"strings"
	"testing"
)

// TestFirstOfStrangeIDs checks that a test that has time for a single id tries every separator.
func TestFirstOfStrangeIDs(t *testing.T) {
	for _, separator := range "\x01\t\n\r\x1f !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\x7f" {
		if !strings.ContainsRune(StrangeIDs[0], separator) {
			t.Errorf("the first id is %q; want one with %q in it", StrangeIDs[0], separator)
		}
	}
}
