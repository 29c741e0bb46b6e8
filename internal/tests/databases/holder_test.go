package databases

import (
	"context"
	"database/sql"
)

// holder is a holder of the lock, or a former one. Its transaction goes on step by step.
type holder struct {
	*world
	ctx   context.Context
	token int64
	tx    *sql.Tx
}

// holder begins a transaction.
func (w *world) holder(token int64) *holder {
	w.Helper()
	h := &holder{world: w, ctx: within(w.T), token: token}
	h.begin()
	return h
}

func (h *holder) begin() {
	h.Helper()
	tx, err := h.db.BeginTx(h.ctx, &sql.TxOptions{Isolation: h.level})
	must(h.T, err)
	h.tx = tx
	h.Cleanup(func() { _ = tx.Rollback() })
}

// claim is the first statement of the transaction.
func (h *holder) claim() error { return h.store.claim(h.ctx, h.tx, h.token, h.account) }

func (h *holder) read() (n int, err error) {
	err = h.tx.QueryRowContext(h.ctx, h.sql("SELECT balance FROM account WHERE id = ?"), h.account).Scan(&n)
	return n, err
}

func (h *holder) write(n int) error {
	_, err := h.tx.ExecContext(h.ctx, h.sql("UPDATE account SET balance = ? WHERE id = ?"), n, h.account)
	return err
}

// take takes one from the account, in a transaction that has claimed it, and commits.
func (h *holder) take(seen int) {
	h.Helper()
	n, err := h.read()
	must(h.T, err)
	if n != seen {
		h.Errorf("the holder with token %d reads %d, want %d", h.token, n, seen)
	}
	must(h.T, h.write(n-1))
	must(h.T, h.tx.Commit())
}

// deduction takes one away in one transaction, and again if the database asks for that.
func (w *world) deduction(ctx context.Context, token int64) (left int, err error) {
	for {
		if left, err = w.attempt(ctx, token); err == nil || !w.again(err) || ctx.Err() != nil {
			return left, err
		}
	}
}

func (w *world) attempt(ctx context.Context, token int64) (left int, err error) {
	tx, err := w.db.BeginTx(ctx, &sql.TxOptions{Isolation: w.level})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	h := &holder{w, ctx, token, tx}
	if err := h.claim(); err != nil {
		return 0, err
	}
	n, err := h.read()
	if err != nil {
		return 0, err
	}
	if err := h.write(n - 1); err != nil {
		return 0, err
	}
	return n - 1, tx.Commit()
}

// result is that of a deduction.
type result struct {
	left int
	err  error
}

// deduct begins a deduction in a goroutine.
func (w *world) deduct(token int64) <-chan result {
	done := make(chan result, 1)
	ctx := within(w.T)
	go func() {
		left, err := w.deduction(ctx, token)
		done <- result{left, err}
	}()
	return done
}

// took checks the result of a deduction.
func (w *world) took(done <-chan result, left int) {
	w.Helper()
	if r := <-done; r.err != nil || r.left != left {
		w.Errorf("the deduction left %d (%v), want %d", r.left, r.err, left)
	}
}
