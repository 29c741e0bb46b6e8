package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

type arm func(*zktest.Proxy, zktest.Match) *zktest.Fault

var cuts = map[string]arm{
	"before": (*zktest.Proxy).CutBefore,
	"after":  (*zktest.Proxy).CutAfterCommit,
}

// Reads and deletes are repeated, whether or not the server had received them.
func TestLostReplies(t *testing.T) {
	for when, cut := range cuts {
		t.Run(when, func(t *testing.T) {
			p, _, s := behindProxy(t, 10*time.Second)
			d, ctx := dir(t, s), patient(t)
			node, err := s.Create(ctx, d+"/n", []byte("x"), session.Ephemeral)
			must(t, err)

			f := cut(p, zktest.On(zktest.OpGetChildren2, d))
			names, _, err := s.Children(ctx, d)
			must(t, err)
			within(t, f.Hit(), "the cut")
			if len(names) != 1 {
				t.Errorf("children %v", names)
			}
			f = cut(p, zktest.On(zktest.OpGetData, node))
			data, _, _, err := s.Watch(ctx, node)
			must(t, err)
			within(t, f.Hit(), "the cut")
			if string(data) != "x" {
				t.Errorf("data %q", data)
			}
			f = cut(p, zktest.On(zktest.OpDelete, node))
			must(t, s.Delete(ctx, node, -1))
			within(t, f.Hit(), "the cut")
			if names := testserver.Children(t, d); len(names) != 0 {
				t.Errorf("left: %v", names)
			}
		})
	}
}

// A request that the server may have carried out is not repeated, and its caller gets an error.
func TestUncertain(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d, ctx := dir(t, s), patient(t)
	f := p.CutAfterCommit(zktest.On(zktest.OpCreate, d))
	_, err := s.Create(ctx, d+"/n-", nil, session.EphemeralSequential)
	wantErr(t, "create", err, zk.ErrConnectionClosed)
	if !errors.Is(err, session.ErrUncertain) {
		t.Errorf("%v is not uncertain", err)
	}
	within(t, f.Hit(), "the cut")
	must(t, s.Sync(ctx, d))
	if names := testserver.Children(t, d); len(names) != 1 {
		t.Errorf("nodes: %v", names)
	}
	node := d + "/" + testserver.Children(t, d)[0]
	p.CutAfterCommit(zktest.On(zktest.OpSetData, d))
	_, err = s.Set(ctx, node, []byte("once"), -1)
	wantErr(t, "set", err, zk.ErrConnectionClosed)
	_, stat, err := s.Get(ctx, node)
	must(t, err)
	if stat.Version != 1 {
		t.Errorf("version %d", stat.Version)
	}
}

// A create that is cancelled while it waits for a connection is never sent.
func TestCreateCancelledWhileDisconnected(t *testing.T) {
	p, m, s := behindProxy(t, 10*time.Second)
	d := dir(t, s)
	var h history
	m.Subscribe(h.add)
	p.Refuse(true)
	p.Disconnect()
	h.wait(t, session.Connected, session.Suspended)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := s.Create(ctx, d+"/n", nil, session.Ephemeral)
		result <- err
	}()
	cancel()
	wantErr(t, "create", within(t, result, "the create"), context.Canceled)
	p.ResetRequests()
	p.Heal()
	h.wait(t, session.Connected, session.Suspended, session.Connected)
	must(t, s.Sync(patient(t), d))
	if n := p.Count(zktest.On(zktest.OpCreate, "")); n != 0 {
		t.Errorf("%d creates were sent", n)
	}
}

// A create that is cancelled in flight is undone when its answer comes.
func TestCreateCancelledInFlight(t *testing.T) {
	p, _, s := behindProxy(t, 20*time.Second)
	d := dir(t, s)
	f := p.HoldReply(zktest.On(zktest.OpCreate, d))
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := s.Create(ctx, d+"/n", nil, session.Persistent)
		result <- err
	}()
	within(t, f.Hit(), "the reply")
	cancel()
	wantErr(t, "create", within(t, result, "the create"), context.Canceled)
	testserver.WaitChildren(t, d, 1)
	f.Release()
	testserver.WaitChildren(t, d, 0)
}

// A guaranteed delete succeeds without further calls, whatever happens to the connection.
func TestRemoveAcrossDisconnection(t *testing.T) {
	p, m, s := behindProxy(t, 10*time.Second)
	d, ctx := dir(t, s), patient(t)
	for _, name := range []string{"a-1", "a-2", "b-1"} {
		_, err := s.Create(ctx, d+"/"+name, nil, session.Ephemeral)
		must(t, err)
	}
	var h history
	m.Subscribe(h.add)
	p.Refuse(true)
	p.Disconnect()
	h.wait(t, session.Connected, session.Suspended)
	one := (*core.Session)(s).Remove(t.Context(), d+"/b-1")
	two := (*core.Session)(s).Sweep(t.Context(), d, func(name string) bool { return name[0] == 'a' }, nil)
	p.CutAfterCommit(zktest.On(zktest.OpDelete, d+"/a"))
	p.Heal()
	within(t, one.Done(), "the removal")
	within(t, two.Done(), "the sweep")
	must(t, one.Err())
	must(t, two.Err())
	if names := testserver.Children(t, d); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

func TestMaxNodes(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second, session.WithMaxNodes(2))
	d, ctx := dir(t, s), patient(t)
	var made []string
	for range 2 {
		n, err := s.Create(ctx, d+"/n-", nil, session.EphemeralSequential)
		must(t, err)
		made = append(made, n)
	}
	before := p.Count(zktest.On(zktest.OpCreate, d))
	_, err := s.Create(ctx, d+"/n-", nil, session.EphemeralSequential)
	wantErr(t, "one too many", err, session.ErrTooManyNodes)
	if n := p.Count(zktest.On(zktest.OpCreate, d)); n != before {
		t.Errorf("%d creates, want %d: it was sent", n, before)
	}
	_, err = s.Create(ctx, d+"/persistent", nil, session.Persistent)
	must(t, err)
	must(t, s.Delete(ctx, made[0], -1))
	_, err = s.Create(ctx, d+"/n-", nil, session.EphemeralSequential)
	must(t, err)
}
