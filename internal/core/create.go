package core

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/misuse"
	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/internal/room"
)

// maxData bounds the data of one request. With the longest path and an ACL that is far below the 1 MiB that
// servers take by default.
const maxData = 240<<10 - misuse.MaxPath

func checkData(data []byte) error {
	if len(data) > maxData {
		return misuse.Invalidf("%d bytes of data: the limit is %d", len(data), maxData)
	}
	return nil
}

// sent is a request that makes nodes, from the time at which it is sent: a create or a transaction.
type sent struct {
	ctx      context.Context
	answered news.News     // paths and err are known
	done     chan struct{} // and the hooks have been told
	paths    []string      // of the nodes, by operation
	err      error         // errNotSent if ctx has ended before the request has left

	// These tell the node of a create from other nodes at its path.
	after int64      // a later transaction than this made the node
	upTo  int64      // this transaction or an earlier one made the node
	noted *room.Node // of the node

	booking *room.Booking // nil for a mode that needs no room

	syncs int64 // the mark of syncs when the request ended
}

// end takes the outcome, and tells it. told calls the hook.
func (c *sent) end(s *Session, info hooks.RequestInfo, err error, told func(error)) {
	if err != nil {
		c.err = opError(info, err)
	}
	c.syncs = s.syncs.mark()
	c.answered.Tell()
	s.withHooks(func() {
		defer close(c.done)
		told(err)
	})
}

// Creation is a create in flight, which can be an operation of a transaction.
type Creation struct {
	*sent
	i int // of the operation
}

// Answered returns a channel that is closed when the create has ended: it was answered, or its connection or its
// session was lost.
func (c *Creation) Answered() <-chan struct{} { return c.answered.Wait() }

// Done returns a channel that is closed when the hooks have been told of that. A caller that gives the node up does
// not wait for them.
func (c *Creation) Done() <-chan struct{} { return c.done }

// Result returns the path of the node, or an error that says why there is none or why that is not known: see
// Uncertain. Call it once Answered is closed.
func (c *Creation) Result() (string, error) {
	if c.err != nil {
		return "", ofCaller(c.ctx, c.err)
	}
	return c.paths[c.i], nil
}

// After returns a transaction id (zxid) that is older than the node: the latest that a server had told this session
// when the create was sent. It returns 0 if there was none.
func (c *Creation) After() int64 { return c.after }

// Syncs returns the moment when the create ended, for SharedSync. Call it once Answered is closed.
func (c *Creation) Syncs() int64 { return c.syncs }

// Resolve says what became of a create whose reply was lost: the path of its node, or "" if it has made none, or one
// that is gone. It does nothing if that is known.
func (c *Creation) Resolve(path string) { c.booking.Resolve(c.i, path) }

// Leave says that the caller will remove the node, also if the create is still in flight: others that need room may
// wait for it.
func (c *Creation) Leave() { c.booking.Depart(c.i) }

func (c *Creation) stay() { c.booking.Stay(c.i) }

// StartCreate waits for a connection and then sends a create, without waiting for the answer: the caller can send
// further requests at once. A sequential create adds a number to path.
//
// An ephemeral node takes its room out of v. If v is nil, or has too little, StartCreate waits for room as Reserve
// does. If the reply is lost, the node counts until the caller has called Resolve of the Creation.
//
// If StartCreate returns no error, the node may come to exist even if ctx ends, and the caller must see to its removal.
// An error means that nothing was sent. It is ctx's, the session's, ErrTooManyNodes or ErrInvalid.
func (s *Session) StartCreate(ctx context.Context, v *Reservation, path string, data []byte, mode CreateMode) (*Creation, error) {
	return s.startCreate(ctx, v, path, data, mode, false)
}

// startCreate is StartCreate. alone says that the caller keeps other creates from the path.
func (s *Session) startCreate(
	ctx context.Context, v *Reservation, path string, data []byte, mode CreateMode, alone bool,
) (*Creation, error) {
	info := hooks.RequestInfo{Op: "create", Path: path}
	if err := errors.Join(validateCreate(path, mode), mode.validate(), checkData(data)); err != nil {
		return nil, err
	}
	begin, end := s.creates.begin, s.creates.end
	if alone {
		begin, end = func(context.Context, string) error { return nil }, func(string) {}
	}
	b, err := s.prepareCreate(ctx, v, path, mode, begin, end)
	if err != nil {
		return nil, opError(info, err)
	}
	c := &sent{ctx: ctx, done: make(chan struct{}), after: s.latest.Load(), booking: b}
	var batch *atomic.Int64
	if mode == EphemeralSequential {
		batch = new(atomic.Int64)
		info = info.WithBatch(batch)
	}
	done := s.traceRequest(ctx, info)
	s.create(ctx, s.outward(path), data, mode, batch)(func(made string, err error) {
		if err = s.verdict(err); err == nil {
			made = s.inward(made)
		}
		c.paths, c.upTo = []string{made}, s.latest.Load()
		settle(b, c.paths, err)
		if mode.ephemeral() {
			c.noted = s.room.At(made)
		}
		end(path)
		c.end(s, info, err, done)
	})
	return &Creation{sent: c}, nil
}

// withHooks calls f, which calls the hook for the end of a request. If there is such a hook, f has a goroutine
// of its own, since the caller may be the one that reads from the connection, and other requests must not wait for
// a slow hook.
func (s *Session) withHooks(f func()) {
	if s.cfg.trace.Load().Request == nil {
		f()
		return
	}
	if !s.BeginLate(f) { // no other request waits any more
		var g sync.WaitGroup
		g.Go(f)
		g.Wait()
	}
}

// prepareCreate waits until a create can be sent, and takes the room for its node. begin and end are those of creates.
func (s *Session) prepareCreate(
	ctx context.Context, v *Reservation, path string, mode CreateMode, begin func(context.Context, string) error, end func(string),
) (b *room.Booking, err error) {
	if err := s.ready(ctx); err != nil { // first, because it checks ctx
		return nil, err
	}
	// The room comes first: while a create of the path has begun, no search for the node of a cancelled one can, and that
	// search can be what makes room.
	if mode.ephemeral() {
		if b, err = s.room.Book(ctx, v, room.Op{Creates: s.sizeOf(path, mode.sequential())}); err != nil {
			return nil, err
		}
	}
	if err := begin(ctx, path); err != nil {
		b.Failed()
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		end(path)
		b.Failed()
		return nil, err
	}
	return b, nil
}

// validateCreate allows a path that ends with a slash for a sequential node, whose name is then
// the number alone: "/dir/".
func validateCreate(path string, mode CreateMode) error {
	if mode.sequential() && strings.HasSuffix(path, "/") && path != "/" {
		return misuse.ValidatePath(strings.TrimSuffix(path, "/"))
	}
	return misuse.ValidatePath(path)
}
