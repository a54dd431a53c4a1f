package stockrules

import "fmt"

// Call is a call for one of several products, by a client of type C, that compares the answer with what is right.
type Call[C any] struct {
	Product int // an index
	Do      func(C) error
}

// For returns a call for a product.
func For[C any](product int, do func(C) error) Call[C] { return Call[C]{product, do} }

// Beside makes calls for several products in the given order; clients has one client for each product. If a call fails, Beside makes
// a control: alone returns the client of a new product, for which it repeats the calls for the product that failed, without those for the
// others. If the control ends in the same error, the other products are not the cause, and Beside returns the error as it is. Otherwise it
// adds words, which say what the products have to do with each other.
func Beside[C any](clients []C, alone func(product int) (C, error), words func(product int) string, calls []Call[C]) error {
	for i, c := range calls {
		err := c.Do(clients[c.Product])
		if err == nil {
			continue
		}
		if single, failed := alone(c.Product); failed == nil {
			if same := first(calls[:i+1], c.Product, single); same != nil && same.Error() == err.Error() {
				return err
			}
		}
		return fmt.Errorf("%s: %w", words(c.Product), err)
	}
	return nil
}

// first returns the first error of the calls for a product.
func first[C any](calls []Call[C], product int, client C) error {
	for _, c := range calls {
		if c.Product != product {
			continue
		}
		if err := c.Do(client); err != nil {
			return err
		}
	}
	return nil
}
