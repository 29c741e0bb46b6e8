package databases

import (
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/turnstile-go/turnstile/fence"
)

var postgres = &server{
	driver: "pgx",
	source: func(dir string) string { return "host=" + dir + " user=postgres database=postgres" },
	run: func(s *server) (*exec.Cmd, error) {
		initdb, err := program("/usr/lib/postgresql/*/bin/initdb", "/usr/local/bin/initdb", "/opt/homebrew/bin/initdb")
		if err != nil {
			return nil, err
		}
		data := filepath.Join(s.dir, "data")
		install := s.command(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
		if out, err := install.CombinedOutput(); err != nil {
			return nil, errors.Join(err, errors.New(string(out)))
		}
		// Nobody needs the data after a crash.
		return s.command(filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", s.dir, "-c", "listen_addresses=",
			"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"), nil
	},
	tables: []string{
		"CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL, token bigint)",
		"CREATE TABLE narrow (id text, token integer NOT NULL)",
		"CREATE TABLE wordy (id text, token text)",
		fence.PostgreSQL.Schema(),
	},
}

// waitingInPostgres counts the statements that wait for a lock.
const waitingInPostgres = `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`

// postgresAgain reports whether a transaction can be run once more: serialization failures, deadlocks, lock_timeout.
func postgresAgain(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01" || e.Code == "55P03")
}
