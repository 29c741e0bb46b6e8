package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

type arm func(*zktest.Proxy, zktest.Match) *zktest.Fault

var cuts = map[string]arm{
	"before": (*zktest.Proxy).CutBefore,
	"after":  (*zktest.Proxy).CutAfterCommit,
}

// Reads are repeated, whether or not the server had received them.
func TestLostReplies(t *testing.T) {
	for when, cut := range cuts {
		t.Run(when, func(t *testing.T) {
			p, _, s := behindProxy(t, 10*time.Second)
			d, ctx := dir(t, s), patient(t)
			node, err := makeNode(ctx, s, d+"/n", []byte("x"))
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
		})
	}
}

// A request that the server may have carried out is not repeated, and its caller gets an error.
func TestUncertain(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second)
	d, ctx := dir(t, s), patient(t)
	f := p.CutAfterCommit(zktest.On(zktest.OpCreate, d))
	_, err := s.Create(ctx, d+"/n-", nil, session.PersistentSequential)
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
		_, err := makeNode(ctx, s, d+"/n", nil)
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

func TestMaxNodes(t *testing.T) {
	p, _, s := behindProxy(t, 10*time.Second, session.WithNodeLimits(2, 1<<20))
	d, ctx := dir(t, s), patient(t)
	var made []string
	for range 2 {
		n, err := makeNumbered(ctx, s, d+"/n-", nil)
		must(t, err)
		made = append(made, n)
	}
	before := p.Count(zktest.On(zktest.OpCreate, d))
	_, err := makeNumbered(ctx, s, d+"/n-", nil)
	wantErr(t, "one too many", err, session.ErrTooManyNodes)
	if n := p.Count(zktest.On(zktest.OpCreate, d)); n != before {
		t.Errorf("%d creates, want %d: it was sent", n, before)
	}
	_, err = s.Create(ctx, d+"/persistent", nil, session.Persistent)
	must(t, err)
	must(t, s.Delete(ctx, made[0], -1))
	_, err = makeNumbered(ctx, s, d+"/n-", nil)
	must(t, err)
}
