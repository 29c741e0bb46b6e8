package queue_test

import (
	"context"
	"testing"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The reply to a create is lost, in every way. Exactly one node comes of it, and it is the lease's.
func TestCreateReplyLost(t *testing.T) {
	for _, c := range []struct {
		what string
		cut  func(*zktest.Proxy, zktest.Match) *zktest.Fault
		// whether the first node must be the one in the end
		adopted bool
	}{
		{"before it is processed", (*zktest.Proxy).CutBefore, false},
		{"after it is committed", (*zktest.Proxy).CutAfterCommit, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, m := proxied(t, dir)
			before := testserver.Session(t, m).ID()
			fault := c.cut(proxy, ofContenders(dir, zktest.OpCreate))
			l := acquire(t, q)
			await(t, fault.Hit(), "the fault")
			onlyChild(t, l)
			if got := proxy.Count(ofContenders(dir, zktest.OpCreate)); c.adopted != (got == 1) {
				t.Errorf("%d creates were sent", got)
			}
			if testserver.Session(t, m).ID() != before {
				t.Error("not in the same session")
			}
			release(t, l)
			testserver.WaitChildren(t, dir, 0)
		})
	}
}

// A create is held up in the network, and arrives after the client has reconnected, looked for the
// node and created another. The server accepts nothing from the old connection then.
func TestCreateTurnsUpLate(t *testing.T) {
	longtest.Only(t)
	dir := persistentDir(t)
	q, proxy, _ := proxied(t, dir, session.WithTimeout(short))
	hold := proxy.HoldRequest(ofContenders(dir, zktest.OpCreate))
	l := acquire(t, q) // once the client has given the silent connection up
	await(t, hold.Hit(), "the create")
	hold.Release()
	token, err := l.Token(patient(t)) // a round trip at least
	if err != nil || token == 0 {
		t.Fatal(token, err)
	}
	testserver.WaitChildren(t, dir, 1)
	onlyChild(t, l)
	release(t, l)
	testserver.WaitChildren(t, dir, 0)
}

// The caller's context ends while it is not known whether there is a node. The call returns at once,
// and no node stays.
func TestCreateAbandoned(t *testing.T) {
	for _, c := range []struct {
		what string
		// begin breaks something, in which the create is caught; mend undoes it.
		begin func(*zktest.Proxy, zktest.Match) *zktest.Fault
		mend  func(*zktest.Proxy, *zktest.Fault)
	}{
		{
			"reply held back",
			(*zktest.Proxy).HoldReply,
			func(_ *zktest.Proxy, f *zktest.Fault) { f.Release() },
		}, {
			"reply held back, then lost",
			(*zktest.Proxy).HoldReply,
			func(p *zktest.Proxy, _ *zktest.Fault) { p.Disconnect() },
		}, {
			"request held back",
			(*zktest.Proxy).HoldRequest,
			func(_ *zktest.Proxy, f *zktest.Fault) { f.Release() },
		}, {
			"committed, and no way back for a while",
			func(p *zktest.Proxy, m zktest.Match) *zktest.Fault {
				p.Refuse(true)
				return p.CutAfterCommit(m)
			},
			func(p *zktest.Proxy, _ *zktest.Fault) { p.Heal() },
		}, {
			"cut off before, and no way back for a while",
			func(p *zktest.Proxy, m zktest.Match) *zktest.Fault {
				p.Refuse(true)
				return p.CutBefore(m)
			},
			func(p *zktest.Proxy, _ *zktest.Fault) { p.Heal() },
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, m := proxied(t, dir)
			before := testserver.Session(t, m).ID()
			fault := c.begin(proxy, ofContenders(dir, zktest.OpCreate))
			call := begin(t, q, ask)
			await(t, fault.Hit(), "the create")
			call.cancel()
			call.wait(t)
			mustBe(t, call.err, context.Canceled)
			c.mend(proxy, fault)
			// The node may still be to come: a later acquisition, behind it on the same
			// connection, shows that all is done.
			l := acquire(t, q)
			testserver.WaitChildren(t, dir, 1)
			onlyChild(t, l)
			release(t, l)
			testserver.WaitChildren(t, dir, 0)
			if testserver.Session(t, m).ID() != before {
				t.Error("not in the same session: its end would have removed everything")
			}
		})
	}
}

// A call that is given up while disconnected sends nothing after the connection is back.
func TestAbandonedWhileDisconnected(t *testing.T) {
	dir := persistentDir(t)
	q, proxy, m := proxied(t, dir)
	proxy.Refuse(true)
	proxy.Disconnect()
	zktest.Eventually(t, testserver.Patience, "the disconnection", func() bool { return m.State() == session.Suspended })
	var calls []*call
	for range 5 {
		calls = append(calls, begin(t, q, ask))
	}
	for _, c := range calls {
		c.waits(t, "there is no connection")
		c.cancel()
		c.wait(t)
		mustBe(t, c.err, context.Canceled)
	}
	proxy.Heal()
	l := acquire(t, q)
	onlyChild(t, l)
	if n := proxy.Count(ofContenders(dir, zktest.OpCreate)); n != 1 {
		t.Errorf("%d creates were sent, want the last call's alone", n)
	}
	release(t, l)
}
