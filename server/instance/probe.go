package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/internal/loopback"
)

// ProbeTimeout is how long an address may take to answer.
const ProbeTimeout = 3 * time.Second

// Server returns the server that gave this answer at the endpoint.
func (e Endpoint) Server(in Info, r Role) *Server {
	return &Server{Member: Member{Addr: e.Addr, Role: r}, Login: e.Login, Version: in.Version(), MaxClients: in.Number("maxclients"), Others: max(0, in.Number("connected_clients")-1)}
}

// Probe connects to an address and asks the server for its identity.
func Probe(ctx context.Context, e Endpoint) (Info, error) {
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	conn, err := Dial(ctx, e)
	if err == nil {
		var in Info
		if in, err = interview(ctx, conn, e.Login); err == nil {
			return in, nil
		}
		err = explainAnswer(e, err)
	}
	if parent.Err() != nil {
		return nil, errclass.Environmentf("connect to %s: %w", e.Addr, context.Cause(parent))
	}
	return nil, err
}

// Dial opens a connection and, for rediss, makes the TLS handshake.
func Dial(ctx context.Context, e Endpoint) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", e.Addr)
	if err != nil {
		return nil, errclass.Environmentf("no Redis answers at %s: %w", e.Addr, rootCause(err))
	}
	if e.Login.TLSConfig == nil {
		return conn, nil
	}
	secure := tls.Client(conn, e.Login.TLSConfig)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, explainTLS(e.Addr, err)
	}
	return secure, nil
}

// interview lets the driver log in on an open connection and returns the reply to INFO. It closes the connection.
func interview(ctx context.Context, conn net.Conn, login *redis.Options) (Info, error) {
	var in Info
	err := converse(ctx, conn, login, func(ctx context.Context, c *redis.Client) (err error) {
		in, err = askWho(ctx, c)
		return err
	})
	return in, err
}

// askWho returns the reply to INFO. An account that may not call INFO gets an empty answer.
func askWho(ctx context.Context, c *redis.Client) (Info, error) {
	if err := c.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	text, err := c.Info(ctx).Result()
	if err != nil && !strings.HasPrefix(err.Error(), "NOPERM") {
		return nil, err
	}
	return ParseInfo(text), nil
}

// converse lets the driver log in on an open connection, calls f, and closes the connection.
func converse(ctx context.Context, conn net.Conn, login *redis.Options, talk func(context.Context, *redis.Client) error) error {
	defer conn.Close()
	opts := Options(conn.RemoteAddr().String(), ConnOptions{Timeout: ProbeTimeout})
	if login != nil {
		opts.Username, opts.Password, opts.DB = login.Username, login.Password, login.DB
	}
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	client := redis.NewClient(opts)
	defer client.Close()
	return talk(ctx, client)
}

// askTimeout is how long the process on the port of a child may take to answer.
const askTimeout = 250 * time.Millisecond

// AskInfo asks a server without a login for INFO.
func AskInfo(ctx context.Context, addr string) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return interview(ctx, conn, nil)
}

// CheckMaster refuses servers that do not accept writes like a single master.
func CheckMaster(addr string, in Info) error {
	switch in["redis_mode"] {
	case "sentinel":
		return errclass.Environmentf("%s is a sentinel, which keeps no data: oversell run --topology sentinel tests the servers that it looks after", addr)
	case "cluster":
		return errclass.Environmentf("%s is a node of a cluster: oversell run --topology cluster tests the cluster", addr)
	}
	if in["role"] == "slave" {
		return errclass.Environmentf("%s is a replica (its role is slave) of %s: give the address of that; oversell run --topology replica tests them both",
			addr, net.JoinHostPort(in["master_host"], in["master_port"]))
	}
	return checkLoaded(addr, in)
}

func checkLoaded(addr string, in Info) error {
	if in["loading"] == "1" {
		return errclass.Environmentf("%s is still loading its data: try again when it has finished", addr)
	}
	return nil
}

// CheckMode refuses a server of the wrong mode for the addresses of a topology.
func CheckMode(addr string, in Info, mode, what string) error {
	if in["redis_mode"] != mode {
		return errclass.Environmentf("%s is no %s (its redis_mode is %q): with --topology %s, give the addresses of those", addr, what, in["redis_mode"], mode)
	}
	return nil
}

// explainAnswer explains what is wrong with the answer of a server.
func explainAnswer(e Endpoint, err error) error {
	var reply redis.Error
	var network net.Error
	switch {
	case errors.As(err, &reply):
		return explainReply(e, err)
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errclass.Environmentf("%s accepts connections but did not answer within %v: it may not be a Redis", e.Addr, ProbeTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errclass.Environmentf("%s closes the connection without an answer: it may not be a Redis%s", e.Addr, tryTLS(e))
	}
	return errclass.Environmentf("%s answers, but not in the Redis protocol: %s", e.Addr, e.Hide(strings.TrimPrefix(err.Error(), "redis: ")))
}

var errNoPassword = errors.New("the server has no password, but the address or " + PasswordVariable + " has one")

func explainReply(e Endpoint, err error) error {
	text := strings.TrimPrefix(err.Error(), "failed to authenticate: ")
	switch {
	case strings.HasPrefix(text, "NOAUTH"):
		return errclass.Environmentf("%s wants a password, and the address has none (redis://user:password@host:port; or set %s)", e.Addr, PasswordVariable)
	case strings.HasPrefix(text, "WRONGPASS"), strings.Contains(text, "invalid password"):
		return errclass.Environmentf("%s refuses the user or the password in the address or in %s", e.Addr, PasswordVariable)
	case strings.Contains(text, "without any password configured"):
		return errclass.Environmentf("%s: %w", e.Addr, errNoPassword)
	case strings.Contains(text, "DB index is out of range"):
		return errclass.Environmentf("%s has no database %d", e.Addr, e.Login.DB)
	}
	return errclass.Environmentf("%s refuses to talk: %s", e.Addr, e.Hide(text))
}

func tryTLS(e Endpoint) string {
	if e.Login.TLSConfig != nil {
		return ""
	}
	return " (or one that wants TLS: rediss://)"
}

func explainTLS(addr string, err error) error {
	var (
		notTLS  tls.RecordHeaderError
		unknown x509.UnknownAuthorityError
		network net.Error
	)
	switch {
	case errors.As(err, &notTLS):
		return errclass.Environmentf("%s does not speak TLS (for a connection without it write redis://)", addr)
	case errors.As(err, &unknown):
		return errclass.Environmentf("the certificate of %s is signed by an unknown authority (?skip_verify=true accepts it)", addr)
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return errclass.Environmentf("%s accepts connections but did not answer the TLS handshake within %v (for a connection without TLS write redis://)", addr, ProbeTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return errclass.Environmentf("%s closes the connection during the TLS handshake (for a connection without TLS write redis://)", addr)
	}
	return errclass.Environmentf("shake hands with %s over TLS: %w", addr, err)
}

// rootCause shortens "dial tcp 127.0.0.1:6390: connect: connection refused".
func rootCause(err error) error {
	var number syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no connection within %v", ProbeTimeout)
	}
	return loopback.Reason(err)
}

// IsReply reports whether an error is a server's reply, and not one on the way.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
