//go:build !unix

package checker

import "time"

var began = time.Now()

// processorTime returns elapsed time, because this system does not report processor time.
func processorTime() time.Duration { return time.Since(began) }
