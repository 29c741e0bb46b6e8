package session_test

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// Create makes the nodes above its own, with the list of the manager.
func TestCreateMakesParents(t *testing.T) {
	ctx, root := patient(t), testserver.Path(t)
	m := testserver.Connect(t, testserver.Server(t).ConnectString()+root+"/app", session.WithAuth("digest", []byte("me:secret")),
		session.WithACL(zk.AuthACL(zk.PermAll)...))
	s := testserver.Session(t, m)
	for _, path := range []string{"/a/b/c", "/a/b/d", "/e"} {
		node, err := s.Create(ctx, path, []byte("x"), session.Persistent)
		must(t, err)
		if node != path {
			t.Errorf("made %s, want %s", node, path)
		}
	}
	for _, path := range []string{"/", "/a", "/a/b"} {
		acl, err := s.ACL(ctx, path)
		must(t, err)
		if len(acl) != 1 || acl[0].Scheme != "digest" {
			t.Errorf("the list of %s: %v", path, acl)
		}
	}
}

// If the servers refuse the node, the directory that was made for it goes away again.
func TestCreateGivesParentsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		m := testserver.Connect(t, "zk:2181", session.WithDialer(srv.Dialer()), session.WithACL(zk.ACL{Perms: zk.PermRead | zk.PermDelete, Scheme: "world", ID: "anyone"}))
		s := testserver.Session(t, m)
		_, err := s.Create(t.Context(), "/d/n", nil, session.Persistent)
		wantErr(t, "create in a directory that nobody may create in", err, zk.ErrNoAuth)
		zktest.Eventually(t, 3*s.Timeout(), "the end of the directory", func() bool {
			stat, err := s.Exists(t.Context(), "/d")
			return err == nil && stat == nil
		})
	})
}
