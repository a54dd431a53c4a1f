package stockrules

import (
	"context"
	"fmt"

	"oversell/stockimpl"
)

// Reconciled calls Reconcile of a sale that is a [stockimpl.Reconciler]. All its reservations must be of one piece, and past their
// deadline. It returns an error if Reconcile leaves any, or reports another number than State did. It does nothing if the sale is no
// Reconciler.
func Reconciled(ctx context.Context, s stockimpl.Sale) error {
	r, ok := s.(stockimpl.Reconciler)
	if !ok {
		return nil
	}
	before, err := s.State(ctx)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	n, err := r.Reconcile(ctx)
	if err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	after, err := s.State(ctx)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	switch {
	case after.Reserved > 0:
		return fmt.Errorf("reconcile answered that %d orders lost their reservation, and State then says %v; want nothing reserved", n, after)
	case n != before.Reserved && before.Reserved > 0: // a sale need not count as reserved what is past its deadline
		return fmt.Errorf("reconcile answered that %d orders lost their reservation; want %d, of one piece each: State said %v before, and %v after", n, before.Reserved, before, after)
	}
	return nil
}
