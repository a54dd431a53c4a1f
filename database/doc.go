// Package database gets an SQL database to test against, through database/sql.
//
// A [Spec] says which one: SQLite inside this program, in a file of
// its own that is gone afterwards, or a PostgreSQL, MySQL or MariaDB server that
// runs already. [Open] makes sure that it answers and lets us create tables, and
// hands back a [DB] that says in words what was chosen.
//
// Variants are given a plain *sql.DB. What differs between the three kinds is
// asked from [DialectOf], and nowhere else: placeholders, quoting, the type of a
// text, and how a missing table is reported. Everything else is SQL that all of
// them understand, with one meaning: a statement reports the rows that it found,
// whether or not it changed them, and a transaction on SQLite takes the right to
// write when it begins, so that it can wait for it and cannot fail half-way.
//
// As with the Redis targets: load goes to loopback only, unless
// [Spec.AllowRemote] is set; passwords appear in no message and no exported field
// but the user's own [Spec.DSN]; and nothing is removed but what carries the
// run's prefix in its name (see [DB.Sweep]).
package database
