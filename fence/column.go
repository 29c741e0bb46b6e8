package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Column is a column of a table of yours that has the tokens. Make one with [Dialect.Column], and use it for as long
// as you like: it holds nothing but statements.
type Column struct {
	claim   claim
	dialect Dialect
}

// Column returns the column token of a table whose rows are found by the column key. The key is unique, and token is a
// 64-bit integer, for example:
//
//	ALTER TABLE stock ADD COLUMN token BIGINT NOT NULL DEFAULT 0
//
// NULL counts as 0. Names are used in statements as they stand: they consist of ASCII letters, digits and "_", or are
// quoted as the database wants it, and that of the table may have a schema in front. Any other name is an error.
// Column asks no database.
func (d Dialect) Column(table, key, token string) (*Column, error) {
	if err := d.known(); err != nil {
		return nil, err
	}
	if err := errors.Join(d.table(table), d.identifier("key column", key), d.identifier("token column", token)); err != nil {
		return nil, err
	}
	c := &Column{dialect: d}
	// Casts keep a column of a text type from comparing tokens as texts, by which 9 is more than 40.
	switch d {
	case PostgreSQL:
		c.claim.raise = fmt.Sprintf("UPDATE %s SET %s = greatest(%[2]s, CAST($2 AS bigint)) WHERE %s = $1 RETURNING %[2]s", table, token, key)
	case SQLite:
		c.claim.raise = fmt.Sprintf("UPDATE %s SET %s = max(coalesce(%[2]s, 0), ?2) WHERE %s = ?1 RETURNING %[2]s", table, token, key)
	case MySQL:
		c.claim.raise = fmt.Sprintf("UPDATE %s SET %s = GREATEST(COALESCE(CAST(%[2]s AS SIGNED), 0), ?) WHERE %s = ?", table, token, key)
		c.claim.read = fmt.Sprintf("SELECT %s FROM %s WHERE %s = ? FOR UPDATE", token, table, key)
	}
	return c, nil
}

// Claim claims the row with the given key for the holder with the given token. It does, waits for and returns the same
// as [Table.Claim], with two differences. The key may have any type that the driver takes; nil and "" are refused
// without a request. If there is no such row, the error matches [sql.ErrNoRows], and it is an error too if there are
// several.
func (c *Column) Claim(ctx context.Context, tx *sql.Tx, token int64, key any) error {
	if key == nil || key == "" {
		return errors.New("fence: the key of the row is empty")
	}
	args := []any{key, token}
	if c.dialect == MySQL { // its parameters have no numbers
		args = []any{token, key}
	}
	return c.claim.run(ctx, tx, token, key, args...)
}
