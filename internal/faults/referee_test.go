package faults

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// referee checks, outside of ZooKeeper, that no two of those who exclude each other hold at
// one moment.
//
// Where a session is ended by force, while its client has every reason to think it lives, that
// cannot be kept: the server lets the next one in at once, and the news takes its way. Then
// fencing tokens must tell the two apart.
type referee struct {
	forced bool // fixed before the first enters

	mu    sync.Mutex
	holds map[string]hold // by whose
	late  bool            // there were two, by force
}

// enter is told of a lock as soon as it is granted. One that says it is held when asked
// before the new one is, was held together with it, if that still is.
func (r *referee) enter(ctx context.Context, who string, h hold) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for other, o := range r.holds {
		switch {
		case o.Err() != nil || h.Err() != nil:
		case r.forced:
			r.late = true
			err = errors.Join(err, fenced(ctx, o, h))
		default:
			err = errors.Join(err, fmt.Errorf("two holders: %s was let in while %s held", who, other))
		}
	}
	if r.holds == nil {
		r.holds = make(map[string]hold)
	}
	r.holds[who] = h
	return err
}

// fenced checks that the tokens of one who was out before the other came are lower. Who has
// not been given a token has none to write with.
func fenced(ctx context.Context, before, after hold) error {
	for i, l := range before.leases() {
		old, known := tokenNow(l)
		if !known || i >= len(after.leases()) {
			continue
		}
		token, err := after.leases()[i].Token(ctx)
		if err != nil {
			return err
		}
		if token <= old {
			return fmt.Errorf("token %d of %s is not above %d, of one before", token, l.Path(), old)
		}
	}
	return nil
}

// tokenNow returns a lease's token if it is known already.
func tokenNow(l *queue.Lease) (int64, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	token, err := l.Token(ctx)
	return token, err == nil
}

// backed checks that what a hold says of itself is what the server says: while it is held,
// its nodes are there and nobody is in their way.
func (c *cell) backed(ctx context.Context, h hold) error {
	if h.Err() != nil {
		return told(ctx, h)
	}
	for _, l := range h.leases() {
		why, err := c.unbacked(ctx, l)
		if err != nil {
			return err
		}
		// A hold that has been lost meanwhile says nothing any more.
		if why != "" && h.Err() == nil {
			return fmt.Errorf("held, but %s %s", l.Path(), why)
		}
	}
	return nil
}

// unbacked says why a lease's node gives no right to hold; "" if it does.
func (c *cell) unbacked(ctx context.Context, l *queue.Lease) (string, error) {
	there, err := c.standing(ctx, l)
	if err != nil {
		return "", err
	}
	if !there {
		return "is not there", nil
	}
	names, err := c.site.children(ctx, path.Dir(l.Path()))
	if err != nil {
		return "", err
	}
	own, _ := queue.ParseNode(path.Base(l.Path()))
	ahead := 0
	for _, name := range names {
		if n, ok := queue.ParseNode(name); ok && n.Sequence < own.Sequence {
			ahead += c.subject.weight(own, n)
		}
	}
	if ahead > c.subject.slack {
		return fmt.Sprintf("has %d ahead of it in %q", ahead, names), nil
	}
	return "", nil
}

// standing reports whether a lease's own node is there. Another's can have its name.
func (c *cell) standing(ctx context.Context, l *queue.Lease) (bool, error) {
	stat, err := c.site.stat(ctx, l.Path())
	if err != nil || stat == nil {
		return false, err
	}
	token, known := tokenNow(l)
	return !known || token == stat.Czxid, nil
}

// told checks what the holder hears of a loss.
func told(ctx context.Context, h hold) error {
	if err := h.Err(); !errors.Is(err, session.ErrLost) {
		return fmt.Errorf("lost, but the error is %v", err)
	}
	if h.Done() == nil {
		return nil
	}
	select {
	case <-h.Done():
		return nil
	case <-ctx.Done():
		return errors.New("lost, but Done is not closed")
	}
}

// release gives a hold up within the given time, and checks that what Release says is so.
func (c *cell) release(ctx, within context.Context, h hold) error {
	lost := h.Err() != nil
	err := h.Release(within)
	c.logf("release: %v", err)
	if h.Err() == nil {
		return errors.New("held after Release")
	}
	pending := errors.Is(err, queue.ErrReleasePending)
	switch {
	case lost && (err == nil || pending):
		return fmt.Errorf("lost before, but Release says %v", err)
	case pending:
		return nil // the cell ends with the proof that it goes
	case err == nil:
		for _, l := range h.leases() {
			if there, err := c.standing(ctx, l); err != nil || there {
				return errors.Join(fmt.Errorf("released, but %s is still there", l.Path()), err)
			}
		}
		return nil
	case errors.Is(err, session.ErrLost):
		return told(ctx, h)
	}
	return fmt.Errorf("release: %w", err)
}
