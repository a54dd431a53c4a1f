package database

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

func parsePostgres(dsn string) (plan, error) {
	if _, rest, _ := strings.Cut(dsn, ":"); !strings.HasPrefix(rest, "//") {
		return plan{}, usagef("database %s: must begin with postgres://", redact(dsn))
	}
	// The driver's own reasons quote what it could not read, which may be a part
	// of the password.
	config, err := pgx.ParseConfig(dsn)
	if u, urlErr := url.Parse(dsn); err != nil || urlErr != nil || u.Fragment != "" || strings.Contains(dsn, "@") && u.User == nil {
		return plan{}, usagef("database %s: cannot be read as postgres://user:password@host:port/db (special characters in a password must be written as %%xx)", redact(dsn))
	}
	hosts := []string{config.Host}
	for _, f := range config.Fallbacks { // the other hosts of a list; and without TLS, the same again
		hosts = append(hosts, f.Host)
	}
	return plan{
		kind:      Postgres,
		where:     "PostgreSQL on " + net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
		hosts:     hosts,
		connector: stdlib.GetConnector(*config),
	}, nil
}

// codeNoTable is PostgreSQL's undefined_table.
const codeNoTable = "42P01"

func postgresReason(err error) (string, bool) {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Message, true
	}
	return "", false
}
