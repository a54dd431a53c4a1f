package instance

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
)

// neighbour returns the endpoint of a server that another one named. The credentials are the same for all.
func (e Endpoint) neighbour(addr string) (Endpoint, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return Endpoint{}, errclass.Environmentf("%s names a server at %q, which is no address", e.Addr, addr)
	}
	n := Endpoint{Host: host, Addr: addr, Login: e.loginFor(host)}
	return n, nil
}

// loginFor returns a copy of the credentials for another host.
func (e Endpoint) loginFor(host string) *redis.Options {
	login := *e.Login
	if login.TLSConfig != nil {
		login.TLSConfig = login.TLSConfig.Clone()
		login.TLSConfig.ServerName = host
	}
	return &login
}

// ProbeOptionalPassword is Probe with or without the password: often only some of the servers and sentinels need one.
// It returns the endpoint with the accepted credentials.
func ProbeOptionalPassword(ctx context.Context, e Endpoint) (Endpoint, Info, error) {
	in, err := Probe(ctx, e)
	if errors.Is(err, errNoPassword) {
		e.Login = e.loginFor(e.Host)
		e.Login.Username, e.Login.Password = "", ""
		in, err = Probe(ctx, e)
	}
	return e, in, err
}

// Neighbours connects to all addresses, which must be on this machine unless remote is set, and returns their servers.
func (e Endpoint) Neighbours(ctx context.Context, remote bool, addrs []string, r Role) ([]*Server, error) {
	all := make([]Endpoint, len(addrs))
	for i, addr := range addrs {
		var err error
		if all[i], err = e.neighbour(addr); err != nil {
			return nil, err
		}
	}
	if !remote {
		if err := AllLoopback(ctx, all); err != nil {
			return nil, fmt.Errorf("%s names a server elsewhere: %w", e.Addr, err)
		}
	}
	return OpenAll(len(all), func(i int) (*Server, error) {
		e, in, err := ProbeOptionalPassword(ctx, all[i])
		if err != nil {
			return nil, err
		}
		return e.Server(in, r), checkLoaded(e.Addr, in)
	})
}

// Talk calls say with a client of the server at an endpoint. what names the question in errors.
func Talk(ctx context.Context, e Endpoint, what string, say func(context.Context, *redis.Client) error) error {
	s := &Server{Member: Member{Addr: e.Addr}, Login: e.Login}
	if err := s.VisitFor(ctx, ProbeTimeout, say); err != nil {
		return errclass.Environmentf("ask %s for %s: %w", e.Addr, what, err)
	}
	return nil
}

// WithoutDB returns the endpoint without its database: sentinels have none.
func (e Endpoint) WithoutDB() Endpoint {
	e.Login = e.loginFor(e.Host)
	e.Login.DB = 0
	return e
}
