// Package loopback finds out whether a host is this machine: load goes to no other unless the user allows it.
package loopback

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// Outside returns the first address of a host that is not a loopback address, or "" if all are. It
// asks the resolver and connects to nothing.
func Outside(ctx context.Context, host string) (string, error) {
	addrs, err := resolve(ctx, host)
	if err != nil {
		return "", Reason(err)
	}
	for _, a := range addrs {
		if !a.Unmap().IsLoopback() {
			return a.String(), nil
		}
	}
	return "", nil
}

func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Reason shortens a DNS error to its reason, without the name server.
func Reason(err error) error {
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		return errors.New(dns.Err)
	}
	return err
}
