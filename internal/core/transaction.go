package core

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// Transaction is a multi in flight.
type Transaction struct{ sent }

// Creation returns the create that is the operation with an index. The creates of a transaction are done at
// the same time, and have the same error.
func (t *Transaction) Creation(i int) *Creation { return &Creation{&t.sent, i} }

// StartMulti is StartCreate for a Multi that has at least one create. If it returns no error, all of the
// nodes may come to exist, or none.
func (s *Session) StartMulti(ctx context.Context, v *Reservation, ops ...any) (*Transaction, error) {
	o, err := s.operations(ops)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, opError(multiInfo, err)
	}
	b, err := s.room.Book(ctx, v, o.room...)
	if err != nil {
		return nil, opError(multiInfo, err)
	}
	t := &Transaction{sent{ctx: ctx, done: make(chan struct{}), booking: b, after: s.latest.Load()}}
	done := s.traceRequest(ctx, multiInfo)
	s.sendMulti(ctx, b, o, func(results []zk.MultiResponse, err error) {
		t.paths = pathsOf(results)
		t.end(s, multiInfo, s.verdict(err), done)
	})
	return t, nil
}

// Removals are guaranteed deletes of several nodes that begin with one transaction, which is sent once.
// Unless that has deleted all of the nodes, the deletes go on by themselves. One goroutine uses it.
type Removals struct {
	s   *Session
	all []*persistence
}

// Removals returns an empty set of removals.
func (s *Session) Removals() *Removals { return &Removals{s: s} }

// Remove is Remove of the session, except that nothing is sent before Start.
func (r *Removals) Remove(ctx context.Context, path string) *Removal {
	p := r.s.removal(ctx, path)
	r.all = append(r.all, p)
	return p.Removal
}

// Start must be called once, after the last Remove. It does not wait. If there is a connection, what its caller
// sends next comes after the deletes, with hooks as without them. ctx is for hooks only.
func (r *Removals) Start(ctx context.Context) {
	for _, p := range r.all {
		p.depart()
	}
	if len(r.all) > 1 && r.s.isReady() && r.deleteAll(ctx) {
		return
	}
	for _, p := range r.all {
		p.send()
	}
}

// deleteAll sends the transaction, and then calls the hook. It reports false if the deletes have to go by themselves.
func (r *Removals) deleteAll(ctx context.Context) bool {
	ops := make([]any, len(r.all))
	for i, p := range r.all {
		ops[i] = &zk.DeleteRequest{Path: p.info.Path, Version: anyVersion}
		p.tries++
	}
	o, err := r.s.operations(ops)
	if err != nil {
		return false
	}
	b, err := r.s.room.Book(r.s.life, nil, o.room...)
	if err != nil {
		return false
	}
	answer := make(chan tryEnd, 1)
	hooked := r.s.cfg.trace.Load().Request != nil
	r.s.sendMulti(r.s.life, b, o, func(_ []zk.MultiResponse, err error) {
		got := tryEnd{err: r.s.verdict(err), lost: Uncertain(err)}
		if got.lost || !hooked { // the next connection sends the deletes before anything else, and waits for no hook
			r.settle(got.err)
		}
		answer <- got
	})
	if !hooked {
		return true
	}
	told := func() {
		if got := r.s.traceAnswer(r.s.lifeWith(ctx), multiInfo, answer); !got.lost {
			r.settle(got.err)
		}
	}
	if err := r.s.begin(told); err != nil {
		r.settle(err)
	}
	return true
}

// settle takes the outcome of the transaction.
func (r *Removals) settle(err error) {
	for _, p := range r.all {
		if err != nil {
			p.send()
		} else {
			p.end(nil)
		}
	}
}
