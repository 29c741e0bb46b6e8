package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo

	"github.com/turnstile-go/turnstile/fence"
)

var (
	errNoItem  = errors.New("no such item")
	errSoldOut = errors.New("sold out")
)

// stock is the table of the items on sale. A row has the fencing token of the last holder of
// the item's lock that has claimed the row, and package fence refuses smaller tokens. So a process
// that was stopped for a minute, and believes that it still holds the lock, changes nothing.
type stock struct {
	*sql.DB
	tokens *fence.Column
}

func openStock(ctx context.Context, file string) (stock, error) {
	tokens, err := fence.SQLite.Column("stock", "id", "token")
	if err != nil {
		return stock{}, err
	}
	// Several processes write. They wait for each other, and do not lock out readers.
	options := url.Values{"_pragma": {"busy_timeout(30000)", "journal_mode(wal)", "synchronous(normal)"}}
	db, err := sql.Open("sqlite", "file:"+file+"?"+options.Encode())
	if err != nil {
		return stock{}, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS stock (
		id    TEXT PRIMARY KEY,
		stock INTEGER NOT NULL CHECK (stock >= 0),
		token INTEGER NOT NULL DEFAULT 0
	)`)
	if err != nil {
		return stock{}, errors.Join(fmt.Errorf("open %s: %w", file, err), db.Close())
	}
	return stock{db, tokens}, nil
}

// fill puts an item on sale, unless it is already.
func (s stock) fill(ctx context.Context, id string, n int) error {
	_, err := s.ExecContext(ctx, `INSERT INTO stock (id, stock) VALUES (?, ?) ON CONFLICT DO NOTHING`, id, n)
	return err
}

// left returns how many of an item remain. Without the lock that may change at once.
func (s stock) left(ctx context.Context, id string) (int, error) {
	var n int
	err := s.QueryRowContext(ctx, `SELECT stock FROM stock WHERE id = ?`, id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: %q", errNoItem, id)
	}
	return n, err
}

// enter is the first thing that a holder does. It returns how many of the item remain, and claims the item, so that
// from now on no earlier holder can change the row.
func (s stock) enter(ctx context.Context, id string, token int64) (left int, err error) {
	err = s.claimed(ctx, id, token, func(_ *sql.Tx, n int) error {
		left = n
		return nil
	})
	return left, err
}

// take takes one of the item away, and returns how many remain. It reads the row anew, behind a claim of its own: a
// number that was read in an earlier transaction would be as good as a guess.
func (s stock) take(ctx context.Context, id string, token int64) (left int, err error) {
	err = s.claimed(ctx, id, token, func(tx *sql.Tx, n int) error {
		if n == 0 {
			return errSoldOut
		}
		left = n - 1
		_, err := tx.ExecContext(ctx, `UPDATE stock SET stock = ?2 WHERE id = ?1`, id, left)
		return err
	})
	return left, err
}

// claimed calls f in a transaction that has claimed an item, with the number of the item that remain. It fails with
// fence.ErrStale if a later holder has claimed the item. If ctx ends before the commit, the transaction is rolled back.
func (s stock) claimed(ctx context.Context, id string, token int64, f func(tx *sql.Tx, left int) error) error {
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()                      // does nothing after the commit
	err = s.tokens.Claim(ctx, tx, token, id) // the first statement
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %q", errNoItem, id)
	}
	if err != nil {
		return err
	}
	var left int
	if err := tx.QueryRowContext(ctx, `SELECT stock FROM stock WHERE id = ?`, id).Scan(&left); err != nil {
		return err
	}
	if err := f(tx, left); err != nil {
		return err
	}
	return tx.Commit()
}
