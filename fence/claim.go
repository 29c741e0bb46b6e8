package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// claim is the SQL of a claim. It always writes to the row, even if the token is equal or too low: the write takes the
// row's lock, and at the levels with snapshots it fails if the row has changed since the transaction's snapshot.
type claim struct {
	raise string // raises the row's token to that of the claim, and returns the result unless there is a read
	read  string // reads the row's token under its lock; the parameter is the key
}

// run claims the row of key. The args are those of raise.
func (c claim) run(ctx context.Context, tx *sql.Tx, token int64, key any, args ...any) error {
	if c.raise == "" {
		return errors.New("fence: a Table or Column that its constructor has not made")
	}
	if tx == nil {
		return errors.New("fence: the transaction is nil")
	}
	if token < 1 {
		return fmt.Errorf("fence: %d is no fencing token: tokens are greater than 0", token)
	}
	highest, err := c.query(ctx, tx, key, args)
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err) // drivers have errors of their own for that
	}
	switch {
	case err != nil:
	case highest > token:
		err = fmt.Errorf("%w: the highest token that it has seen is %d", ErrStale, highest)
	case highest < token:
		err = fmt.Errorf("the column has become %d: it has to be a 64-bit integer", highest)
	default:
		return nil
	}
	return fmt.Errorf("fence: claim %q with token %d: %w", fmt.Sprint(key), token, err)
}

// query raises the row's token, and returns what it is then.
func (c claim) query(ctx context.Context, tx *sql.Tx, key any, args []any) (int64, error) {
	if c.read == "" {
		return only(tx.QueryContext(ctx, c.raise, args...))
	}
	// The number of affected rows would say nothing: it is 0 for an equal token, and for a lower one.
	if _, err := tx.ExecContext(ctx, c.raise, args...); err != nil {
		return 0, err
	}
	return only(tx.QueryContext(ctx, c.read, key))
}

// only returns the number in the one row of a result.
func only(rows *sql.Rows, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var n int64
	found := 0
	for ; rows.Next(); found++ {
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return 0, err
	case found == 0:
		return 0, sql.ErrNoRows
	case found > 1:
		return 0, fmt.Errorf("%d rows have this key, which has to be unique", found)
	}
	return n, rows.Close()
}
