package zklock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// A contender whose data says that it does not listen, as earlier states of this module wrote it, is not asked, and its
// node stays as it is. Where the node does not say, Revoke sends the message.
func TestRevokeOfDeaf(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	for data, deaf := range map[string]bool{
		`{"id":"web-3/1","revocable":false}`: true, `{"id":"web-3/1","revocable":true}`: false, `{"id":"web-3/1"}`: false, "web-3": false,
	} {
		dir := testserver.Path(t)
		l, err := newMutex(t, m, dir).Acquire(ctx)
		must(t, err)
		if own, _, err := testserver.Admin(t).Get(l.Path()); err != nil || strings.Contains(string(own), "revocable") {
			t.Errorf("our own node has the data %s, %v", own, err)
		}
		_, err = testserver.Admin(t).Set(l.Path(), []byte(data), -1)
		must(t, err)
		want, message := error(nil), queue.RevokeMessage
		if deaf {
			want, message = zklock.ErrNotRevocable, data
		}
		wantErr(t, "Revoke of "+data, zklock.Revoke(ctx, m, l.Path()), want)
		if got, _, err := testserver.Admin(t).Get(l.Path()); err != nil || string(got) != message {
			t.Errorf("data %s, %v after a Revoke of %s", got, err, data)
		}
		must(t, l.Release(ctx))
	}
}

// A node that may be written but not read is asked, since nobody can know.
func TestRevokeOfUnreadable(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...)), dir)
	_, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	l, err := mx.Acquire(ctx)
	must(t, err)
	must(t, zklock.Revoke(ctx, connect(t), l.Path()))
	must(t, l.Release(ctx))
}

// If the reply to the message is lost, the message is sent again.
func TestRevokeReplyLost(t *testing.T) {
	for what, arm := range map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore,
		"after":  (*zktest.Proxy).CutAfterCommit,
	} {
		t.Run(what, func(t *testing.T) {
			ctx := patient(t)
			dir := testserver.Path(t)
			l, err := newMutex(t, connect(t), dir).Acquire(ctx)
			must(t, err)
			proxy := testserver.Proxy(t)
			fault := arm(proxy, zktest.On(zktest.OpSetData, dir))
			must(t, zklock.Revoke(ctx, testserver.Connect(t, proxy.Addr()), l.Path()))
			receive(t, "the fault", fault.Hit())
			receive(t, "the request", l.Revoked())
			must(t, l.Release(ctx))
		})
	}
}

// Revoke returns an error for bad input, before any I/O: the manager here cannot do any. It returns another error
// for a contender that is gone.
func TestRevokeErrors(t *testing.T) {
	ctx := patient(t)
	for _, node := range []string{
		"", "/", "locks/a/lock-0000000000", "/locks/a", "/locks/a/", "/locks/a/readme",
		"/locks/a/lock-", "/locks/a/lock-1", "/locks/a/block-0000000000", "/lock-0000000000",
	} {
		wantErr(t, "Revoke of "+node, zklock.Revoke(ctx, new(session.Manager), node), session.ErrInvalid)
	}
	const gone = "/locks/gone/_c_4b1c5fd6-lock-0000000000"
	wantErr(t, "Revoke by a nil manager", zklock.Revoke(ctx, nil, gone), session.ErrInvalid)
	m := connect(t)
	wantErr(t, "Revoke of one who is gone", zklock.Revoke(ctx, m, gone), zk.ErrNoNode)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "Revoke with a ctx that has ended", zklock.Revoke(ended, m, gone), context.Canceled)
	must(t, m.Close())
	wantErr(t, "Revoke by a closed manager", zklock.Revoke(ctx, m, gone), session.ErrClosed)
}
