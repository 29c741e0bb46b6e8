package core

import (
	"bytes"
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/room"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// abandonedCreate is a create whose caller has given up, and does not want the node any more.
type abandonedCreate struct {
	*search
	czxid   int64         // of the node; 0 while not known
	booking *room.Booking // nil for a mode that needs no room
}

// undo waits for the end of the create, and then deletes its node in the background. The doc
// comment of Create says what is promised.
func (g *abandonedCreate) undo(ctx context.Context, c *Creation) {
	<-c.Answered()
	made, err := c.Result()
	what := "undo the create of " + g.path
	switch {
	case err == nil:
		g.node, g.upTo, g.noted = made, c.upTo, c.noted
		g.persist(ctx, what, nil)
	case !Uncertain(err) || g.s.Err() != nil:
	case !g.mode.ephemeral():
		g.s.cfg.Log.Warn("a create was cancelled and its reply was lost; its node stays, if there is one", "path", g.path)
	case g.s.creates.alone(g.s.life, g.path) == nil:
		g.persist(ctx, what, func() { g.s.creates.shared(g.path) })
	}
}

func (g *abandonedCreate) persist(ctx context.Context, what string, then func()) {
	p := g.s.persistence(ctx, what, then, g.remove)
	p.stay = func() { g.booking.Stay(0) }
	p.start()
}

// remove deletes the node if it is there. It does not simply repeat a delete whose reply was
// lost, because another node can stand at the path by then. The transaction that made a node
// (czxid) tells the two apart.
func (g *abandonedCreate) remove(ctx context.Context) error {
	known := g.czxid
	stat, err := g.find(ctx)
	if err != nil {
		return err
	}
	if stat == nil || known != 0 && stat.Czxid != known {
		g.s.room.Gone(g.noted)
		g.booking.Resolve(0, "")
		return nil
	}
	g.czxid = stat.Czxid
	if g.mode.ephemeral() && g.noted == nil {
		g.booking.Resolve(0, g.node)
		g.noted = g.s.room.At(g.node)
	}
	return ignoreNoNode(g.s.deleteOnce(ctx, g.node, -1))
}

// deleteOnce sends a delete and does not repeat it, even if the reply is lost.
func (s *Session) deleteOnce(ctx context.Context, path string, version int32) error {
	info := hooks.RequestInfo{Op: "delete", Path: path}
	if err := s.ready(ctx); err != nil {
		return opError(info, err)
	}
	_, _, err := try(ctx, s, info, never, func(done func(struct{}, error)) { s.sendDelete(ctx, path, version, nil, done) })
	if err != nil {
		return opError(info, err)
	}
	return nil
}

// Create is that of session.Session. Its error matches ErrUncertain if the create has left, or may have, and was not
// answered.
func (s *Session) Create(ctx context.Context, at string, data []byte, mode CreateMode) (string, error) {
	var pace rounds.Pace
	parent, made := path.Dir(at), false
	for {
		node, err := s.createOnce(ctx, at, data, mode)
		if errors.Is(err, zk.ErrNoNode) {
			var now bool
			if now, err = s.MakeDirectory(ctx, parent); err == nil {
				made = made || now
				err = pace.Wait(ctx, s.Done()) // servers can remove an empty directory at any time
			}
			if err == nil {
				continue
			}
		}
		if err != nil && made {
			s.GiveBack(parent)
		}
		return node, err
	}
}

// createOnce is Create of a node whose parent exists.
func (s *Session) createOnce(ctx context.Context, path string, data []byte, mode CreateMode) (string, error) {
	c, err := s.StartCreate(ctx, nil, path, data, mode)
	if err != nil {
		return "", err
	}
	node := func() *search { return &search{s: s, path: path, data: bytes.Clone(data), mode: mode} }
	select {
	case <-c.Done():
		if Uncertain(c.err) {
			s.clarify(ctx, c.booking, node())
			return "", opError(createInfo(path), uncertain(errors.Unwrap(c.err)))
		}
		return c.Result()
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.Done():
		err = s.Err()
	}
	c.Leave()
	unwanted := &abandonedCreate{search: node(), booking: c.booking}
	_ = s.begin(func() { unwanted.undo(ctx, c) })
	return "", opError(createInfo(path), uncertain(err))
}

func createInfo(path string) hooks.RequestInfo { return hooks.RequestInfo{Op: "create", Path: path} }
