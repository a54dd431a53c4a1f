package database

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"oversell/internal/errclass"
)

func parseMySQL(dsn string) (plan, error) {
	_, rest, _ := strings.Cut(dsn, ":")
	rest, found := strings.CutPrefix(rest, "//")
	if !found {
		return plan{}, errclass.Usagef("database %s: must begin with mysql://", redact(dsn))
	}
	config, err := readMySQL(rest)
	if err != nil { // the reason may quote a part of the password
		return plan{}, errclass.Usagef("database %s: cannot be read as mysql://user:password@host:port/db or mysql://user:password@tcp(host:port)/db", redact(dsn))
	}
	if config.Passwd == "" {
		config.Passwd = os.Getenv(PasswordVariable)
	}
	if config.DBName == "" {
		return plan{}, errclass.Usagef("database %s: names no database: add /name at the end", redact(dsn))
	}
	host := config.Addr
	switch config.Net {
	case "tcp":
		if host, _, err = net.SplitHostPort(config.Addr); err != nil {
			return plan{}, errclass.Usagef("database %s: %s is not host:port", redact(dsn), config.Addr)
		}
	case "unix":
	default:
		return plan{}, errclass.Usagef("database %s: connects by tcp or unix, not by %q", redact(dsn), config.Net)
	}
	// A statement reports the rows that it matched, as on the other databases, not only those that it changed.
	config.ClientFoundRows = true
	// One round trip per statement, as on the other databases.
	config.InterpolateParams = true
	config.MultiStatements = false
	config.Logger = quiet{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return plan{}, errclass.Usagef("database %s: its parameters contradict each other", redact(dsn))
	}
	return plan{kind: MySQL, where: "MySQL on " + config.Addr, hosts: []string{host}, connector: connector}, nil
}

// readMySQL parses user:password@tcp(host:port)/db, and the URL form, with a bare address and special characters as
// %xx.
func readMySQL(rest string) (*mysql.Config, error) {
	if address := rest[strings.LastIndex(rest, "@")+1:]; strings.Contains(address, "(") {
		return mysql.ParseDSN(rest)
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil {
		return nil, err
	}
	if u.Fragment != "" || strings.Contains(rest, "@") && u.User == nil {
		return nil, errors.New("unexpected # or @")
	}
	port, host := u.Port(), u.Hostname()
	if port == "" {
		port = "3306"
	}
	if host == "" {
		host = "localhost"
	}
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	config, err := mysql.ParseDSN("tcp(" + net.JoinHostPort(host, port) + ")/" + u.EscapedPath()[min(1, len(u.EscapedPath())):] + query)
	if err != nil {
		return nil, err
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return config, nil
}

// quiet stops the driver from writing to standard error: its errors are returned anyway.
type quiet struct{}

func (quiet) Print(...any) {}

// numberNoTable is MySQL's ER_NO_SUCH_TABLE.
const numberNoTable = 1146

func mysqlReason(err error) (string, bool) {
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		return e.Message, true
	}
	return "", false
}
