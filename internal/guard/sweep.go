package guard

import (
	"context"
	"time"
)

// betweenSweeps is how long a server may take to execute what a killed program has sent, which may create data after a
// sweep.
const betweenSweeps = 150 * time.Millisecond

// SweepTwice calls sweep, which removes data and returns how much it found, until it finds nothing twice in a row. It
// returns the first error of sweep, and that of ctx when ctx ends between two sweeps.
func SweepTwice(ctx context.Context, sweep func(context.Context) (int, error)) error {
	for clean := 0; ; {
		n, err := sweep(ctx)
		if err != nil {
			return err
		}
		if clean++; n > 0 {
			clean = 0
		}
		if clean == 2 {
			return nil
		}
		select {
		case <-time.After(betweenSweeps):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
