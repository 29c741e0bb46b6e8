package session

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/plumbing"
)

// transaction is a multi in flight. It implements plumbing.Transaction.
type transaction struct {
	ctx      context.Context
	answered news.News     // results and err are known
	done     chan struct{} // and the hooks have been told
	booking  *booking
	results  []zk.MultiResponse
	err      error
	after    int64
	syncs    int64 // the mark of syncs when the transaction ended
}

func (t *transaction) Creation(i int) plumbing.Creation { return multiCreate{t, i} }

// multiCreate is one create of a transaction. It implements plumbing.Creation.
type multiCreate struct {
	t *transaction
	i int // of the operation
}

func (p multiCreate) Answered() <-chan struct{} { return p.t.answered.Wait() }
func (p multiCreate) Done() <-chan struct{}     { return p.t.done }
func (p multiCreate) After() int64              { return p.t.after }
func (p multiCreate) Syncs() int64              { return p.t.syncs }
func (p multiCreate) Resolve(path string)       { p.t.booking.resolve(p.i, path) }
func (p multiCreate) Leave()                    { p.t.booking.depart(p.i) }
func (p multiCreate) stay()                     { p.t.booking.stay(p.i) }

func (p multiCreate) Result() (string, error) {
	if p.t.err != nil {
		return "", ofCaller(p.t.ctx, p.t.err)
	}
	return p.t.results[p.i].String, nil
}

// startMulti is plumbing.Session.StartMulti.
func (s *Session) startMulti(ctx context.Context, v *reservation, ops []any) (*transaction, error) {
	own, out, err := s.copyOps(ops)
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, opError(multiInfo, err)
	}
	sizes, deletes := s.sizesOfOps(own)
	b, err := s.bookFrom(ctx, v, sizes, deletes...)
	if err != nil {
		return nil, opError(multiInfo, err)
	}
	t := &transaction{ctx: ctx, done: make(chan struct{}), booking: b, after: s.answers.zxid.Load()}
	done := s.traceRequest(ctx, multiInfo)
	s.sendMulti(ctx, b, s.notedOps(own), own, out, func(results []zk.MultiResponse, err error) {
		t.syncs = s.syncs.mark()
		if err = s.verdict(err); err != nil {
			t.err = opError(multiInfo, err)
		} else {
			t.results = results
		}
		t.answered.Tell()
		s.withHooks(func() {
			defer close(t.done)
			done(err)
		})
	})
	return t, nil
}

// removals is plumbing.Session.Removals: several guaranteed deletes that begin with one
// transaction. The transaction is sent once. Unless it has deleted all of the nodes, the deletes
// go on by themselves.
type removals struct {
	s     *Session
	paths []string
	all   []*persistence
}

func (r *removals) Remove(ctx context.Context, path string) plumbing.Removal {
	p := r.s.persistence(ctx, "remove "+path, nil, func(ctx context.Context) error {
		return ignoreNoNode(r.s.Delete(ctx, path, -1))
	})
	r.paths, r.all = append(r.paths, path), append(r.all, p)
	return p.removal
}

func (r *removals) Start(ctx context.Context) {
	for i, p := range r.all {
		p.leave(r.s.room.noted(r.paths[i]), nil)
	}
	if len(r.paths) < 2 || r.s.begin(func() { r.deleteAll(ctx) }) != nil {
		r.startEach()
	}
}

func (r *removals) startEach() {
	for _, p := range r.all {
		p.start()
	}
}

func (r *removals) deleteAll(ctx context.Context) {
	ops := make([]any, len(r.paths))
	for i, path := range r.paths {
		ops[i] = &zk.DeleteRequest{Path: path, Version: -1}
	}
	if _, err := r.s.multiOnce(r.s.lifeWith(ctx), ops, false); err != nil {
		r.startEach()
		return
	}
	for _, p := range r.all {
		p.end(nil)
	}
}
