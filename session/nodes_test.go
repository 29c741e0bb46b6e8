package session_test

import (
	"context"
	"errors"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
)

// enter makes a node with a fixed name.
func enter(t testing.TB, s *session.Session, name string) *session.Node {
	t.Helper()
	n, err := s.Enter(t.Context(), session.NewNode{Dir: path.Dir(name), Name: path.Base(name), Fixed: true})
	must(t, err)
	return n
}

// deletes deletes a node of the session in one of the ways that there are.
func deletes(ctx context.Context, s *session.Session, n *session.Node, by string) error {
	switch by {
	case "Delete":
		return s.Delete(ctx, n.Path, -1)
	case "Multi":
		_, err := s.Multi(ctx, &zk.DeleteRequest{Path: n.Path, Version: -1})
		return err
	}
	return gone(n.Remove(ctx))
}

// gone waits for the end of a removal.
func gone(r *session.Removal) error {
	<-r.Done()
	return r.Err()
}

// makeNode makes an ephemeral node with a fixed name.
func makeNode(ctx context.Context, s *session.Session, at string, data []byte) (string, error) {
	n, err := s.Enter(ctx, session.NewNode{Dir: path.Dir(at), Name: path.Base(at), Data: data, Fixed: true})
	if err != nil {
		return "", err
	}
	return n.Path, nil
}

// makeNumbered makes an ephemeral node whose name begins with an id and ends with a number.
func makeNumbered(ctx context.Context, s *session.Session, at string, data []byte) (string, error) {
	n, err := s.Enter(ctx, session.NewNode{Dir: path.Dir(at), Name: path.Base(at), Data: data})
	if err != nil {
		return "", err
	}
	return n.Path, nil
}

// makeDir makes a directory, unless it is there.
func makeDir(ctx context.Context, s *session.Session, at string) error {
	_, err := s.Create(ctx, at, nil, session.Container)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
