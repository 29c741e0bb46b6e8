package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/turnstile-go/turnstile/fence"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
)

const (
	maxWait = 2 * time.Second  // of a request for the lock: then the client is better off with an answer
	maxWork = 10 * time.Second // under the lock
)

// shop sells from the stock.
type shop struct {
	m     *session.Manager
	locks *zklock.Keyed // a lock for each item
	stock stock
	log   *slog.Logger  // gets the errors whose texts clients do not get
	wait  time.Duration // maxWait

	// reserve is the work between reading the stock and changing it. It is the reason for the
	// lock: it may take long, and no transaction of the database spans it.
	reserve func(ctx context.Context, id string) error
}

func newShop(m *session.Manager, s stock) (*shop, error) {
	locks, err := zklock.NewKeyed(m, "/stock") // an id may have any characters
	if err != nil {
		return nil, err
	}
	reserve := func(context.Context, string) error { return nil }
	return &shop{m: m, locks: locks, stock: s, log: slog.Default(), wait: maxWait, reserve: reserve}, nil
}

// receipt is the answer to a deduction.
type receipt struct {
	ID    string `json:"id"`
	Left  int    `json:"left"`
	Token int64  `json:"token"` // grows from one deduction of an item to the next
}

// deduct takes one of an item away. If it returns an error it has changed nothing, with one
// exception: after an error of the database that is not known.
func (s *shop) deduct(ctx context.Context, id string) (receipt, error) {
	// An item that is not on sale gets no queue, because a client may send any id.
	if _, err := s.stock.left(ctx, id); err != nil {
		return receipt{}, err
	}
	var r receipt
	// ctx is the request's. It ends when the client goes away, and then the request leaves the queue.
	err := s.locks.Do(queue.WithMaxWait(ctx, s.wait), id, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, maxWork) // ends when the lock is lost, too
		defer cancel()
		r, err = s.sell(ctx, id)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause // err is a consequence of it
		}
		return err
	})
	if r.ID != "" {
		return r, nil // it is written, even if the lock was lost a moment later
	}
	return receipt{}, err
}

// sell is the work under the lock. If ctx ends before the last transaction is committed, nothing is written. If this
// process stands still meanwhile and does not notice its loss, the claim of the transaction fails.
func (s *shop) sell(ctx context.Context, id string) (receipt, error) {
	lease, _ := queue.LeaseFrom(ctx)
	token, err := lease.Token(ctx) // before a transaction begins
	if err != nil {
		return receipt{}, err
	}
	left, err := s.stock.enter(ctx, id, token)
	if err != nil {
		return receipt{}, err
	}
	if left == 0 {
		return receipt{}, errSoldOut
	}
	if err := s.reserve(ctx, id); err != nil {
		return receipt{}, err
	}
	left, err = s.stock.take(ctx, id, token)
	if err != nil {
		return receipt{}, err
	}
	return receipt{ID: id, Left: left, Token: token}, nil
}

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stock/deduct", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, s.deduct)
	})
	mux.HandleFunc("GET /stock", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, func(ctx context.Context, id string) (receipt, error) {
			left, err := s.stock.left(ctx, id)
			return receipt{ID: id, Left: left}, err
		})
	})
	return mux
}

// answer calls f for the item that a request names, and answers with the result.
func (s *shop) answer(w http.ResponseWriter, r *http.Request, f func(context.Context, string) (receipt, error)) {
	id := r.URL.Query().Get("id")
	if id == "" {
		http.Error(w, "id: the name of an item", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.wait+maxWork)
	defer cancel()
	got, err := f(ctx, id)
	log := s.log.With("method", r.Method, "path", r.URL.Path, "id", id)
	if err != nil {
		code, text := status(err)
		level := slog.LevelDebug
		if code >= 500 && !errors.Is(context.Cause(r.Context()), context.Canceled) {
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "failed", "status", code, "err", err)
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		// The text of err can name servers, files and locks. So it is for the log only.
		http.Error(w, text, code) // which nobody reads if the client has gone away
		return
	}
	log.Debug("done", "left", got.Left, "token", got.Token)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(got); err != nil {
		log.Warn("answer", "err", err)
	}
}

// status returns the HTTP status for an error, and a text for the client. With 503 nothing was written, and the
// client may try again.
func status(err error) (code int, text string) {
	switch {
	case errors.Is(err, errNoItem):
		return http.StatusNotFound, errNoItem.Error()
	case errors.Is(err, errSoldOut):
		return http.StatusConflict, errSoldOut.Error()
	case errors.Is(err, session.ErrTooManyNodes): // overload: see maxRequests
	case errors.Is(err, session.ErrLost), errors.Is(err, session.ErrClosed), errors.Is(err, fence.ErrStale):
	case errors.Is(err, errStopping):
	case errors.Is(err, queue.ErrMaxWait), errors.Is(err, context.DeadlineExceeded): // too long a wait, or too long work
	case errors.Is(err, context.Canceled): // the client has gone away
	default:
		return http.StatusInternalServerError, "internal error"
	}
	return http.StatusServiceUnavailable, "not available now, and nothing has changed: try again"
}
