package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/news"
)

// maxData bounds the data of one request. With the longest path and an ACL that is far below the 1 MiB that
// servers take by default.
const maxData = 240<<10 - maxPath

func checkData(data []byte) error {
	if len(data) > maxData {
		return invalidf("%d bytes of data: the limit is %d", len(data), maxData)
	}
	return nil
}

// creation is a create in flight. It implements plumbing.Creation.
type creation struct {
	ctx      context.Context
	answered news.News     // path and err are known
	done     chan struct{} // and the hooks have been told
	path     string
	err      error // errNotSent if ctx has ended before the create has left

	// These tell the node from other nodes at its path.
	after int64  // a later transaction than this made the node
	upTo  int64  // this transaction or an earlier one made the node
	noted *share // of the node

	booking *booking // nil for a mode that needs no room

	syncs int64 // the mark of syncs when the create ended
}

func (c *creation) Answered() <-chan struct{} { return c.answered.Wait() }
func (c *creation) Done() <-chan struct{}     { return c.done }
func (c *creation) Result() (string, error)   { return c.path, ofCaller(c.ctx, c.err) }
func (c *creation) After() int64              { return c.after }
func (c *creation) Syncs() int64              { return c.syncs }
func (c *creation) Resolve(path string)       { c.booking.resolve(0, path) }
func (c *creation) Leave()                    { c.booking.depart(0) }
func (c *creation) stay()                     { c.booking.stay(0) }

// uncertain is plumbing.Uncertain.
func uncertain(err error) bool {
	if errors.Is(err, errNotSent) {
		return false
	}
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed)
}

// startCreate is plumbing.Session.StartCreate for all modes. Without a reservation it waits for room itself.
func (s *Session) startCreate(ctx context.Context, v *reservation, path string, data []byte, mode CreateMode) (*creation, error) {
	info := RequestInfo{Op: "create", Path: path}
	if err := errors.Join(validateCreate(path, mode), mode.validate(), checkData(data)); err != nil {
		return nil, err
	}
	b, err := s.prepareCreate(ctx, v, path, mode)
	if err != nil {
		return nil, opError(info, err)
	}
	c := &creation{ctx: ctx, done: make(chan struct{}), after: s.answers.zxid.Load(), booking: b}
	if mode == EphemeralSequential {
		info.batch = new(atomic.Int64)
	}
	done := s.traceRequest(ctx, info)
	s.create(ctx, s.outward(path), data, mode, info.batch)(func(made string, err error) {
		if err = s.verdict(err); err != nil {
			c.err = opError(info, err)
		} else {
			c.path = s.inward(made)
		}
		c.upTo, c.syncs = s.answers.zxid.Load(), s.syncs.mark()
		b.settle([]string{c.path}, c.err)
		if mode.ephemeral() {
			c.noted = s.room.noted(c.path)
		}
		s.creates.end(path)
		c.answered.Tell()
		s.withHooks(func() {
			defer close(c.done)
			done(err)
		})
	})
	return c, nil
}

// ofCaller replaces errNotSent by why the caller of the request has given up. It can call functions of the user, so the
// goroutines of a connection do not.
func ofCaller(ctx context.Context, err error) error {
	if !errors.Is(err, errNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", err, ctx.Err())
}

// withHooks calls f, which calls the hook for the end of a request. If there is such a hook, f has a goroutine
// of its own, since the caller may be the one that reads from the connection, and other requests must not wait for
// a slow hook.
func (s *Session) withHooks(f func()) {
	if s.cfg.trace.load().Request == nil {
		f()
		return
	}
	if !s.beginLate(f) { // no other request waits any more
		var g sync.WaitGroup
		g.Go(f)
		g.Wait()
	}
}

// prepareCreate waits until a create can be sent, and takes the room for its node.
func (s *Session) prepareCreate(ctx context.Context, v *reservation, path string, mode CreateMode) (b *booking, err error) {
	if err := s.ready(ctx); err != nil { // first, because it checks ctx
		return nil, err
	}
	// The room comes first: while a create of the path has begun, no search for the node of a cancelled one can, and that
	// search can be what makes room.
	if mode.ephemeral() {
		if b, err = s.bookFrom(ctx, v, []amount{s.sizeOfNew(path, mode.sequential())}); err != nil {
			return nil, err
		}
	}
	if err := s.creates.begin(ctx, path); err != nil {
		b.settle(nil, errNotSent)
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		s.cancelCreate(path, b)
		return nil, err
	}
	return b, nil
}

// cancelCreate undoes prepareCreate.
func (s *Session) cancelCreate(path string, b *booking) {
	s.creates.end(path)
	b.settle(nil, errNotSent)
}

// errNotSent is the error for a request that was not sent, because its caller has given up.
var errNotSent = errors.New("not sent")

// validateCreate allows a path that ends with a slash for a sequential node, whose name is then
// the number alone: "/dir/".
func validateCreate(path string, mode CreateMode) error {
	if mode.sequential() && strings.HasSuffix(path, "/") && path != "/" {
		return validatePath(strings.TrimSuffix(path, "/"))
	}
	return validatePath(path)
}

// Create makes a node and returns its path. For a sequential mode the path ends with a number.
// Create returns when the server has answered, ctx has ended or the session has ended. An ephemeral node needs room
// ([WithMaxNodes], [WithMaxNodeBytes]). If there is none, Create waits for nodes that are about to go: see
// [ErrTooManyNodes].
//
// Errors are those of go-zookeeper ([zk.ErrNodeExists], [zk.ErrNoNode], [zk.ErrNoAuth] …), ctx's,
// or match [ErrLost], [ErrClosed], [ErrTooManyNodes] or [ErrInvalid]. A create whose reply was
// lost is not repeated, because the server may have carried it out. Its error matches
// [zk.ErrConnectionClosed], [ErrLost] or [ErrClosed].
//
// If ctx ends while the request is in flight, the session deletes the node that the request
// makes. It does that in the background, and retries the delete across reconnects until the
// server says that the node is gone, or the session ends. If the reply to the request is lost as
// well, the session first has to find the node:
//
//   - It finds an ephemeral node by its path, owner and data. Until then, further creates of
//     that path by this session wait. If the replies to several creates of sequential nodes
//     with one path and the same data were lost, their nodes look the same. Then the session
//     deletes as many nodes as there were cancelled creates.
//   - It leaves a node of any other mode, because another client could have made the node at
//     that path. The session logs that.
func (s *Session) Create(ctx context.Context, path string, data []byte, mode CreateMode) (string, error) {
	s.made()
	misuse.Context(ctx, "session: Session.Create")
	c, err := s.startCreate(ctx, nil, path, data, mode)
	if err != nil {
		return "", err
	}
	select {
	case <-c.Done():
		if uncertain(c.err) {
			s.clarify(ctx, c.booking, nil, []lostCreate{{path, bytes.Clone(data), mode}})
		}
		return c.Result()
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.Done():
		err = s.Err()
	}
	c.Leave()
	unwanted := &abandonedCreate{s: s, path: path, data: bytes.Clone(data), mode: mode, booking: c.booking}
	s.background(func() { unwanted.undo(ctx, c) })
	return "", opError(RequestInfo{Op: "create", Path: path}, err)
}
