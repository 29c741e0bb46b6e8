package session

import (
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
	op := &zk.CreateRequest{Path: full, Data: data, Acl: s.cfg.acl, Flags: EphemeralSequential.flag}
	dir, _ := path.Split(full)
	p := newCreatePart(dir, op)
	p.number, p.done = number, done
	if s.group.aloneAtOnce() {
		return s.startPart(p)
	}
	return s.queuePart(ctx, p)
}

// deleteAmong deletes a node, alone or with other requests, and returns when that was answered. It
// returns ctx's error if ctx ends before the delete is sent.
func (s *Session) deleteAmong(ctx context.Context, path string, number *atomic.Int64) error {
	noted := s.nodes.noted(path)
	if noted == 0 {
		return s.sendDelete(path, anyVersion) // it may fail
	}
	if s.group.aloneAtOnce() {
		defer s.group.landed(1)
		return s.sendDelete(path, anyVersion)
	}
	answer := make(chan error, 1)
	p := newDeletePart(&zk.DeleteRequest{Path: s.outward(path), Version: anyVersion})
	p.number = number
	p.done = func(_ string, err error) {
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			s.nodes.deleted(path, noted)
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
	ended := false
	defer func() {
		if !ended { // a hook has ended the goroutine
			s.background(s.sendBatches)
		}
	}()
	for s.ready(s.life) == nil {
		batch, number, another := s.group.take()
		if batch == nil {
			break
		}
		if another {
			s.background(s.sendBatches)
		}
		s.sendBatch(batch, number)
	}
	ended = true
}

// sendBatch sends parts as one request, and returns when that was answered.
func (s *Session) sendBatch(batch []*part, number int64) {
	if len(batch) == 1 {
		close(batch[0].sent)
		s.sendPart(batch[0])
		return
	}
	ops := make([]any, len(batch))
	for i, p := range batch {
		ops[i] = p.op
		if p.number != nil {
			p.number.Store(number)
		}
	}
	// The callers send their listings once they hear that the batch is sent. They hear it from another
	// goroutine, which takes longer to begin than this one takes to send. So the listings nearly always
	// follow the batch. If one does not, it shows no node of its caller, and the caller lists again.
	s.background(func() {
		for _, p := range batch {
			close(p.sent)
		}
	})
	made, err := s.conn.multi(ops)
	switch {
	case err == nil:
		err = s.rejectReply(checkResults(ops, made, false))
	case classify(err) == answered:
		// The batch has changed nothing, and the answer is final for none of its parts.
		s.group.failed()
		for i, p := range batch {
			if err := s.startPart(p); err != nil {
				s.group.landed(len(batch) - i - 1)
				finish(batch[i:], nil, err)
				break
			}
		}
		return
	}
	s.group.landed(len(batch))
	if err == nil {
		s.group.succeeded()
	}
	finish(batch, made, err)
}

// finish gives each part its answer. If a hook ends the goroutine, the further parts still get theirs.
func finish(batch []*part, made []zk.MultiResponse, err error) {
	if len(batch) == 0 {
		return
	}
	if err != nil {
		defer finish(batch[1:], nil, err)
		batch[0].done("", err)
		return
	}
	defer finish(batch[1:], made[1:], nil)
	batch[0].done(made[0].String, nil)
}

// startPart sends a part alone, and does not wait for the answer. It returns an error if the session has
// ended.
func (s *Session) startPart(p *part) error {
	err := s.beginSending(func() { s.sendPart(p) })
	if err != nil {
		s.group.landed(1)
	}
	return err
}

// sendPart sends a part alone.
func (s *Session) sendPart(p *part) {
	var made string
	var err error
	switch op := p.op.(type) {
	case *zk.CreateRequest:
		made, err = s.create(op.Path, op.Data, CreateMode{flag: op.Flags})
	case *zk.DeleteRequest:
		err = s.conn.delete(op.Path, op.Version)
	}
	s.group.landed(1)
	p.done(made, err)
}
