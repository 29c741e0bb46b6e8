package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// Making a directory twice has the effect of once, so a lost reply is not reported.
func TestDirectoryLosesReply(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d := testserver.Path(t)
	f := p.CutAfterCommit(zktest.Any(zktest.OpCreateContainer))
	_, err := makeNode(patient(t), s, d+"/lost/reply/n", nil)
	must(t, err)
	within(t, f.Hit(), "the cut")
}

// Directories are containers, which the server removes when they are empty again.
func TestDirectoriesAreContainers(t *testing.T) {
	longtest.Only(t)
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx := testserver.Path(t), patient(t)
	node, err := makeNode(ctx, s, d+"/a/n", nil)
	must(t, err)
	must(t, s.Delete(ctx, node, -1))
	zktest.Eventually(t, testserver.Patience, "the containers have gone", func() bool {
		stat, err := s.Exists(ctx, d)
		return err == nil && stat == nil
	})
}

// A directory that exists is used, even if the client may not create nodes beside it: servers check that right before they
// check whether the node exists.
func TestDirectoryWithoutTheRight(t *testing.T) {
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	d, ctx, admin := testserver.Path(t), patient(t), testserver.Admin(t)
	all, read := zk.WorldACL(zk.PermAll), zk.WorldACL(zk.PermRead)
	_, err := admin.Create(d, nil, 0, all)
	must(t, err)
	_, err = admin.Create(d+"/there", nil, 0, all)
	must(t, err)
	_, err = admin.SetACL(d, read, -1)
	must(t, err)
	for _, at := range []string{"/there", "/there/below", "/there/further/down"} {
		_, err = makeNode(ctx, s, d+at+"/n", nil)
		must(t, err)
	}
	_, err = makeNode(ctx, s, d+"/missing/n", nil)
	wantErr(t, "one that is missing", err, zk.ErrNoAuth)
	below := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()+d+"/there"))
	_, err = makeNode(ctx, below, "/m", nil)
	must(t, err)
}
