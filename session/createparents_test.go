package session_test

import (
	"testing"
	"testing/synctest"
	"time"

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

// The directory that was made for a node goes away again if nobody knows whether the node was made.
func TestCreateGivesParentsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := virtualEntry(t)
		srv.CutBefore(behind(zktest.On(zktest.OpCreateContainer, "/p/new"), zktest.On(zktest.OpCreate, "/p/new/")))
		_, err := e.s.Create(t.Context(), "/p/new/n", nil, session.Persistent)
		wantErr(t, "Create", err, session.ErrUncertain)
		if stat, err := e.other.Exists(t.Context(), "/p/new"); err != nil || stat == nil {
			t.Fatalf("the directory was not made: %v", err)
		}
		time.Sleep(3 * e.s.Timeout()) //nolint:forbidigo // in a bubble
		if stat, err := e.other.Exists(t.Context(), "/p/new"); err != nil || stat != nil {
			t.Errorf("the directory is there: %v", err)
		}
	})
}
