package session_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
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
	must(t, (*core.Session)(s).MakeParents(ctx, "/d"))
	guard, err := s.Create(ctx, "/d/guard", nil, session.Ephemeral)
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

// Ephemeral nodes of a multi count, in whichever way they come and go.
func TestMultiCountsNodes(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second, session.WithMaxNodes(2))
	d, ctx := dir(t, s), patient(t)
	create := &zk.CreateRequest{Path: d + "/n-", Flags: zk.FlagEphemeralSequential}
	before := p.Count(zktest.On(zktest.OpMulti, d))
	_, err := s.Multi(ctx, create, create, create)
	wantErr(t, "three of two", err, session.ErrTooManyNodes)
	if n := p.Count(zktest.On(zktest.OpMulti, d)); n != before {
		t.Error("it was sent")
	}
	_, err = s.Multi(ctx, create, &zk.CheckVersionRequest{Path: d + "/none"})
	wantErr(t, "one that is refused, and makes none", err, zk.ErrNoNode)
	rs, err := s.Multi(ctx, create, create)
	must(t, err)
	_, err = s.Create(ctx, d+"/m", nil, session.Ephemeral)
	wantErr(t, "the third", err, session.ErrTooManyNodes)
	rs, err = s.Multi(ctx, &zk.DeleteRequest{Path: rs[0].String, Version: -1}, create)
	must(t, err) // one goes and one comes
	_, err = s.Create(ctx, d+"/m", nil, session.Ephemeral)
	wantErr(t, "the third, again", err, session.ErrTooManyNodes)
	_, err = s.Multi(ctx, &zk.DeleteRequest{Path: rs[1].String, Version: -1})
	must(t, err)
	_, err = s.Create(ctx, d+"/m", nil, session.Ephemeral)
	must(t, err)
}

// Nodes that zk.Conn cannot create in a multi are refused before anything is sent. A server would
// create the container, and its answer would break the connection.
func TestMultiKinds(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d, ctx := dir(t, s), patient(t)
	for _, flags := range []int32{zk.FlagContainer, zk.FlagTTL, zk.FlagPersistentSequentialWithTTL, 7, -1} {
		_, err := s.Multi(ctx, &zk.CreateRequest{Path: d + "/n-", Flags: flags})
		wantErr(t, "flags", err, session.ErrInvalid)
	}
	if n := p.Count(zktest.On(zktest.OpMulti, d)); n != 0 {
		t.Errorf("%d were sent", n)
	}
	for flags := range int32(4) {
		_, err := s.Multi(ctx, &zk.CreateRequest{Path: d + "/n", Flags: flags}, &zk.DeleteRequest{Path: d + "/x", Version: -1})
		wantErr(t, "flags", err, zk.ErrNoNode)
	}
}
