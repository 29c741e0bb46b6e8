package session

import (
	"bytes"
	"context"
	"errors"
	"path"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// createAmong sends the create of an ephemeral sequential node, alone or with other requests. The path and
// the data are as for the server. It returns once the create is sent. done is called with the answer. If
// createAmong returns an error, nothing is sent, and done is not called.
func (s *Session) createAmong(ctx context.Context, full string, data []byte, number *atomic.Int64, done func(string, error)) error {
	op := &zk.CreateRequest{Path: full, Data: data, Acl: s.cfg.nodeACL(), Flags: EphemeralSequential.flag}
	dir, _ := path.Split(full)
	p := newCreatePart(dir, op)
	p.number, p.done = number, done
	if s.group.aloneAtOnce() {
		s.sendPart(p)
		return nil
	}
	op.Data = bytes.Clone(data) // if the batch fails, it is sent again after createAmong has returned
	return s.queuePart(ctx, p)
}

// deleteAmong deletes a node, alone or with other requests. done gets ctx's error if ctx ends before the delete
// is sent.
func (s *Session) deleteAmong(ctx context.Context, path string, number *atomic.Int64, done func(struct{}, error)) {
	switch {
	case s.room.noted(path) == nil: // it may fail
		s.sendDelete(path, anyVersion, done)
	case s.group.aloneAtOnce():
		s.sendDelete(path, anyVersion, func(_ struct{}, err error) {
			s.group.landed(1)
			done(struct{}{}, err)
		})
	default:
		inGoroutine(s, func() (struct{}, error) { return struct{}{}, s.queueDelete(ctx, path, number) })(done)
	}
}

// queueDelete deletes a node with other requests, and returns when that was answered.
func (s *Session) queueDelete(ctx context.Context, path string, number *atomic.Int64) error {
	noted := s.room.noted(path)
	answer := make(chan error, 1)
	p := newDeletePart(&zk.DeleteRequest{Path: s.outward(path), Version: anyVersion})
	p.number = number
	p.done = func(_ string, err error) {
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			s.gone(path, noted)
		}
		answer <- err
	}
	if err := s.queuePart(ctx, p); err != nil {
		return err
	}
	return <-answer
}

// anyVersion is the version of a delete that deletes any version of the node.
const anyVersion = -1

// queuePart waits until a part is sent. If ctx or the session ends before that, the part is not sent,
// and queuePart returns the error.
func (s *Session) queuePart(ctx context.Context, p *part) error {
	p.sent = make(chan struct{})
	if s.group.add(p) {
		s.background(s.sendBatches)
	}
	var err error
	select {
	case <-p.sent:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.life.Done():
		err = s.Err()
	}
	if s.group.withdraw(p) {
		return err
	}
	return nil
}

// sendBatches sends what waits, batch after batch, until nothing waits or enough others do the same. The
// parts that wait when the session ends are withdrawn by their callers.
func (s *Session) sendBatches() {
	for s.ready(s.life) == nil {
		batch, number, another := s.group.take()
		if batch == nil {
			return
		}
		if another {
			s.background(s.sendBatches)
		}
		s.sendBatch(batch, number)
	}
}

// sendBatch sends parts as one request, and returns when that was answered.
func (s *Session) sendBatch(batch []*part, number int64) {
	answer := make(chan struct{})
	if len(batch) == 1 {
		one := *batch[0]
		one.done = func(made string, err error) {
			defer close(answer)
			batch[0].done(made, err)
		}
		s.sendPart(&one)
		close(one.sent)
		<-answer
		return
	}
	ops := make([]any, len(batch))
	for i, p := range batch {
		ops[i] = p.op
		if p.number != nil {
			p.number.Store(number)
		}
	}
	var made []zk.MultiResponse
	var err error
	s.multi(ops)(func(m []zk.MultiResponse, e error) {
		made, err = m, e
		close(answer)
	})
	for _, p := range batch {
		close(p.sent) // the callers now send their listings, behind the batch
	}
	<-answer
	if err != nil && classify(err) == answered {
		// The batch has changed nothing, and the answer is final for none of its parts.
		s.group.failed()
		for _, p := range batch {
			s.sendPart(p)
		}
		return
	}
	s.group.landed(len(batch))
	if err != nil {
		made = make([]zk.MultiResponse, len(batch))
	} else {
		s.group.succeeded()
	}
	for i, p := range batch {
		p.done(made[i].String, err)
	}
}

// sendPart sends a part alone, and does not wait for the answer.
func (s *Session) sendPart(p *part) {
	done := func(made string, err error) {
		s.group.landed(1)
		p.done(made, err)
	}
	switch op := p.op.(type) {
	case *zk.CreateRequest:
		s.create(op.Path, op.Data, CreateMode{flag: op.Flags})(done)
	case *zk.DeleteRequest:
		s.erase(op.Path, op.Version)(func(_ struct{}, err error) { done("", err) })
	}
}
