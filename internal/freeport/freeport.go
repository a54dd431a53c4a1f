// Package freeport finds TCP ports of 127.0.0.1 without a listener.
package freeport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

const (
	// Ports are below those that systems assign to connections (from 32768 on Linux, higher elsewhere): while a server
	// is down, another process's connection could get its port, and a client that dials it could be connected to
	// itself.
	lowestPort, highestPort = 10000, 32767
	// The fixed ports of docker-compose.yml are in this range; its servers can run beside ours.
	firstComposePort, lastComposePort = 16300, 16799
	// busOffset is the offset of the port on which a cluster's node listens for the others.
	busOffset = 10000
	// portAttempts is how many ports are tried for each that is needed.
	portAttempts = 200
)

// One returns one port.
func One() (int, error) {
	p, err := Several(1, false)
	if err != nil {
		return 0, err
	}
	return p[0], nil
}

// Several returns n different free ports; for nodes of a cluster, the ports 10000 higher are free, too.
func Several(n int, cluster bool) ([]int, error) {
	highest := highestPort
	if cluster {
		highest -= busOffset
	}
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	hold := func(port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			held = append(held, l) // until the end, so that it is not found twice
		}
		return err == nil
	}
	var ports []int
	for range portAttempts * n {
		if len(ports) == n {
			return ports, nil
		}
		p := drawPort(highest)
		if hold(p) && (!cluster || hold(p+busOffset)) {
			ports = append(ports, p)
		}
	}
	if len(ports) == n {
		return ports, nil
	}
	return nil, errors.New("all ports that were tried are in use")
}

// Listen calls listen with addresses of 127.0.0.1 until it succeeds: first with port 0, for which the system chooses one
// of those that it assigns to connections. For a minute, connections that were closed take theirs, so many clients that
// come and go can use up all of them; then with ports below.
func Listen(listen func(addr string) error) error {
	err := listen("127.0.0.1:0")
	for range portAttempts {
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		err = listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(drawPort(highestPort))))
	}
	return err
}

// ListenTCP returns a listener, as Listen does.
func ListenTCP(ctx context.Context) (l net.Listener, err error) {
	err = Listen(func(addr string) (err error) {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", addr)
		return err
	})
	return l, err
}

// drawPort chooses a port at random, but none of docker-compose.yml's.
func drawPort(highest int) int {
	const compose = lastComposePort - firstComposePort + 1
	p := lowestPort + rand.IntN(highest-lowestPort+1-compose)
	if p >= firstComposePort {
		p += compose
	}
	return p
}
