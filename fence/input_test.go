package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
)

// silent is a database that nobody may send a statement to.
type silent struct{ *testing.T }

func (s silent) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s silent) Driver() driver.Driver                        { return nil }
func (s silent) Begin() (driver.Tx, error)                    { return s, nil }
func (s silent) Commit() error                                { return nil }
func (s silent) Rollback() error                              { return nil }
func (s silent) Close() error                                 { return nil }
func (s silent) Prepare(query string) (driver.Stmt, error) {
	s.Errorf("sent: %s", query)
	return nil, errors.New("sent")
}

var dialects = []fence.Dialect{fence.PostgreSQL, fence.MySQL, fence.SQLite}

// Bad input fails with an error that says what is wrong, before anything is sent.
func TestBadClaims(t *testing.T) {
	db := sql.OpenDB(silent{t})
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialects {
		column, err := d.Column("stock", "id", "token")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what  string
			claim func() error
			says  string
		}{
			{"no resource", func() error { return d.Claim(t.Context(), tx, 1, "") }, "no name"},
			{"a long resource", func() error { return d.Claim(t.Context(), tx, 1, strings.Repeat("x", 513)) }, "513 bytes; it may have 512"},
			{"a resource with a zero byte", func() error { return d.Claim(t.Context(), tx, 1, "a\x00b") }, "zero byte"},
			{"a resource that is no text", func() error { return d.Claim(t.Context(), tx, 1, "\xff") }, "UTF-8"},
			{"token 0", func() error { return d.Claim(t.Context(), tx, 0, "x") }, "0 is no fencing token"},
			{"token -1", func() error { return d.Claim(t.Context(), tx, -1, "x") }, "-1 is no fencing token"},
			{"no transaction", func() error { return d.Claim(t.Context(), nil, 1, "x") }, "transaction is nil"},
			{"no key", func() error { return column.Claim(t.Context(), tx, 1, nil) }, "key"},
			{"an empty key", func() error { return column.Claim(t.Context(), tx, 1, "") }, "key"},
			{"token 0 for a row", func() error { return column.Claim(t.Context(), tx, 0, 42) }, "0 is no fencing token"},
			{"no transaction for a row", func() error { return column.Claim(t.Context(), nil, 1, 42) }, "transaction is nil"},
		} {
			if err := c.claim(); err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, fence.ErrStale) {
				t.Errorf("%v, %s: got %v, want %q", d, c.what, err, c.says)
			}
		}
	}
	for _, claim := range []func() error{
		func() error { return fence.Dialect(0).Claim(t.Context(), tx, 1, "x") },
		func() error { return fence.Dialect(4).Claim(t.Context(), tx, 1, "x") },
		func() error { return new(fence.Table).Claim(t.Context(), tx, 1, "x") },
		func() error { return new(fence.Column).Claim(t.Context(), tx, 1, "x") },
	} {
		if err := claim(); err == nil {
			t.Error("a claim with a zero value")
		}
	}
	if s := fence.Dialect(0).Schema(); s != "" {
		t.Errorf("the zero value has the schema %q", s)
	}
}

// Names are plain, or in the quotes of the dialect. Nothing else becomes part of a statement.
func TestNames(t *testing.T) {
	for _, d := range dialects {
		own, other := `"`, "`"
		if d == fence.MySQL {
			own, other = other, own
		}
		quoted := func(q, name string) string { return q + name + q }
		for _, name := range []string{"fence", "_f1", "Fence", "billing.fence", quoted(own, "order"), quoted(own, "two words"),
			quoted(own, "ö"), quoted(own, "a") + "." + quoted(own, "b"), quoted(own, other)} {
			if _, err := d.Table(name); err != nil {
				t.Errorf("%v, table %s: %v", d, name, err)
			}
		}
		for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a b", "a;b", "a-b", "é", "a)", quoted(other, "order"), own,
			quoted(own, ""), quoted(own, "a"+own+"b"), quoted(own, "a\x00"), quoted(own, "\xff"), "a\n"} {
			if _, err := d.Table(name); err == nil {
				t.Errorf("%v accepts the table %q", d, name)
			}
			for _, names := range [][3]string{{name, "id", "token"}, {"stock", name, "token"}, {"stock", "id", name}} {
				if _, err := d.Column(names[0], names[1], names[2]); err == nil {
					t.Errorf("%v accepts the column %q", d, names)
				}
			}
		}
		if _, err := d.Column("stock", "a.id", "token"); err == nil {
			t.Errorf("%v accepts a column with a dot", d)
		}
	}
	if _, err := fence.Dialect(0).Table("fence"); err == nil {
		t.Error("a table without a dialect")
	}
	if _, err := fence.Dialect(9).Column("stock", "id", "token"); err == nil {
		t.Error("a column without a dialect")
	}
}

func TestMain(m *testing.M) { testserver.Main(m) }
