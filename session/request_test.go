package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestCreateModes(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		for name, c := range map[string]struct {
			mode       session.CreateMode
			sequential bool
		}{
			"persistent":            {session.Persistent, false},
			"persistent-sequential": {session.PersistentSequential, true},
			"container":             {session.Container, false},
			"ttl":                   {session.PersistentTTL(time.Hour), false},
			"ttl-sequential":        {session.PersistentSequentialTTL(time.Hour), true},
		} {
			asked := e.d + "/" + name
			made, err := e.s.Create(t.Context(), asked, []byte("data"), c.mode)
			must(t, err)
			if number := strings.TrimPrefix(made, asked); (len(number) == 10) != c.sequential {
				t.Errorf("asked for %s, got %s", asked, made)
			}
			data, stat, err := e.s.Get(t.Context(), made)
			must(t, err)
			if string(data) != "data" || stat.EphemeralOwner == e.s.ID() {
				t.Errorf("data %q, owner %x", data, stat.EphemeralOwner)
			}
		}
		_, err := e.s.Create(t.Context(), e.d+"/bad", nil, session.PersistentTTL(0))
		wantErr(t, "no TTL", err, session.ErrInvalid)
	})
}

func TestRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		s, ctx, node := e.s, t.Context(), e.d+"/node"
		if stat, err := s.Exists(ctx, node); stat != nil || err != nil {
			t.Fatalf("exists: %v, %v", stat, err)
		}
		_, _, err := s.Get(ctx, node)
		wantErr(t, "get", err, zk.ErrNoNode)
		must(t, expect.Err(s.Create(ctx, node, nil, session.Persistent)))
		wantErr(t, "create again", expect.Err(s.Create(ctx, node, nil, session.Persistent)), zk.ErrNodeExists)
		stat, err := s.Set(ctx, node, []byte("one"), 0)
		must(t, err)
		wantErr(t, "set of an old version", expect.Err(s.Set(ctx, node, []byte("two"), 0)), zk.ErrBadVersion)
		must(t, s.Sync(ctx, e.d))
		names, _, err := s.Children(ctx, e.d)
		must(t, err)
		if len(names) != 1 || names[0] != "node" || stat.Version != 1 {
			t.Errorf("names %q, version %d", names, stat.Version)
		}
		wantErr(t, "delete of an old version", s.Delete(ctx, node, 0), zk.ErrBadVersion)
		must(t, s.Delete(ctx, node, -1))
		wantErr(t, "delete again", s.Delete(ctx, node, -1), zk.ErrNoNode)
		wantErr(t, "a bad path", s.Delete(ctx, "/a//b", -1), session.ErrInvalid)
		_, _, err = s.Get(ctx, "x")
		wantErr(t, "a bad path", err, session.ErrInvalid)
		_, err = s.Create(ctx, node, make([]byte, 300<<10), session.Persistent)
		wantErr(t, "much data", err, session.ErrInvalid)
		wantErr(t, "much data to set", expect.Err(s.Set(ctx, e.d, make([]byte, 300<<10), -1)), session.ErrInvalid)
		half := &zk.SetDataRequest{Path: e.d, Data: make([]byte, 150<<10), Version: -1}
		must(t, expect.Err(s.Multi(ctx, half)))
		wantErr(t, "much data in all", expect.Err(s.Multi(ctx, half, half)), session.ErrInvalid)
	})
}

// A multi is carried out as a whole, or not at all. It makes persistent nodes only: others are refused before anything is sent.
func TestMulti(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		s, ctx, d := e.s, t.Context(), e.d
		rs, err := s.Multi(ctx,
			&zk.CreateRequest{Path: d + "/a"},
			&zk.CreateRequest{Path: d + "/b", Data: []byte("b")},
			&zk.SetDataRequest{Path: d + "/a", Data: []byte("a"), Version: 0},
			&zk.CheckVersionRequest{Path: d + "/a", Version: 1})
		must(t, err)
		if len(rs) != 4 || rs[0].String != d+"/a" || rs[2].Stat.Version != 1 {
			t.Errorf("results %+v", rs)
		}
		rs, err = s.Multi(ctx, &zk.DeleteRequest{Path: d + "/b", Version: -1}, &zk.CheckVersionRequest{Path: d + "/none", Version: -1})
		wantErr(t, "a refused check", err, zk.ErrNoNode)
		if len(rs) != 2 || !errors.Is(rs[1].Error, zk.ErrNoNode) {
			t.Errorf("results of a refusal: %+v", rs)
		}
		if stat, err := s.Exists(ctx, d+"/b"); err != nil || stat == nil {
			t.Errorf("a refused multi deleted: %v, %v", stat, err)
		}
		e.ResetRequests()
		for _, ops := range [][]any{nil, {"x"}, {&zk.DeleteRequest{Path: "bad"}}} {
			wantErr(t, "bad operations", expect.Err(s.Multi(ctx, ops...)), session.ErrInvalid)
		}
		for _, flags := range []int32{zk.FlagContainer, zk.FlagTTL, zk.FlagPersistentSequentialWithTTL, zk.FlagEphemeral, zk.FlagEphemeralSequential, 7, -1} {
			_, err := s.Multi(ctx, &zk.CreateRequest{Path: d + "/n-", Flags: flags})
			wantErr(t, "flags", err, session.ErrInvalid)
		}
		expect.Requests(t, "bad operations", e.Server, zktest.Any(zktest.OpMulti), 0)
	})
}

