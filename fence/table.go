package fence

import (
	"context"
	"database/sql"
	"fmt"
	"unicode/utf8"
)

// maxResource is the longest name of a resource in bytes. MySQL's columns have it as their length, and could cut a
// longer name off, so that two resources would be one.
const maxResource = 512

// Table is a table that has a row with a token for each resource. Make one with [Dialect.Table], and use it for as
// long as you like: it holds nothing but statements.
type Table struct {
	claim  claim
	schema string
}

// Table returns the table of this name, such as "fence" or "billing.fence". [Table.Schema] creates it. The name is used
// in statements as it stands: it consists of ASCII letters, digits and "_", or is quoted as the database wants it. Any
// other name is an error. Table asks no database.
func (d Dialect) Table(name string) (*Table, error) {
	if err := d.known(); err != nil {
		return nil, err
	}
	if err := d.table(name); err != nil {
		return nil, err
	}
	t := new(Table)
	switch d {
	case PostgreSQL:
		t.schema = "CREATE TABLE IF NOT EXISTS " + name + " (resource text PRIMARY KEY, token bigint NOT NULL)"
		t.claim.raise = "INSERT INTO " + name + " AS f (resource, token) VALUES ($1, $2)" +
			" ON CONFLICT (resource) DO UPDATE SET token = greatest(f.token, excluded.token) RETURNING token"
	case SQLite:
		t.schema = "CREATE TABLE IF NOT EXISTS " + name + " (resource TEXT PRIMARY KEY, token INTEGER NOT NULL)"
		t.claim.raise = "INSERT INTO " + name + " AS f (resource, token) VALUES (?1, ?2)" +
			" ON CONFLICT (resource) DO UPDATE SET token = max(f.token, excluded.token) RETURNING token"
	case MySQL:
		// Bytes, because MySQL's texts can be equal that differ in case or in blanks at the end.
		t.schema = fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource VARBINARY(%d) NOT NULL PRIMARY KEY,"+
			" token BIGINT NOT NULL) ENGINE=InnoDB", name, maxResource)
		t.claim.raise = "INSERT INTO " + name + " (resource, token) VALUES (?, ?)" +
			" ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))"
		t.claim.read = "SELECT token FROM " + name + " WHERE resource = ? FOR UPDATE"
	}
	return t, nil
}

// Schema returns the statement that creates the table unless it exists.
func (t *Table) Schema() string { return t.schema }

// Claim claims a resource for the holder with the given token. It is the first statement of each transaction that
// writes under the lock, and what the transaction bases its writes on is read behind it: the package documentation says
// why. Claim compares the token with that of the resource and notes it, under a lock on the resource's row that lasts
// to the end of tx. The same token may claim again, in this transaction and in later ones.
//
// Claim waits while another transaction that has claimed the resource is open. It returns when that one ends, when
// ctx ends, with an error that matches ctx.Err(), or when a timeout of the database ends the wait. With SQLite it is the
// driver that waits. Some drivers notice the end of ctx only when busy_timeout is over.
//
// The error matches [ErrStale] if the resource was claimed with a higher token. Without a request, Claim fails if tx is
// nil, the token is below 1, or resource is empty, has more than 512 bytes, is not UTF-8 or has a zero byte. Other
// errors are those of the driver, wrapped. After any error roll the transaction back: a claim that has failed may have
// locked the row. The package documentation says after which errors the transaction can be tried again.
//
// Several goroutines can use a Table at once, each with a transaction of its own.
func (t *Table) Claim(ctx context.Context, tx *sql.Tx, token int64, resource string) error {
	if resource == "" {
		return fmt.Errorf("fence: the resource has no name")
	}
	if len(resource) > maxResource {
		return fmt.Errorf("fence: the name of a resource has %d bytes; it may have %d", len(resource), maxResource)
	}
	if bad := checkText(resource); bad != "" {
		return fmt.Errorf("fence: the resource %q %s", resource, bad)
	}
	return t.claim.run(ctx, tx, token, resource, resource, token)
}

// checkText says what is wrong with a text that not every database can store.
func checkText(s string) string {
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	for _, c := range []byte(s) {
		if c == 0 {
			return "has a zero byte"
		}
	}
	return ""
}
