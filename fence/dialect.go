package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// ErrStale is the error of a claim with a token that is lower than that of a holder which has claimed the resource
// already: the lock was lost, and another holder has it or had it. Match it with [errors.Is], roll the transaction back,
// and take the lock again.
//
// If every holder gets it, also one that has just taken the lock, tokens have fallen: the ZooKeeper servers were wiped, or
// restored from a backup, or the clients were moved to other servers. Taking the lock again does not help then. Keep all
// clients away, and raise the tokens above those that the database has seen: docs/operations.md in the repository has the
// steps. Do not set the tokens of the database back, since a former holder may still write.
var ErrStale = errors.New("a later holder has claimed it, or the ZooKeeper servers were wiped")

// DefaultTable is the table of [Dialect.Claim] and [Dialect.Schema].
const DefaultTable = "turnstile_fence"

// Dialect is the SQL of one kind of database. The package sends plain statements through [database/sql], so any
// driver for that database will do. The zero value is no dialect: its methods return errors.
type Dialect int

const (
	PostgreSQL Dialect = iota + 1 // tested with PostgreSQL 15; needs 9.5
	MySQL                         // MySQL and MariaDB, tables in InnoDB; tested with MariaDB 10.11
	SQLite                        // needs 3.35, for RETURNING
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// quote is the character around identifiers.
func (d Dialect) quote() byte {
	if d == MySQL {
		return '`'
	}
	return '"'
}

// known returns an error if d is not one of the constants.
func (d Dialect) known() error {
	if d < PostgreSQL || d > SQLite {
		return fmt.Errorf("fence: %v is none of PostgreSQL, MySQL and SQLite", d)
	}
	return nil
}

// Claim claims a resource for the holder with the given token, in the table [DefaultTable]. It is the first statement
// of each transaction that writes under the lock. See [Table.Claim] for what it does, waits for and returns.
func (d Dialect) Claim(ctx context.Context, tx *sql.Tx, token int64, resource string) error {
	t, err := d.Table(DefaultTable)
	if err != nil {
		return err
	}
	return t.Claim(ctx, tx, token, resource)
}

// Schema returns the statement that creates [DefaultTable] unless it exists. It is empty for the zero value.
func (d Dialect) Schema() string {
	t, err := d.Table(DefaultTable)
	if err != nil {
		return ""
	}
	return t.Schema()
}

// identifier checks the name of a table or column: a plain name, or one in the quotes of the dialect. The name becomes
// part of statements as it stands.
func (d Dialect) identifier(what, name string) error {
	if q := string(d.quote()); len(name) > 2 && strings.HasPrefix(name, q) && strings.HasSuffix(name, q) {
		if inner := name[1 : len(name)-1]; strings.Contains(inner, q) || checkText(inner) != "" {
			return fmt.Errorf("fence: the %s %q has a character that a quoted name cannot have here", what, name)
		}
		return nil
	}
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if digit := '0' <= c && c <= '9'; !letter && (i == 0 || !digit) {
			return fmt.Errorf("fence: the %s %q is no plain name; quote it as in %c%s%[3]c", what, name, d.quote(), "order")
		}
	}
	if name == "" {
		return fmt.Errorf("fence: the name of the %s is empty", what)
	}
	return nil
}

// table checks the name of a table, which may have that of its schema or database in front.
func (d Dialect) table(name string) error {
	schema, table, dotted := strings.Cut(name, ".")
	if !dotted {
		return d.identifier("table", name)
	}
	return errors.Join(d.identifier("schema", schema), d.identifier("table", table))
}
