package core

import (
	"sync"

	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// carried are the creates, deletes and other writes that waited for room when their connection ended, and so were not
// sent. Nobody has to find out what became of them: the next connection sends them.
type carried struct {
	mu   sync.Mutex
	conn *wire.Conn // the present one
	all  []outbox.Call
	over bool // the session has ended
}

// keep takes a call that a connection has not sent. If there is another connection by now, keep returns that instead. It
// reports false if the session has ended.
func (r *carried) keep(w *wire.Conn, c outbox.Call) (next *wire.Conn, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return nil, false
	case r.conn != w:
		return r.conn, true
	}
	r.all = append(r.all, c)
	return nil, true
}

// take returns the calls for a new connection.
func (r *carried) take(w *wire.Conn) []outbox.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.conn, r.all = w, nil
	return all
}

// end ends the calls, and those that come from now on, because the session has ended.
func (r *carried) end() {
	r.mu.Lock()
	all := r.all
	r.over, r.all = true, nil
	r.mu.Unlock()
	for _, c := range all {
		c.Done(outbox.Reply{Err: outbox.ErrNotSent})
	}
}
