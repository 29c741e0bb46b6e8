package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/turnstile-go/turnstile/queue"
)

const (
	maxWait = 2 * time.Second  // of a request for the lock: then the client is better off with an answer
	maxWork = 10 * time.Second // under the lock
)

type order struct {
	ID       string // chosen by the client, so that it can send the order again
	Customer string
	Amount   int64
}

// receipt is the answer to an order.
type receipt struct {
	ID     string `json:"id"`
	Number int    `json:"number"` // of the orders of the customer
	Total  int64  `json:"total"`  // what the customer has ordered by then
	Token  int64  `json:"token"`  // fencing token of the lock under which it was placed
}

func (s *service) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		amount, err := strconv.ParseInt(r.FormValue("amount"), 10, 64)
		o := order{r.FormValue("id"), r.FormValue("customer"), amount}
		if err != nil || o.ID == "" || o.Customer == "" {
			http.Error(w, "an order has an id, a customer and an amount", http.StatusBadRequest)
			return
		}
		got, err := s.order(r.Context(), o)
		if err != nil {
			slog.Debug("order", "id", o.ID, "err", err)
			code := status(err)
			http.Error(w, http.StatusText(code), code)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(got) // the client may be gone
	})
	return mux
}

// order places an order under the lock of its customer.
func (s *service) order(ctx context.Context, o order) (r receipt, err error) {
	ctx = queue.WithLabel(queue.WithMaxWait(ctx, maxWait), "order "+strconv.Quote(o.ID))
	err = s.customers.Do(ctx, o.Customer, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, maxWork) // ends when the lock is lost, too
		defer cancel()
		r, err = s.place(ctx, o)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause // err is a consequence of it
		}
		return err
	})
	if r.ID != "" {
		return r, nil // it is committed, even if the lock was lost a moment later
	}
	return r, err
}

// place is the work under the lock. If ctx ends before the commit, nothing is written. If this process stands still and
// does not notice its loss, the claim fails.
func (s *service) place(ctx context.Context, o order) (receipt, error) {
	lease, _ := queue.LeaseFrom(ctx)
	token, err := lease.Token(ctx) // before a transaction begins
	if err != nil {
		return receipt{}, err
	}
	resource := s.customers.Path(o.Customer)
	if r, err := s.find(ctx, token, resource, o.ID); err != nil || r.ID != "" {
		return r, err
	}
	// The reason for the lock: no transaction of the database spans this. The order's id makes it harmless to repeat.
	if err := s.approve(ctx, o); err != nil {
		return receipt{}, err
	}
	return s.add(ctx, token, resource, o)
}
