package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

var (
	errNoItem  = errors.New("no such item")
	errSoldOut = errors.New("sold out")
	errStale   = errors.New("a later holder of the lock has been here")
)

// stock is the table of the items on sale. A row has the fencing token of the last holder of
// the item's lock that has used the row, and refuses smaller tokens. So a process that was
// stopped for a minute, and believes that it still holds the lock, changes nothing.
type stock struct{ *sql.DB }

func openStock(ctx context.Context, file string) (stock, error) {
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
	return stock{db}, nil
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

// enter is the first thing that a holder does. It returns how many of the item remain, and
// writes the holder's token, so that from now on no earlier holder can change the row.
func (s stock) enter(ctx context.Context, id string, token int64) (int, error) {
	var n int
	err := s.QueryRowContext(ctx,
		`UPDATE stock SET token = ?2 WHERE id = ?1 AND token <= ?2 RETURNING stock`, id, token).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errStale
	}
	return n, err
}

// set writes how many of the item remain, unless a later holder has entered. The check and the
// write are one statement.
func (s stock) set(ctx context.Context, id string, token int64, n int) error {
	r, err := s.ExecContext(ctx,
		`UPDATE stock SET stock = ?3 WHERE id = ?1 AND stock > 0 AND token <= ?2`, id, token, n)
	if err != nil {
		return err
	}
	if changed, err := r.RowsAffected(); err != nil || changed == 0 {
		return errors.Join(errStale, err)
	}
	return nil
}
