package goose_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	adapter "github.com/turnstile-go/turnstile/examples/adapters/goose"
	"github.com/turnstile-go/turnstile/examples/adapters/internal/ensemble"
	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

func TestMain(m *testing.M) { ensemble.Main(m) }

// open opens a database that several replicas can have open.
func open(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(20000)")
	ensemble.OK(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.ExecContext(t.Context(), fence.SQLite.Schema())
	ensemble.OK(t, err)
	return db
}

type step = func(context.Context, *sql.Tx) error

// provider has one migration, version 1.
func provider(t *testing.T, db *sql.DB, f step, opts ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	opts = append(opts, goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunTx: f}, nil)))
	return ensemble.Must(goose.NewProvider(goose.DialectSQLite3, db, nil, opts...))
}

func createInvoice(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "CREATE TABLE invoice (id INTEGER PRIMARY KEY)")
	return err
}

func version(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	return ensemble.Must(provider(t, db, createInvoice).GetDBVersion(t.Context()))
}

// locker is the obvious lock.Locker of goose.
type locker struct{ *zklock.Mutex }

func (l locker) Lock(ctx context.Context, _ *sql.DB) error { return l.Mutex.Lock(ctx) }
func (l locker) Unlock(context.Context, *sql.DB) error     { return l.Mutex.Unlock() }

// With goose's own interface a migration goes on after the loss, beside the next holder, and is committed.
func TestLockerGoesOnAfterLoss(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"))
	first, second := ensemble.Start(t), ensemble.Start(t)
	begun, goOn := make(chan context.Context, 1), make(chan struct{})
	p := provider(t, db, func(ctx context.Context, tx *sql.Tx) error {
		begun <- ctx
		<-goOn
		return createInvoice(ctx, tx)
	}, goose.WithLocker(locker{ensemble.Must(zklock.New(first.Manager, "/goose/locker"))}))
	ended := make(chan error, 1)
	go func() {
		_, err := p.Up(t.Context())
		ended <- err
	}()
	ctx := ensemble.Wait(t, begun, "the migration has begun")
	first.Expire(t)
	next := ensemble.Must(zklock.New(second.Manager, "/goose/locker"))
	ensemble.OK(t, next.Lock(t.Context()))
	if ctx.Err() != nil {
		t.Error("the context has ended: can the interface do that now?")
	}
	close(goOn)
	if err := ensemble.Wait(t, ended, "Up has returned"); !errors.Is(err, session.ErrLost) {
		t.Errorf("Up: %v, want a loss", err)
	}
	if !next.Held() || version(t, db) != 1 {
		t.Errorf("version %d beside the next holder, want 1: it is too late for the error", version(t, db))
	}
	ensemble.OK(t, next.Unlock())
}

func TestLoss(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	db := open(t, file)
	first, second := ensemble.Start(t), ensemble.Start(t)
	begun := make(chan struct{})
	p := provider(t, db, adapter.Fenced(fence.SQLite, goose.DefaultTablename, 1, func(ctx context.Context, tx *sql.Tx) error {
		if err := createInvoice(ctx, tx); err != nil {
			return err
		}
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	ended := make(chan error, 1)
	go func() {
		_, err := adapter.Up(t.Context(), ensemble.Must(zklock.New(first.Manager, "/goose/do")), p)
		ended <- err
	}()
	ensemble.Wait(t, begun, "the migration has begun")
	first.Expire(t)
	if err := ensemble.Wait(t, ended, "Up has returned"); !errors.Is(err, session.ErrLost) {
		t.Errorf("Up: %v, want a loss", err)
	}
	if v := version(t, db); v != 0 {
		t.Errorf("version %d after a loss", v)
	}
	// The next replica finds nothing of it, and the one after that finds nothing to do.
	other := open(t, file)
	mutex := ensemble.Must(zklock.New(second.Manager, "/goose/do"))
	for want := 1; want >= 0; want-- {
		results, err := adapter.Up(t.Context(), mutex,
			provider(t, other, adapter.Fenced(fence.SQLite, goose.DefaultTablename, 1, createInvoice)))
		if err != nil || len(results) != want {
			t.Fatalf("Up: %d migrations, %v, want %d", len(results), err, want)
		}
	}
}

// A former holder that stood still is refused by the claim, and one that goose has told an old version by the second look.
func TestFenced(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "x.db"))
	mutex := ensemble.Must(zklock.New(ensemble.Start(t).Manager, "/goose/fenced"))
	meanwhile := provider(t, db, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, 1)"); err != nil {
			return err
		}
		return adapter.Fenced(fence.SQLite, goose.DefaultTablename, 1, createInvoice)(ctx, tx)
	})
	if _, err := adapter.Up(t.Context(), mutex, meanwhile); !errors.Is(err, adapter.ErrMeanwhile) {
		t.Errorf("applied meanwhile: %v", err)
	}
	tx := ensemble.Must(db.BeginTx(t.Context(), nil))
	defer tx.Rollback()
	ensemble.OK(t, fence.SQLite.Claim(t.Context(), tx, 1<<62, goose.DefaultTablename)) // as a later holder
	ensemble.OK(t, tx.Commit())
	p := provider(t, db, adapter.Fenced(fence.SQLite, goose.DefaultTablename, 1, createInvoice))
	if _, err := adapter.Up(t.Context(), mutex, p); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a former holder: %v", err)
	}
	if _, err := p.Up(t.Context()); err == nil || version(t, db) != 0 {
		t.Errorf("without a lock: %v", err)
	}
}
