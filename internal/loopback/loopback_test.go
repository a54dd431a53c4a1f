package loopback

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestOutside(t *testing.T) {
	for host, want := range map[string]string{
		"127.0.0.1": "", "127.255.0.1": "", "::1": "", "::ffff:127.0.0.1": "", "localhost": "",
		"10.0.0.1": "10.0.0.1", "0.0.0.0": "0.0.0.0", "::ffff:10.0.0.1": "::ffff:10.0.0.1", "2001:db8::1": "2001:db8::1",
	} {
		if got, err := Outside(t.Context(), host); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", host, got, err, want)
		}
	}
}

func TestReason(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "x", Server: "10.0.0.53:53"}
	if got := Reason(fmt.Errorf("lookup: %w", dns)).Error(); got != "no such host" {
		t.Errorf("%q", got)
	}
	if other := errors.New("other"); Reason(other) != other {
		t.Error("another error is changed")
	}
}
