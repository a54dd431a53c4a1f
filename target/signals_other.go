//go:build !unix

package target

import "errors"

func (c *child) freeze() error {
	return errors.New("this system cannot stop a process and let it go on")
}
func (c *child) thaw() error { return errors.New("this system cannot stop a process and let it go on") }
