package database

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"oversell/internal/errclass"
)

func parsePostgres(dsn string) (plan, error) {
	if _, rest, _ := strings.Cut(dsn, ":"); !strings.HasPrefix(rest, "//") {
		return plan{}, errclass.Usagef("database %s: must begin with postgres://", redact(dsn))
	}
	// The driver's errors quote what they could not parse, which may be a part of the password.
	config, err := pgx.ParseConfig(dsn)
	if u, urlErr := url.Parse(dsn); err != nil || urlErr != nil || u.Fragment != "" || strings.Contains(dsn, "@") && u.User == nil {
		return plan{}, errclass.Usagef("database %s: cannot be read as postgres://user:password@host:port/db (special characters in a password must be written as %%xx)", redact(dsn))
	}
	if password := os.Getenv(PasswordVariable); password != "" && !namesPassword(dsn) {
		config.Password = password
	}
	hosts := []string{config.Host}
	for _, f := range config.Fallbacks { // the other hosts of a list; and each again without TLS
		hosts = append(hosts, f.Host)
	}
	return plan{
		kind:      Postgres,
		where:     "PostgreSQL on " + net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
		hosts:     hosts,
		connector: stdlib.GetConnector(*config),
	}, nil
}

// namesPassword reports whether a URL contains a password. If not, the driver takes one from elsewhere.
func namesPassword(dsn string) bool {
	u, err := url.Parse(dsn)
	if err != nil {
		return true
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// codeNoTable is PostgreSQL's undefined_table.
const codeNoTable = "42P01"

func postgresReason(err error) (string, bool) {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Message, true
	}
	return "", false
}
