// Package database opens an SQL database to test against, through database/sql.
//
// A [Spec] selects it: SQLite inside this program, in a temporary file, or a PostgreSQL, MySQL or MariaDB server
// that already runs. [Open] checks that it answers and that tables can be created, and returns a [DB] that
// describes what was chosen.
//
// Variants use a plain *sql.DB. Only [DialectOf] provides what differs between the three kinds: placeholders,
// quoting, the type of a text, and how a missing table is reported. All other SQL has the same meaning on all of
// them: a statement reports the rows that it matched, whether or not it changed them, and a transaction on SQLite
// takes the write lock when it begins, so that it waits there and cannot fail half-way.
//
// As with Redis targets: load goes to loopback only, unless [Spec.AllowRemote] is set; passwords appear in no
// message and no exported field except [Spec.DSN]; and only tables with the run's prefix in their names are removed
// (see [DB.Sweep]).
package database
