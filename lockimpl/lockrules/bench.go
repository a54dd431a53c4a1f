package lockrules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/variant"
)

// Bench is where one case is tried.
type Bench struct {
	Ctx context.Context
	// Name is that of a lock that nobody has used.
	Name string
	// TTL is a lease that runs out within a case.
	TTL time.Duration
	// Extends says that the lock can be extended, and Renews that leases are renewed in the background.
	Extends, Renews bool
	// Brief says that leases below a second are granted, and WholeSeconds that the lock declares its leases to be whole seconds.
	Brief, WholeSeconds bool
	// Masters is how many servers the lock is on.
	Masters int
	// FalseLoss is the promise that a lock breaks if its holder is told ErrLost and still holds it.
	FalseLoss variant.Property
	// Patience is how much longer a client asks for a free lock that it was refused at first.
	Patience time.Duration
	// Client makes a client. It first calls change, which may alter the client's Env.
	Client func(change func(*variant.Env)) (*lockclient.Client, error)
	// Lasted returns how long the machine and the servers have answered in time.
	Lasted func() time.Duration
	// OnVirtualClock tries a case on an emulation of its own, with a clock that the case moves. It logs a case that returned ErrUnfit.
	OnVirtualClock func(try func(Virtual) error) error
	// Log logs what could not be tried.
	Log func(format string, args ...any)
}

// Case is something that happens to a call.
type Case struct {
	Name string
	try  func(Bench) error
}

// Try tries the case. It returns nil if the lock failed in a way that is another rule's business.
func (c Case) Try(b Bench) error {
	if err := c.try(b); err != errElsewhere {
		return err
	}
	return nil
}

// errElsewhere says that a case could not be tried, for a reason that other rules are about.
var errElsewhere = errors.New("another rule's business")

// client makes a client.
func (b Bench) client() (*lockclient.Client, error) { return b.Client(func(*variant.Env) {}) }

// two makes two clients.
func (b Bench) two() (one, two *lockclient.Client, err error) {
	if one, err = b.client(); err == nil {
		two, err = b.client()
	}
	return one, two, err
}

// practised returns a client that has made each call once, on another lock, so that its scripts are loaded.
func (b Bench) practised() (*lockclient.Client, error) {
	c, err := b.client()
	if err != nil {
		return nil, err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	c.Plan(nil)
	return c, nil
}

// holder makes a client that holds the lock.
func (b Bench) holder(ttl time.Duration) (*lockclient.Client, lockimpl.Lock, error) {
	c, err := b.client()
	if err != nil {
		return nil, lockimpl.Lock{}, err
	}
	l, err := b.held(c, ttl)
	return c, l, err
}

// practisedHolder is holder for a client that has made each call before; see practised.
func (b Bench) practisedHolder(ttl time.Duration) (*lockclient.Client, lockimpl.Lock, error) {
	c, err := b.practised()
	if err != nil {
		return nil, lockimpl.Lock{}, err
	}
	l, err := b.held(c, ttl)
	return c, l, err
}

// held has a client take the lock.
func (b Bench) held(c *lockclient.Client, ttl time.Duration) (lockimpl.Lock, error) {
	l, err := c.Take(b.Name, ttl, 0)
	if err != nil {
		err = errElsewhere
	}
	return l, err
}

// heldByOne makes two clients, the first of which holds the lock.
func (b Bench) heldByOne(ttl time.Duration) (holder, other *lockclient.Client, l lockimpl.Lock, err error) {
	if holder, other, err = b.two(); err != nil {
		return nil, nil, l, err
	}
	l, err = b.held(holder, ttl)
	return holder, other, l, err
}

// eachTime tries a case several times, each time on another lock. It returns an error if all of them found one: what a busy machine
// does once, it seldom does again.
func (b Bench) eachTime(tries int, try func(Bench) error) (err error) {
	for n := range tries {
		own := b
		own.Name = fmt.Sprintf("%s-%d", b.Name, n)
		if err = try(own); err == nil || err == errElsewhere {
			break
		}
	}
	return err
}
