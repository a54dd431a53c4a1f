package instance

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/internal/loopback"
)

// Endpoint is one server given by its address.
type Endpoint struct {
	Host string // as the user wrote it, without the port
	// Addr is host:port.
	Addr string
	// Login is the options that go-redis read from the address: credentials, database, TLS.
	Login *redis.Options
}

// PasswordVariable is the environment variable that holds the password for addresses
// that have none: a command line can be read by every user of the machine.
const PasswordVariable = "OVERSELL_REDIS_PASSWORD"

// allowedInQuery lists the parameters that an address may set. All others of redis.ParseURL would change the driver's
// behaviour, for example how often it repeats a command.
var allowedInQuery = []string{"db", "skip_verify"}

// ParseAddresses reads a list of addresses. Addresses of sentinels may name one of their masters.
func ParseAddresses(list string, sentinels bool) (all []Endpoint, master string, err error) {
	if strings.Contains(list, "@") {
		for part := range strings.SplitSeq(list, ",") {
			if !strings.Contains(part, "://") {
				return nil, "", badAddress(list, errors.New("unexpected comma"))
			}
		}
	}
	parts := strings.Split(list, ",")
	for i, text := range parts {
		text = strings.TrimSpace(text)
		if len(parts) > 1 && !strings.Contains(text, "://") { // it is not shown: it may be a part of a password
			return nil, "", errclass.Usagef("address %d of %d: must begin with redis:// or, for TLS, rediss://", i+1, len(parts))
		}
		if sentinels {
			var name string
			if text, name = cutMaster(text); name != "" && master != "" && name != master {
				return nil, "", errclass.Usagef("the addresses name two masters, %s and %s: give one", master, name)
			}
			master = cmp.Or(master, name)
		}
		e, err := parseAddress(text)
		if err != nil {
			return nil, "", err
		}
		if slices.ContainsFunc(all, func(o Endpoint) bool { return o.Addr == e.Addr }) {
			return nil, "", errclass.Usagef("the address %s is given twice: name every server once", e.Addr)
		}
		all = append(all, e)
	}
	return all, master, nil
}

// cutMaster removes the parameter master from an address. It leaves unreadable addresses to parseAddress, which reports
// them.
func cutMaster(text string) (rest, master string) {
	u, err := url.Parse(text)
	if err != nil || !u.Query().Has("master") || strings.Contains(u.RawQuery, "@") {
		return text, ""
	}
	query := u.Query()
	master = query.Get("master")
	query.Del("master")
	u.RawQuery = query.Encode()
	return u.String(), master
}

func parseAddress(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Endpoint{}, badAddress(text, err)
	}
	if u.Fragment != "" || strings.Contains(text, "@") && u.User == nil {
		return Endpoint{}, badAddress(text, errors.New("unexpected # or @"))
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return Endpoint{}, errclass.Usagef("address %s: must begin with redis:// or, for TLS, rediss://", Redact(text))
	}
	if u.RawQuery != "" {
		for name := range u.Query() {
			if !slices.Contains(allowedInQuery, name) {
				return Endpoint{}, errclass.Usagef("address %s: may set %s, not %q", Redact(text), strings.Join(allowedInQuery, " and "), name)
			}
		}
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return Endpoint{}, errclass.Usagef("address %s: the port must be 1 to 65535", Redact(text))
	}
	login, err := redis.ParseURL(text)
	if err != nil {
		return Endpoint{}, badAddress(text, err)
	}
	if login.DB < 0 {
		return Endpoint{}, errclass.Usagef("address %s: the database must be 0 or more", Redact(text))
	}
	if login.Password == "" {
		login.Password = os.Getenv(PasswordVariable)
	}
	host := u.Hostname()
	if host == "" {
		host = "localhost" // as redis.ParseURL does
	}
	return Endpoint{Host: host, Addr: login.Addr, Login: login}, nil
}

// badAddress explains why an address cannot be read. Errors of net/url and go-redis quote the unreadable part, which
// may be part of a password.
func badAddress(text string, err error) error {
	if strings.Contains(text, "@") {
		return errclass.Usagef("address %s cannot be read as redis://user:password@host:port/db (special characters in a password must be written as %%xx)", Redact(text))
	}
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	if shown := Redact(text); shown != text { // and so might the reason
		return errclass.Usagef("address %s cannot be read as redis://host:port/db or redis://user:password@host:port/db", shown)
	}
	return errclass.Usagef("address %s cannot be read as redis://host:port/db: %w", text, err)
}

// Redact hides the credentials in a list of addresses, well formed or not: everything before the last @ of each, and
// every query. If it cannot find the end of a password, it hides too much.
func Redact(list string) string {
	parts := strings.Split(list, ",")
	for _, part := range parts {
		if !strings.Contains(part, "://") { // a comma inside a password
			scheme, _, _ := strings.Cut(list, "://")
			return scheme + "://***"
		}
	}
	for i, part := range parts {
		scheme, rest, _ := strings.Cut(part, "://")
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			rest = "***@" + rest[at+1:]
		}
		rest, _, _ = strings.Cut(rest, "?")
		rest = withoutSecret(rest)
		parts[i] = scheme + "://" + rest
	}
	return strings.Join(parts, ",")
}

// withoutSecret hides text in place of a port that is not a port: it may be a password without a host after it.
func withoutSecret(rest string) string {
	authority, path, hasPath := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, ":")
	if at < 0 || strings.HasSuffix(authority, "]") || strings.Trim(authority[at+1:], "0123456789") == "" && len(authority)-at <= len(":65535") {
		return rest
	}
	authority = authority[:at] + ":***"
	if hasPath {
		return authority + "/" + path
	}
	return authority
}

// Hide returns text with the password of e replaced by asterisks.
func (e Endpoint) Hide(text string) string {
	if e.Login == nil || e.Login.Password == "" {
		return text
	}
	return strings.ReplaceAll(text, e.Login.Password, "***")
}

// lookupTimeout bounds the resolution of all host names together.
const lookupTimeout = 3 * time.Second

// AllLoopback returns an error if an endpoint is not on this machine. It connects to none of them.
func AllLoopback(ctx context.Context, endpoints []Endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	for _, e := range endpoints {
		outside, err := loopback.Outside(ctx, e.Host)
		switch {
		case err != nil:
			return errclass.Environmentf("look up the host %s of the target: %w", e.Host, err)
		case outside == "":
			continue
		}
		where := e.Addr
		if outside != e.Host {
			where += " (" + outside + ")"
		}
		return errclass.Usagef("%s is not on this machine; load goes to loopback only, unless --allow-remote is given", where)
	}
	return nil
}
