package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestCreateModes(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx := dir(t, s), patient(t)
	for _, c := range []struct {
		name       string
		mode       session.CreateMode
		sequential bool
	}{
		{"persistent", session.Persistent, false},
		{"persistent-sequential", session.PersistentSequential, true},
		{"container", session.Container, false},
		{"ttl", session.PersistentTTL(time.Hour), false},
		{"ttl-sequential", session.PersistentSequentialTTL(time.Hour), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := d + "/" + c.name
			made, err := s.Create(ctx, asked, []byte("data"), c.mode)
			must(t, err)
			if number := strings.TrimPrefix(made, asked); (len(number) == 10) != c.sequential {
				t.Errorf("asked for %s, got %s", asked, made)
			}
			data, stat, err := s.Get(ctx, made)
			must(t, err)
			if string(data) != "data" || stat.EphemeralOwner == s.ID() {
				t.Errorf("data %q, owner %x", data, stat.EphemeralOwner)
			}
		})
	}
	_, err := s.Create(ctx, d+"/bad", nil, session.PersistentTTL(0))
	wantErr(t, "no TTL", err, session.ErrInvalid)
}

func TestRequests(t *testing.T) {
	m := testserver.Connect(t, testserver.Server(t).ConnectString())
	s := testserver.Session(t, m)
	d, ctx := dir(t, s), patient(t)
	node := d + "/node"
	if stat, err := s.Exists(ctx, node); stat != nil || err != nil {
		t.Fatalf("exists: %v, %v", stat, err)
	}
	_, _, err := s.Get(ctx, node)
	wantErr(t, "get", err, zk.ErrNoNode)
	_, err = s.Create(ctx, node, nil, session.Persistent)
	must(t, err)
	_, err = s.Create(ctx, node, nil, session.Persistent)
	wantErr(t, "create again", err, zk.ErrNodeExists)
	stat, err := s.Set(ctx, node, []byte("one"), 0)
	must(t, err)
	if stat.Version != 1 {
		t.Errorf("version %d after a set", stat.Version)
	}
	_, err = s.Set(ctx, node, []byte("two"), 0)
	wantErr(t, "set of an old version", err, zk.ErrBadVersion)
	must(t, s.Sync(ctx, d))
	names, _, err := s.Children(ctx, d)
	must(t, err)
	if diff := cmp.Diff([]string{"node"}, names); diff != "" {
		t.Error(diff)
	}
	wantErr(t, "delete of an old version", s.Delete(ctx, node, 0), zk.ErrBadVersion)
	must(t, s.Delete(ctx, node, -1))
	wantErr(t, "delete again", s.Delete(ctx, node, -1), zk.ErrNoNode)
	wantErr(t, "data", checkBig(s, ctx, d), session.ErrInvalid)
}

func checkBig(s *session.Session, ctx context.Context, d string) error {
	_, err := s.Create(ctx, d+"/big", make([]byte, 300<<10), session.Persistent)
	return err
}

func TestMulti(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx := dir(t, s), patient(t)
	rs, err := s.Multi(ctx,
		&zk.CreateRequest{Path: d + "/a"},
		&zk.CreateRequest{Path: d + "/b", Data: []byte("b")},
		&zk.SetDataRequest{Path: d + "/a", Data: []byte("a"), Version: 0},
		&zk.CheckVersionRequest{Path: d + "/a", Version: 1})
	must(t, err)
	if len(rs) != 4 || rs[0].String != d+"/a" || rs[2].Stat.Version != 1 {
		t.Errorf("results %+v", rs)
	}
	rs, err = s.Multi(ctx,
		&zk.DeleteRequest{Path: d + "/b", Version: -1},
		&zk.CheckVersionRequest{Path: d + "/none", Version: -1})
	wantErr(t, "a refused check", err, zk.ErrNoNode)
	if len(rs) != 2 || !errors.Is(rs[1].Error, zk.ErrNoNode) {
		t.Errorf("results of a refusal: %+v", rs)
	}
	if stat, err := s.Exists(ctx, d+"/b"); err != nil || stat == nil {
		t.Errorf("a refused multi deleted: %v, %v", stat, err)
	}
	for _, ops := range [][]any{nil, {"x"}, {&zk.DeleteRequest{Path: "bad"}}} {
		if _, err := s.Multi(ctx, ops...); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("multi of %v: %v", ops, err)
		}
	}
}

// The chroot is added to every path that is sent, and removed from every path that is returned.
// It is created when needed.
func TestChroot(t *testing.T) {
	root := testserver.Path(t)
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()+root+"/app"))
	ctx := patient(t)
	made, err := s.Create(ctx, "/a/node-", nil, session.PersistentSequential)
	must(t, err)
	if made != "/a/node-0000000000" {
		t.Errorf("made %s", made)
	}
	if names := testserver.Children(t, root+"/app/a"); len(names) != 1 {
		t.Errorf("on the server: %v", names)
	}
	names, _, err := s.Children(ctx, "/")
	must(t, err)
	if diff := cmp.Diff([]string{"a"}, names); diff != "" {
		t.Error(diff)
	}
	_, _, w, err := s.Watch(ctx, made)
	must(t, err)
	must(t, s.Delete(ctx, made, -1))
	zktest.Eventually(t, testserver.Patience, "the event", func() bool { return w.Event() == session.WatchDeleted })
}

// With a context that has ended no request is sent.
func TestEndedContextSendsNothing(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	zktest.Eventually(t, testserver.Patience, "a quiet line", func() bool {
		p.ResetRequests()
		return true
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls := map[string]func() error{
		"get":      func() error { _, _, err := s.Get(ctx, "/"); return err },
		"children": func() error { _, _, err := s.Children(ctx, "/"); return err },
		"exists":   func() error { _, err := s.Exists(ctx, "/"); return err },
		"create":   func() error { _, err := makeNode(ctx, s, "/x", nil); return err },
		"set":      func() error { _, err := s.Set(ctx, "/x", nil, -1); return err },
		"delete":   func() error { return s.Delete(ctx, "/x", -1) },
		"watch":    func() error { _, _, _, err := s.Watch(ctx, "/"); return err },
		"multi":    func() error { _, err := s.Multi(ctx, &zk.DeleteRequest{Path: "/x"}); return err },
		"parents":  func() error { return makeDir(ctx, s, "/x/y") },
	}
	for name, call := range calls {
		wantErr(t, name, call(), context.Canceled)
	}
	own := func(r zktest.Request) bool { return r.Op != zktest.OpPing && r.Op != zktest.OpSync }
	if n := p.Count(own); n != 0 {
		t.Errorf("%d frames", n)
	}
}

func TestBadPathsSendNothing(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	ctx := patient(t)
	for _, p := range []string{"", "x", "/x/", "//", "/a//b", "/..", "/a/./b", "/a\x00"} {
		_, _, err := s.Get(ctx, p)
		wantErr(t, p, err, session.ErrInvalid)
		wantErr(t, p, s.Delete(ctx, p, -1), session.ErrInvalid)
	}
}
