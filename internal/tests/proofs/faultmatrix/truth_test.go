package faultmatrix

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
)

// backed checks a hold against the server: while it reports held, its nodes are there, and no
// contender ahead excludes it.
func (c *cell) backed(ctx context.Context, h *hold) error {
	if h.Err() != nil {
		return told(ctx, h)
	}
	why, err := c.unbacked(h)
	if why != "" && c.forced && c.strike.struck() {
		c.strike.wait() // until our manager has heard of it
	}
	// A hold that has been lost meanwhile promises nothing.
	if err == nil && why != "" && h.Err() == nil {
		err = fmt.Errorf("held, but %s", why)
	}
	return err
}

// unbacked says why a hold's nodes do not justify it; "" if they do.
func (c *cell) unbacked(h *hold) (string, error) {
	nodes, err := c.standing(h)
	if err != nil {
		return "", err
	}
	if len(nodes) < len(h.leases) {
		return fmt.Sprintf("of its nodes there are only %q", nodes), nil
	}
	for _, node := range nodes {
		names, err := c.children(path.Dir(node))
		if err != nil {
			return "", err
		}
		own, _ := queue.ParseNode(path.Base(node))
		ahead := 0
		for _, name := range names {
			n, ok := queue.ParseNode(name)
			if ok && n.Sequence < own.Sequence && !(own.Prefix == queue.PrefixRead && n.Prefix == queue.PrefixRead) {
				ahead += n.Weight
			}
		}
		if ahead > c.subject.slack {
			return fmt.Sprintf("%s has %d ahead of it in %q", node, ahead, names), nil
		}
	}
	return "", nil
}

// standing returns the paths of the nodes of a hold that are there. The node of another contender can have the same name.
func (c *cell) standing(h *hold) (nodes []string, err error) {
	for _, l := range h.leases {
		there, stat, err := c.admin.Exists(l.Path())
		if err != nil {
			return nil, err
		}
		if token, known := tokenNow(l); there && (!known || token == stat.Czxid) {
			nodes = append(nodes, l.Path())
		}
	}
	return nodes, nil
}

// told checks what the holder hears of a loss.
func told(ctx context.Context, h *hold) error {
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

// release gives a hold up within a session timeout, and checks the result of Release.
func (c *cell) release(ctx context.Context, h *hold) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
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
		nodes, err := c.standing(h)
		if len(nodes) > 0 {
			err = fmt.Errorf("released, but %q is still there", nodes)
		}
		return err
	case errors.Is(err, session.ErrLost):
		return told(ctx, h)
	}
	return fmt.Errorf("release: %w", err)
}

// tokenNow returns a lease's token if it is known already.
func tokenNow(l *queue.Lease) (int64, bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	token, err := l.Token(ctx)
	return token, err == nil
}
