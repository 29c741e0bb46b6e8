package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A write that is guarded by the version of another node is carried out with the check, or not at
// all.
func TestMultiGuarded(t *testing.T) {
	root := testserver.Path(t)
	s := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()+root))
	ctx := patient(t)
	must(t, makeDir(ctx, s, "/d"))
	guard, err := makeNode(ctx, s, "/d/guard", nil)
	must(t, err)
	check := &zk.CheckVersionRequest{Path: guard, Version: 0}
	create := &zk.CreateRequest{Path: "/d/n-", Flags: zk.FlagSequence}
	rs, err := s.Multi(ctx, check, create)
	must(t, err)
	if rs[1].String != "/d/n-0000000001" {
		t.Errorf("made %q, with the chroot off", rs[1].String)
	}
	if check.Path != guard || create.Path != "/d/n-" || create.Acl != nil {
		t.Error("the caller's requests were changed")
	}
	must(t, s.Delete(ctx, guard, -1))
	_, err = s.Multi(ctx, check, create)
	wantErr(t, "without the guard", err, zk.ErrNoNode)
	if names := testserver.Children(t, root+"/d"); len(names) != 1 {
		t.Errorf("nodes %v", names)
	}
}

func TestMultiLostReply(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d, ctx := dir(t, s), patient(t)
	f := p.CutAfterCommit(zktest.On(zktest.OpMulti, d))
	_, err := s.Multi(ctx, &zk.CreateRequest{Path: d + "/n-", Flags: zk.FlagSequence})
	wantErr(t, "multi", err, zk.ErrConnectionClosed)
	within(t, f.Hit(), "the cut")
	must(t, s.Sync(ctx, d))
	if names := testserver.Children(t, d); len(names) != 1 || !errors.Is(err, session.ErrUncertain) {
		t.Errorf("nodes %v, uncertain %v", names, errors.Is(err, session.ErrUncertain))
	}
}

// A multi makes persistent nodes only. Others are refused before anything is sent.
func TestMultiKinds(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d, ctx := dir(t, s), patient(t)
	for _, flags := range []int32{zk.FlagContainer, zk.FlagTTL, zk.FlagPersistentSequentialWithTTL, zk.FlagEphemeral, zk.FlagEphemeralSequential, 7, -1} {
		_, err := s.Multi(ctx, &zk.CreateRequest{Path: d + "/n-", Flags: flags})
		wantErr(t, "flags", err, session.ErrInvalid)
	}
	if n := p.Count(zktest.On(zktest.OpMulti, d)); n != 0 {
		t.Errorf("%d were sent", n)
	}
	for _, flags := range []int32{zk.FlagPersistent, zk.FlagSequence} {
		_, err := s.Multi(ctx, &zk.CreateRequest{Path: d + "/n", Flags: flags}, &zk.DeleteRequest{Path: d + "/x", Version: -1})
		wantErr(t, "flags", err, zk.ErrNoNode)
	}
}
