package session_test

import (
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

func TestMakeParents(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d, ctx := testserver.Path(t), patient(t)
	for _, dir := range []string{d + "/a/b/c", d + "/a/b/c", d + "/a", d + "/a/x", "/"} {
		must(t, (*core.Session)(s).MakeParents(ctx, dir))
		if stat, err := s.Exists(ctx, dir); err != nil || stat == nil {
			t.Fatalf("%s: %v, %v", dir, stat, err)
		}
	}
	// Making a directory twice has the effect of once, so a lost reply is not reported.
	f := p.CutAfterCommit(zktest.Any(zktest.OpCreateContainer))
	must(t, (*core.Session)(s).MakeParents(ctx, d+"/lost/reply"))
	within(t, f.Hit(), "the cut")
}

func TestMakeParentsTogether(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx := testserver.Path(t), patient(t)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := (*core.Session)(s).MakeParents(ctx, d+"/a/b/c"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// makeParents makes containers, which the server removes when they are empty again.
func TestMakeParentsContainers(t *testing.T) {
	longtest.Only(t)
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx := testserver.Path(t), patient(t)
	must(t, (*core.Session)(s).MakeParents(ctx, d+"/a"))
	node, err := s.Create(ctx, d+"/a/n", nil, session.Ephemeral)
	must(t, err)
	must(t, s.Delete(ctx, node, -1))
	zktest.Eventually(t, testserver.Patience, "the containers have gone", func() bool {
		stat, err := s.Exists(ctx, d)
		return err == nil && stat == nil
	})
}

// makeParents succeeds for a directory that exists, even if the client may not create nodes
// beside it: servers check that right before they check whether the node exists.
func TestMakeParentsWithoutTheRight(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx, admin := testserver.Path(t), patient(t), testserver.Admin(t)
	all, read := zk.WorldACL(zk.PermAll), zk.WorldACL(zk.PermRead)
	_, err := admin.Create(d, nil, 0, all)
	must(t, err)
	_, err = admin.Create(d+"/there", nil, 0, all)
	must(t, err)
	_, err = admin.SetACL(d, read, -1)
	must(t, err)
	must(t, (*core.Session)(s).MakeParents(ctx, d+"/there"))
	must(t, (*core.Session)(s).MakeParents(ctx, d+"/there/below"))
	wantErr(t, "one that is missing", (*core.Session)(s).MakeParents(ctx, d+"/missing"), zk.ErrNoAuth)

	below := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()+d+"/there"))
	must(t, (*core.Session)(below).MakeParents(ctx, "/"))
}

// If the server knows no containers, directories are persistent nodes. The server hangs up on a
// request that it does not know.
func TestParentsWithoutContainers(t *testing.T) {
	srv := zktest.Start(t, zktest.NoContainers())
	m := testserver.Connect(t, "any:2181", session.WithDialer(srv.Dialer()), session.WithTimeout(20*time.Second))
	s := testserver.Session(t, m)
	must(t, (*core.Session)(s).MakeParents(patient(t), "/a/b/c"))
	_, err := s.Create(patient(t), "/a/b/c/n", nil, session.Ephemeral)
	must(t, err)
}
