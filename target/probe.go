package target

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
)

// probeTimeout is how long an address may take to answer.
const probeTimeout = 3 * time.Second

func openAddresses(ctx context.Context, p plan) (*Target, error) {
	switch p.shape {
	case replicated:
		return openPairAt(ctx, p)
	case guarded:
		return openGuardAt(ctx, p)
	case clustered:
		return openClusterAt(ctx, p)
	}
	answers := make([]info, len(p.endpoints))
	servers, err := inParallel(len(p.endpoints), func(i int) (*server, error) {
		e := p.endpoints[i]
		in, err := probe(ctx, e)
		if err != nil {
			return nil, err
		}
		answers[i] = in
		if orphan(in) {
			return e.server(in, Master), nil // see openGiven
		}
		return e.server(in, Master), checkMaster(e.addr, in)
	})
	if err != nil {
		return nil, err
	}
	if err := allDifferent(p.endpoints, answers); err != nil {
		return nil, err
	}
	t := newTarget(Address, servers)
	t.shape = &standalone{t}
	t.Why = fmt.Sprintf("%s answers at the given address %s", named(t.ServerVersion), t.Addrs[0])
	if len(servers) > 1 {
		t.Why = fmt.Sprintf("%s answers at the %d given addresses %s", named(t.ServerVersion), len(servers), strings.Join(t.Addrs, ", "))
	}
	if t.ServerVersion == "unknown" {
		t.Caveat = "the server does not tell its version and role, so it is taken for a master on trust"
	}
	return t, nil
}

// server is the one that gave this answer at the endpoint.
func (e endpoint) server(in info, r Role) *server {
	return &server{Server: Server{Addr: e.addr, Role: r}, login: e.login, version: in.version(), maxClients: in.number("maxclients"), others: max(0, in.number("connected_clients")-1)}
}

// allDifferent refuses one server under two names: a lock that counts on
// independent masters would count one of them twice.
func allDifferent(endpoints []endpoint, answers []info) error {
	seen := map[string]string{}
	for i, in := range answers {
		id := in["run_id"]
		if id == "" {
			continue
		}
		if first, ok := seen[id]; ok {
			return usagef("%s and %s are the same server: independent masters must be different servers", first, endpoints[i].addr)
		}
		seen[id] = endpoints[i].addr
	}
	return nil
}

// probe connects to an address and asks the server who it is.
func probe(ctx context.Context, e endpoint) (info, error) {
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := dial(ctx, e)
	if err == nil {
		var in info
		if in, err = interview(ctx, conn, e.login); err == nil {
			return in, nil
		}
		err = explainAnswer(e, err)
	}
	if parent.Err() != nil {
		return nil, environmentf("connect to %s: %w", e.addr, context.Cause(parent))
	}
	return nil, err
}

// dial opens a connection and, for rediss, shakes hands.
func dial(ctx context.Context, e endpoint) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", e.addr)
	if err != nil {
		return nil, environmentf("no Redis answers at %s: %w", e.addr, rootCause(err))
	}
	if e.login.TLSConfig == nil {
		return conn, nil
	}
	secure := tls.Client(conn, e.login.TLSConfig)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, explainTLS(e.addr, err)
	}
	return secure, nil
}

// interview lets the driver log in on an open connection and returns what INFO
// says. It closes the connection.
func interview(ctx context.Context, conn net.Conn, login *redis.Options) (info, error) {
	var in info
	err := converse(ctx, conn, login, func(ctx context.Context, c *redis.Client) (err error) {
		in, err = askWho(ctx, c)
		return err
	})
	return in, err
}

// askWho returns what INFO says. An account that may not call INFO gets an empty
// answer.
func askWho(ctx context.Context, c *redis.Client) (info, error) {
	if err := c.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	text, err := c.Info(ctx).Result()
	if err != nil && !strings.HasPrefix(err.Error(), "NOPERM") {
		return nil, err
	}
	return parseInfo(text), nil
}