// The chroot is added to every path that is sent, and removed from every path that is returned. It is created when needed.
func TestChroot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, srv := t.Context(), zktest.Start(t)
		_, s := virtually(t, "h:1/root/app", srv.Dialer())
		_, other := virtually(t, "h:1", srv.Dialer())
		made, err := s.Create(ctx, "/a/node-", nil, session.PersistentSequential)
		must(t, err)
		check, create := &zk.CheckVersionRequest{Path: made}, &zk.CreateRequest{Path: "/a/n-", Flags: zk.FlagSequence}
		rs, err := s.Multi(ctx, check, create)
		must(t, err)
		if made != "/a/node-0000000000" || rs[1].String != "/a/n-0000000001" {
			t.Errorf("made %s, %s", made, rs[1].String)
		}
		if check.Path != made || create.Path != "/a/n-" || create.Acl != nil {
			t.Error("the caller's requests were changed")
		}
		if names, _, err := other.Children(ctx, "/root/app/a"); err != nil || len(names) != 2 {
			t.Errorf("on the server: %v, %v", names, err)
		}
		if names, _, err := s.Children(ctx, "/"); err != nil || len(names) != 1 || names[0] != "a" {
			t.Errorf("below the chroot: %v, %v", names, err)
		}
		_, _, w, err := s.Watch(ctx, made)
		must(t, err)
		must(t, s.Delete(ctx, made, -1))
		wantEvent(t, w, session.WatchDeleted)
	})
}

// With a context that has ended no request is sent.
func TestEndedContextSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, e *env) {
		s := e.s
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		e.ResetRequests()
		for name, call := range map[string]func() error{
			"get":      func() error { _, _, err := s.Get(ctx, "/"); return err },
			"children": func() error { _, _, err := s.Children(ctx, "/"); return err },
			"exists":   func() error { _, err := s.Exists(ctx, "/"); return err },
			"create":   func() error { _, err := makeNode(ctx, s, "/x", nil); return err },
			"enter":    func() error { _, err := makeNumbered(ctx, s, "/x", nil); return err },
			"set":      func() error { _, err := s.Set(ctx, "/x", nil, -1); return err },
			"delete":   func() error { return s.Delete(ctx, "/x", -1) },
			"watch":    func() error { _, _, _, err := s.Watch(ctx, "/"); return err },
			"multi":    func() error { _, err := s.Multi(ctx, &zk.DeleteRequest{Path: "/x"}); return err },
			"parents":  func() error { return makeDir(ctx, s, "/x/y") },
		} {
			wantErr(t, name, call(), context.Canceled)
		}
		if got := e.Requests(); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
	})
}

// Requests that the server does not implement have an error of their own. TTL nodes are disabled on servers by default: the
// server refuses them, and the connection stays.
func TestUnimplemented(t *testing.T) {
	longtest.InCI(t)
	real := zktest.StartReal(t, zktest.Property("extendedTypesEnabled", "false"))
	s := testserver.Session(t, testserver.Connect(t, real.ConnectString()))
	_, err := s.Create(patient(t), "/ttl", nil, session.PersistentTTL(time.Hour))
	wantErr(t, "a TTL node", err, session.ErrUnimplemented)
	if strings.Contains(err.Error(), "unknown") {
		t.Errorf("%v", err)
	}
}

// A client without ADMIN does not see the hashes of digests in a list, and one without READ and ADMIN sees nothing.
func TestACL(t *testing.T) {
	ctx, root, servers := patient(t), testserver.Path(t), testserver.Server(t).ConnectString()
	user := zk.DigestACL(zk.PermAll, "user", "secret")
	all := append(zk.DigestACL(zk.PermRead, "reader", "secret"), user...)
	must(t, expect.Err(testserver.Admin(t).Create(root, nil, 0, all)))
	hidden := []zk.ACL{{Perms: zk.PermRead, Scheme: "digest", ID: "reader:x"}, {Perms: zk.PermAll, Scheme: "digest", ID: "user:x"}}
	for identity, want := range map[string][]zk.ACL{"user:secret": all, "reader:secret": hidden, "nobody:secret": nil} {
		for chroot, path := range map[string]string{"": root, root: "/"} {
			m := testserver.Connect(t, servers+chroot, session.WithAuth("digest", []byte(identity)))
			got, err := testserver.Session(t, m).ACL(ctx, path)
			if want == nil {
				wantErr(t, identity, err, zk.ErrNoAuth)
			} else {
				must(t, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the list differs (-want +got):\n%s", identity, diff)
			}
		}
	}
	s := testserver.Session(t, testserver.Connect(t, servers))
	wantErr(t, "no such node", expect.Err(s.ACL(ctx, testserver.Path(t)+"/none")), zk.ErrNoNode)
	wantErr(t, "bad path", expect.Err(s.ACL(ctx, "a")), session.ErrInvalid)
}

// A directory that exists is used, even if the client may not create nodes beside it: servers check that right before they
// check whether the node exists.
func TestDirectoryWithoutTheRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		admin := rawClient(t, srv.Dialer())
		all := zk.WorldACL(zk.PermAll)
		for _, path := range []string{"/d", "/d/there"} {
			must(t, expect.Err(admin.Create(path, nil, 0, all)))
		}
		_, err := admin.SetACL("/d", zk.WorldACL(zk.PermRead), -1)
		must(t, err)
		_, s := virtually(t, "h:1", srv.Dialer())
		for _, at := range []string{"/there", "/there/below", "/there/further/down"} {
			must(t, expect.Err(makeNode(t.Context(), s, "/d"+at+"/n", nil)))
		}
		wantErr(t, "one that is missing", expect.Err(makeNode(t.Context(), s, "/d/missing/n", nil)), zk.ErrNoAuth)
		_, below := virtually(t, "h:1/d/there", srv.Dialer())
		must(t, expect.Err(makeNode(t.Context(), below, "/m", nil)))
	})
}
