package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo

	"github.com/turnstile-go/turnstile/fence"
)

var errStale = fence.ErrStale

// store is the database that all replicas write to.
type store struct{ *sql.DB }

const schema = `
	CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT, number INTEGER, amount INTEGER, total INTEGER, token INTEGER);
	CREATE TABLE IF NOT EXISTS accounts (customer TEXT PRIMARY KEY, orders INTEGER, total INTEGER);
	CREATE TABLE IF NOT EXISTS shipments (id TEXT, term INTEGER);
	CREATE TABLE IF NOT EXISTS reports (tick INTEGER PRIMARY KEY, orders INTEGER, token INTEGER);`

func openStore(ctx context.Context, file string) (store, error) {
	// Replicas wait for each other's transactions.
	options := url.Values{"_pragma": {"busy_timeout(30000)", "journal_mode(wal)", "synchronous(normal)"}}
	db, err := sql.Open("sqlite", "file:"+file+"?"+options.Encode())
	if err != nil {
		return store{}, err
	}
	if _, err = db.ExecContext(ctx, fence.SQLite.Schema()+";"+schema); err != nil {
		return store{}, errors.Join(err, db.Close())
	}
	return store{db}, nil
}

// fenced calls f in a transaction that has claimed a resource, which is named after the path of its lock. It fails with
// fence.ErrStale if a later holder has claimed it. What f writes is based on what it reads behind the claim.
func (s store) fenced(ctx context.Context, token int64, resource string, f func(tx *sql.Tx) error) error {
	tx, err := s.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := fence.SQLite.Claim(ctx, tx, token, resource); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// find returns the receipt of an order, or the zero receipt. Its claim keeps former holders out.
func (s store) find(ctx context.Context, token int64, resource, id string) (r receipt, err error) {
	err = s.fenced(ctx, token, resource, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT id, number, total, token FROM orders WHERE id = ?`, id).
			Scan(&r.ID, &r.Number, &r.Total, &r.Token)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return r, err
}

// add writes an order and its customer's account.
func (s store) add(ctx context.Context, token int64, resource string, o order) (receipt, error) {
	r := receipt{ID: o.ID, Token: token}
	err := s.fenced(ctx, token, resource, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT orders, total FROM accounts WHERE customer = ?`, o.Customer).Scan(&r.Number, &r.Total)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		r.Number, r.Total = r.Number+1, r.Total+o.Amount
		_, err1 := tx.ExecContext(ctx, `INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)`, o.ID, o.Customer, r.Number, o.Amount, r.Total, token)
		_, err2 := tx.ExecContext(ctx, `REPLACE INTO accounts VALUES (?, ?, ?)`, o.Customer, r.Number, r.Total)
		return errors.Join(err1, err2)
	})
	if err != nil {
		return receipt{}, err
	}
	return r, nil
}

// ship ships what was ordered and is not shipped.
func (s store) ship(ctx context.Context, term int64, resource string) error {
	return s.fenced(ctx, term, resource, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO shipments SELECT id, ? FROM orders WHERE id NOT IN (SELECT id FROM shipments)`, term)
		return err
	})
}

// makeReport makes the report of a tick, unless it is there: a replica can have died between this and the job's record.
func (s store) makeReport(ctx context.Context, token int64, resource string, tick time.Time) error {
	return s.fenced(ctx, token, resource, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO reports SELECT ?, count(*), ? FROM orders WHERE true ON CONFLICT DO NOTHING`, tick.UnixMilli(), token)
		return err
	})
}
