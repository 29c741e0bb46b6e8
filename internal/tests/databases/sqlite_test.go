package databases

import (
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"testing"

	"modernc.org/sqlite" // the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/turnstile-go/turnstile/fence"
)

var sqliteTables = []string{
	"CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, token INTEGER)",
	"CREATE TABLE narrow (id TEXT, token INTEGER NOT NULL CHECK (token < 2147483648))",
	"CREATE TABLE wordy (id TEXT, token TEXT)",
	fence.SQLite.Schema(),
}

// openSQLite makes a database file, with options of the driver.
func openSQLite(t *testing.T, options url.Values) (db *sql.DB, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "fence.db")
	options.Add("_pragma", "synchronous(off)")
	options.Add("_pragma", "busy_timeout(60000)")
	db, err := sql.Open("sqlite", "file:"+file+"?"+options.Encode())
	must(t, err)
	t.Cleanup(func() { db.Close() })
	for _, statement := range sqliteTables {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	return db, file
}

// sqliteAgain reports whether a transaction can be run once more: another one was in the way.
func sqliteAgain(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// sqliteLocked reports whether a transaction has the file to itself for writing.
func sqliteLocked(t *testing.T, file string) bool {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	must(t, err)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if sqliteAgain(err) {
		return true
	}
	must(t, err)
	must(t, tx.Rollback())
	return false
}
