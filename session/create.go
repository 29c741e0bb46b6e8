package session

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
)

// maxData bounds the data of one request. zk.Conn would panic or fail in odd ways
// where a request does not fit its buffer.
const maxData = connBuffer - maxPath - 16<<10

func checkData(data []byte) error {
	if len(data) > maxData {
		return invalidf("%d bytes of data: the limit is %d", len(data), maxData)
	}
	return nil
}

// Creation is a create under way: see [Session.StartCreate]. All methods of a Creation that
// StartCreate has not made panic.
type Creation struct {
	_ misuse.NoCopy

	done chan struct{}
	path string
	err  error

	// What tells the node from others at its path.
	after int64  // it was made by a later transaction than this
	upTo  int64  // it was made by this transaction or before
	noted uint64 // see nodes
}

// made returns c. It panics if c is nil or a zero value.
func (c *Creation) made() *Creation {
	if c == nil || c.done == nil {
		panic("session: Creation not made by Session.StartCreate")
	}
	return c
}

// Done returns a channel that is closed when nothing more will come of the create:
// it was answered, its connection was lost, or its session.
func (c *Creation) Done() <-chan struct{} { return c.made().done }

// Result returns, once Done is closed, the path of the node, or why there is none
// or why that is not known: see [Uncertain].
func (c *Creation) Result() (string, error) { return c.made().path, c.err }

// After returns a transaction (zxid) that is older than the node: the latest that any server
// had told this session of when the create was sent; 0 where none had.
func (c *Creation) After() int64 { return c.made().after }

// Uncertain reports whether a failed create, set, delete or multi may have been
// carried out all the same, since its reply was lost. So may one whose ctx ended while it
// was under way, which this does not report.
func Uncertain(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed)
}

// StartCreate waits for a connection and then sends a create, without waiting for
// the answer: further requests can follow at once. Once it has returned nil the
// node may come to exist, whatever becomes of ctx, and the caller must see to it.
// An error says that nothing was sent: ctx's, the session's, [ErrTooManyNodes] or
// [ErrInvalid].
//
// What a sequential create makes has a number after path.
func (s *Session) StartCreate(ctx context.Context, path string, data []byte, mode CreateMode) (*Creation, error) {
	s.made()
	misuse.Context(ctx, "session: Session.StartCreate")
	info := RequestInfo{Op: "create", Path: path}
	if err := errors.Join(validateCreate(path, mode), mode.validate(), checkData(data)); err != nil {
		return nil, err
	}
	if err := s.prepareCreate(ctx, path, mode); err != nil {
		return nil, opError(info, err)
	}
	data = bytes.Clone(data) // it is sent after this has returned
	c := &Creation{done: make(chan struct{}), after: s.seen.Load()}
	traced := false
	defer func() {
		if !traced { // the hook has panicked, or ended the goroutine
			s.cancelCreate(path, mode)
		}
	}()
	done := s.traceRequest(ctx, info)
	traced = true
	// The create is on its way a moment after its goroutine runs; what the caller sends
	// next takes longer than that, and so follows it, as a rule.
	started := make(chan struct{})
	err := s.begin(func() {
		close(started)
		defer close(c.done)
		made, err := s.create(s.outward(path), data, mode)
		if err = s.verdict(err); err != nil {
			c.err = opError(info, err)
		} else {
			c.path = s.inward(made)
		}
		c.upTo = s.seen.Load()
		if mode.ephemeral() {
			c.noted = s.nodes.settle(c.path, c.err)
		}
		s.creates.end(path)
		done(err)
	})
	if err != nil {
		s.creates.end(path)
		done(err)
		return nil, opError(info, err)
	}
	<-started
	return c, nil
}

// prepareCreate waits until a create can be sent, and makes room for its node.
func (s *Session) prepareCreate(ctx context.Context, path string, mode CreateMode) error {
	if err := s.ready(ctx); err != nil { // first, as it looks at ctx
		return err
	}
	if err := s.creates.begin(ctx, path); err != nil {
		return err
	}
	err := s.ready(ctx)
	if err == nil && mode.ephemeral() {
		err = s.nodes.reserve()
	}
	if err != nil {
		s.creates.end(path)
	}
	return err
}

// cancelCreate takes back what prepareCreate has done.
func (s *Session) cancelCreate(path string, mode CreateMode) {
	s.creates.end(path)
	if mode.ephemeral() {
		s.nodes.release()
	}
}

// validateCreate allows a sequential node to have no name of its own: "/dir/".
func validateCreate(path string, mode CreateMode) error {
	if mode.sequential() && strings.HasSuffix(path, "/") && path != "/" {
		return ValidatePath(strings.TrimSuffix(path, "/"))
	}
	return ValidatePath(path)
}

// Create makes a node and returns its path, which for a sequential mode has a
// number at its end. It returns when the server has answered, ctx has ended or the
// session has.
//
// Errors are those of go-zookeeper ([zk.ErrNodeExists], [zk.ErrNoNode],
// [zk.ErrNoAuth] …), ctx's, [ErrLost], [ErrClosed], [ErrTooManyNodes] and
// [ErrInvalid]. A create whose reply was lost is not repeated, since it may have
// been carried out: see [Uncertain].
//
// When ctx ends while the request is under way, the node is not wanted any more, and one that
// the request makes all the same is deleted again, in the background and for certain, as by
// [Session.Remove]. If the reply to the request is lost as well, the node has to be found:
//
//   - One that goes with the session is found by its path, its owner and its data. Until then
//     further creates of that path by this session wait. If replies to several creates of
//     sequential nodes with one path and the same data were lost, nothing tells their nodes
//     apart; as many are deleted as creates were given up.
//   - Any other node stays, since nothing tells it from one that somebody else has made at the
//     same path. That is logged.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode CreateMode) (string, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Create")
	c, err := s.StartCreate(ctx, path, data, mode)
	if err != nil {
		return "", err
	}
	select {
	case <-c.Done():
		return c.Result()
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.Done():
		err = s.Err()
	}
	unwanted := &givenUp{s: s, path: path, data: bytes.Clone(data), mode: mode}
	s.background(func() { unwanted.undo(ctx, c) })
	return "", opError(RequestInfo{Op: "create", Path: path}, err)
}

// background runs f in a goroutine of the session; once the session has ended
// there is nothing left to do for f.
func (s *Session) background(f func()) { _ = s.begin(f) }
