package databases

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/turnstile-go/turnstile/fence"
)

// once runs a test in each database at its default level, and in the other modes of SQLite.
func once(t *testing.T, test func(w *world)) {
	each(t, func(w *world) {
		if w.level != sql.LevelReadCommitted && w.file == "" {
			return
		}
		w.level, w.store = sql.LevelDefault, stores(w.T, w.dialect)[0]
		w.open(balance)
		test(w)
	})
}

// claims runs a claim in a transaction of its own.
func (w *world) claims(claim func(h *holder) error) error {
	w.Helper()
	h := w.holder(a)
	err := claim(h)
	if err != nil {
		must(w.T, h.tx.Rollback())
		return err
	}
	return h.tx.Commit()
}

// Two names are two resources, however little they differ.
func TestResources(t *testing.T) {
	once(t, func(w *world) {
		names := []string{"x", "X", "x ", " x", "x\t", "é", "e\u0301", "e", "ß", "ss", "'; --", `\`, `x\`, "?", "$1", "%",
			strings.Repeat("x", 511), strings.Repeat("x", 512), strings.Repeat("é", 256)}
		// The tokens fall, so two names that are one resource show in a refusal.
		for i, name := range names {
			must(w.T, w.claims(func(h *holder) error { return w.dialect.Claim(h.ctx, h.tx, int64(len(names)-i), name) }))
		}
		for i, name := range names {
			w.stale(w.claims(func(h *holder) error { return w.dialect.Claim(h.ctx, h.tx, int64(len(names)-i-1), name) }))
			if i == len(names)-2 {
				break // the last one has token 1, and 0 is none
			}
		}
	})
}

// Tokens are as large as the transaction ids of ZooKeeper, which have an epoch in the upper half.
func TestLargeTokens(t *testing.T) {
	worlds(t, func(w *world) {
		for _, token := range []int64{1, 1<<31 - 1, 1 << 31, 0x200000067, 1<<63 - 2, 1<<63 - 1} {
			h := w.holder(token)
			must(w.T, h.claim())
			must(w.T, h.tx.Commit())
			if token > 1 {
				h = w.holder(token - 1)
				err := h.claim()
				w.stale(err)
				if err != nil && !strings.Contains(err.Error(), "with token") {
					w.Errorf("%q does not name the higher token", err)
				}
				must(w.T, h.tx.Rollback())
			}
		}
	})
}

// A table with another name, and a name in quotes.
func TestTable(t *testing.T) {
	once(t, func(w *world) {
		names := []string{"other_fence", `"order"`, `"Two words"`}
		if w.dialect == fence.MySQL {
			names = []string{"other_fence", "`order`", "`Two words`", "mysql.third_fence"}
		}
		for _, name := range names {
			table, err := w.dialect.Table(name)
			must(w.T, err)
			w.exec(table.Schema())
			w.exec(table.Schema()) // which it is already
			must(w.T, w.claims(func(h *holder) error { return table.Claim(h.ctx, h.tx, b, "x") }))
			w.stale(w.claims(func(h *holder) error { return table.Claim(h.ctx, h.tx, a, "x") }))
		}
		missing, err := w.dialect.Table("missing_fence")
		must(w.T, err)
		if w.claims(func(h *holder) error { return missing.Claim(h.ctx, h.tx, a, "x") }) == nil {
			w.Error("a claim in a table that is missing")
		}
	})
}

// A column of a table that is no good for tokens.
func TestBadColumn(t *testing.T) {
	once(t, func(w *world) {
		account, err := w.dialect.Column("account", "id", "token")
		must(w.T, err)
		err = w.claims(func(h *holder) error { return account.Claim(h.ctx, h.tx, a, "missing") })
		if !errors.Is(err, sql.ErrNoRows) || !strings.Contains(err.Error(), "missing") {
			w.Errorf("without the row: %v", err)
		}

		narrow, err := w.dialect.Column("narrow", "id", "token")
		must(w.T, err)
		w.exec("INSERT INTO narrow (id, token) VALUES (?, 0)", w.account)
		must(w.T, w.claims(func(h *holder) error { return narrow.Claim(h.ctx, h.tx, 1<<31-1, w.account) }))
		if err := w.claims(func(h *holder) error { return narrow.Claim(h.ctx, h.tx, 1<<31, w.account) }); err == nil {
			w.Error("a token that the column cannot have")
		}
		if w.dialect == fence.MySQL { // which can be told to store another number
			err := w.claims(func(h *holder) error {
				_, err := h.tx.ExecContext(h.ctx, "SET SESSION sql_mode = ''")
				must(w.T, err)
				return narrow.Claim(h.ctx, h.tx, 1<<31, w.account)
			})
			if err == nil || !strings.Contains(err.Error(), "64-bit") {
				w.Errorf("the server has cut a token off: %v", err)
			}
		}

		w.exec("INSERT INTO narrow (id, token) VALUES (?, 0)", w.account)
		err = w.claims(func(h *holder) error { return narrow.Claim(h.ctx, h.tx, a, w.account) })
		if err == nil || !strings.Contains(err.Error(), "unique") {
			w.Errorf("two rows with one key: %v", err)
		}
	})
}

// A column of a text type lets no former holder in: 9 is less than 40, although its text is more.
func TestTextColumn(t *testing.T) {
	once(t, func(w *world) {
		wordy, err := w.dialect.Column("wordy", "id", "token")
		must(w.T, err)
		w.exec("INSERT INTO wordy (id, token) VALUES (?, '40')", w.account)
		if err := w.claims(func(h *holder) error { return wordy.Claim(h.ctx, h.tx, 9, w.account) }); err == nil {
			w.Error("a former holder has claimed the row")
		}
	})
}

// A claim that waits returns when its context ends. (The driver of SQLite can go on until its busy timeout.)
func TestContextEnds(t *testing.T) {
	worlds(t, func(w *world) {
		if w.file != "" {
			return
		}
		first := w.holder(a)
		must(w.T, first.claim())
		ctx, cancel := context.WithCancel(within(w.T))
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := w.deduction(ctx, b)
			done <- err
		}()
		w.waits()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			w.Errorf("got %v, want %v", err, context.Canceled)
		}
		first.take(balance)
		w.want(balance - 1)
	})
}
