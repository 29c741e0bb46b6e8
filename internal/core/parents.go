package core

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/rounds"
)

// MakeParents makes dir and every missing node above it, the chroot included. It makes
// container nodes, which the server removes when they have become empty again, or persistent
// nodes if the server knows no containers.
//
// It returns when dir existed at some moment, ctx ended, the session ended or the server
// refused. The server can remove a container again at any time.
func (s *Session) MakeParents(ctx context.Context, dir string) error {
	_, err := s.MakeDirectory(ctx, dir)
	return err
}

// MakeDirectory is MakeParents. made says that dir was missing, and that this call has made it. A caller that
// then puts nothing into it should give it back.
func (s *Session) MakeDirectory(ctx context.Context, dir string) (made bool, err error) {
	return s.makeNodes(ctx, s.outward(dir))
}

// GiveBack removes a directory that MakeDirectory has made, in the background, if it is not in use after a session
// timeout. Servers before 3.10 remove a container only if it has had a child. A caller that has little time, and tries
// again, finds the directory until then.
func (s *Session) GiveBack(dir string) { s.giveBack(s.outward(dir)) }

// giveBack is GiveBack. full has the chroot.
func (s *Session) giveBack(full string) {
	const asMade = 0 // the version of a node whose data nobody has set
	time.AfterFunc(s.Timeout(), func() {
		_ = s.begin(func() {
			ctx, cancel := context.WithTimeout(s.life, s.Timeout())
			defer cancel()
			_, _ = do(ctx, s, hooks.RequestInfo{Op: "delete", Path: s.inward(full)}, always, s.erase(ctx, full, asMade, nil))
		})
	})
}

// makeNodes begins with the leaf, because a client that may create nodes in a directory need not
// have that right further up.
func (s *Session) makeNodes(ctx context.Context, full string) (made bool, err error) {
	parent := full[:strings.LastIndexByte(full, '/')]
	above := false // this call has made the parent
	defer func() {
		if err != nil && above {
			s.giveBack(parent)
		}
	}()
	again := rounds.Pace{New: s.cfg.Retry}
	for {
		made, err = s.makeNode(ctx, full)
		if !errors.Is(err, zk.ErrNoNode) || parent == "" {
			return made, err
		}
		if above, err = s.makeNodes(ctx, parent); err != nil {
			return false, err
		}
		if err := again.Wait(ctx, s.Done()); err != nil {
			return false, opError(hooks.RequestInfo{Op: "create", Path: s.inward(full)}, err)
		}
	}
}

// makeNode makes one node. full has the chroot. Any number of tries make one node, so unlike
// other creates it is repeated if its reply is lost. A node that is made after ctx has ended is given back.
func (s *Session) makeNode(ctx context.Context, full string) (made bool, err error) {
	var there, unwanted atomic.Bool // this call has made the node, or may have: the reply was lost
	_, err = do(ctx, s, hooks.RequestInfo{Op: "create", Path: s.inward(full)}, always, inGoroutine(s, func() (string, error) {
		name, err := s.createDirectory(ctx, full)
		if err == nil || classify(err) == replyLost {
			there.Store(true)
			if unwanted.Load() {
				s.giveBack(full)
			}
		}
		return name, err
	}))
	if errors.Is(err, zk.ErrNodeExists) {
		return there.Load(), nil
	}
	if err != nil {
		unwanted.Store(true)
		if there.Load() {
			s.giveBack(full)
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoAuth) && s.isThere(ctx, full):
		return false, nil // a server checks the right to create before it checks whether the node exists
	}
	return err == nil, err
}

func (s *Session) isThere(ctx context.Context, full string) bool {
	stat, err := do(ctx, s, hooks.RequestInfo{Op: "exists", Path: s.inward(full)}, always, s.exists(ctx, full))
	return err == nil && stat != nil
}

// createDirectory makes a container, or a persistent node if the servers have no containers. full has the
// chroot.
func (s *Session) createDirectory(ctx context.Context, full string) (string, error) {
	known := s.dialer.containers
	mode, alone, err := known.mode(ctx, s.life)
	if err != nil {
		return "", err
	}
	if err := s.ready(ctx); err != nil { // the create that went before can have cost the connection
		known.concluded(outcomeNone, alone)
		return "", err
	}
	if alone { // a hang-up says nothing unless the connection works
		if _, err := await(s.exists(s.life, s.outward("/"))); classify(err) != answered { // a refusal is an answer
			known.concluded(outcomeNone, alone)
			return "", err
		}
	}
	conn := s.present()
	made, err := await(s.create(s.life, full, nil, mode, nil))
	if mode != Container {
		return made, err
	}
	why := known.concluded(outcomeOf(err, conn.Err()), alone)
	if why != nil {
		s.cfg.Log.Warn("zookeeper has no container nodes, so the directories of locks stay when they are empty",
			slog.String("server", s.server().String()), slog.Any("cause", why))
	}
	if errors.Is(err, ErrUnimplemented) {
		return await(s.create(s.life, full, nil, Persistent, nil))
	}
	return made, err
}
