//go:build !unix

package checker

import "time"

var began = time.Now()

// processorTime returns the time that went by, where the system does not tell how long the
// processors have worked.
func processorTime() time.Duration { return time.Since(began) }