// converse lets the driver log in on an open connection, which it closes at the
// end.
func converse(ctx context.Context, conn net.Conn, login *redis.Options, talk func(context.Context, *redis.Client) error) error {
	defer conn.Close()
	opts := options(conn.RemoteAddr().String(), ConnOptions{Timeout: probeTimeout})
	if login != nil {
		opts.Username, opts.Password, opts.DB = login.Username, login.Password, login.DB
	}
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	client := redis.NewClient(opts)
	defer client.Close()
	return talk(ctx, client)
}

// askTimeout is how long whatever answers on the port of a child may take.
const askTimeout = 250 * time.Millisecond

// askInfo interviews a server that needs no login.
func askInfo(ctx context.Context, addr string) (info, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return interview(ctx, conn, nil)
}

// checkMaster refuses servers that cannot be written to like a single master.
func checkMaster(addr string, in info) error {
	switch in["redis_mode"] {
	case "sentinel":
		return environmentf("%s is a sentinel, which keeps no data: to test the servers that it looks after, add --topology sentinel", addr)
	case "cluster":
		return environmentf("%s is a node of a cluster: to test the cluster, add --topology cluster", addr)
	}
	if in["role"] == "slave" {
		return environmentf("%s is a replica (its role is slave) of %s: give the address of that, with --topology replica to test them both",
			addr, net.JoinHostPort(in["master_host"], in["master_port"]))
	}
	return checkLoaded(addr, in)
}

func checkLoaded(addr string, in info) error {
	if in["loading"] == "1" {
		return environmentf("%s is still loading its data: try again when it has finished", addr)
	}
	return nil
}

// checkMode refuses a server that is not what the addresses of a topology must be.
func checkMode(addr string, in info, mode, what string) error {
	if in["redis_mode"] != mode {
		return environmentf("%s is no %s (its redis_mode is %q): with --topology %s, give the addresses of those", addr, what, in["redis_mode"], mode)
	}
	return nil
}

// explainAnswer puts into words what is wrong with the answer of a server.
func explainAnswer(e endpoint, err error) error {
	var reply redis.Error
	var network net.Error
	switch {
	case errors.As(err, &reply):
		return explainReply(e, err)
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return environmentf("%s accepts connections but did not answer within %v: it may not be a Redis", e.addr, probeTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return environmentf("%s closes the connection without an answer: it may not be a Redis%s", e.addr, tryTLS(e))
	}
	return environmentf("%s answers, but not in the Redis protocol: %s", e.addr, e.hide(strings.TrimPrefix(err.Error(), "redis: ")))
}

var errNoPassword = errors.New("has no password, but the address or " + PasswordVariable + " has one")

func explainReply(e endpoint, err error) error {
	text := strings.TrimPrefix(err.Error(), "failed to authenticate: ")
	switch {
	case strings.HasPrefix(text, "NOAUTH"):
		return environmentf("%s wants a password, and the address has none (redis://user:password@host:port; or set %s)", e.addr, PasswordVariable)
	case strings.HasPrefix(text, "WRONGPASS"), strings.Contains(text, "invalid password"):
		return environmentf("%s refuses the user or the password in the address or in %s", e.addr, PasswordVariable)
	case strings.Contains(text, "without any password configured"):
		return environmentf("%s %w", e.addr, errNoPassword)
	case strings.Contains(text, "DB index is out of range"):
		return environmentf("%s has no database %d", e.addr, e.login.DB)
	}
	return environmentf("%s refuses to talk: %s", e.addr, e.hide(text))
}

func tryTLS(e endpoint) string {
	if e.login.TLSConfig != nil {
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
		return environmentf("%s does not speak TLS (for a connection without it write redis://)", addr)
	case errors.As(err, &unknown):
		return environmentf("the certificate of %s is signed by an unknown authority (?skip_verify=true accepts it)", addr)
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return environmentf("%s accepts connections but did not answer the TLS handshake within %v (for a connection without TLS write redis://)", addr, probeTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return environmentf("%s closes the connection during the TLS handshake (for a connection without TLS write redis://)", addr)
	}
	return environmentf("shake hands with %s over TLS: %w", addr, err)
}

// rootCause shortens "dial tcp 127.0.0.1:6390: connect: connection refused".
func rootCause(err error) error {
	var number syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no connection within %v", probeTimeout)
	}
	return withoutServer(err)
}
