//go:build !unix

package cputime

import "time"

// Own and Children return 0, because this system does not report processor time in the same way.
func Own() time.Duration { return 0 }

// Children returns 0, like Own.
func Children() time.Duration { return 0 }
