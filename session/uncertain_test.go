package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// write is a request that changes something. Its node is there, or for create its directory.
type write struct {
	op   zktest.Match
	send func(ctx context.Context, s *session.Session, node string) error
}

var writes = map[string]write{
	"create": {zktest.Any(zktest.OpCreate), func(ctx context.Context, s *session.Session, node string) error {
		return expect.Err(s.Create(ctx, node+"-new", nil, session.Persistent))
	}},
	"set": {zktest.Any(zktest.OpSetData), func(ctx context.Context, s *session.Session, node string) error {
		return expect.Err(s.Set(ctx, node, nil, -1))
	}},
	"delete": {zktest.Any(zktest.OpDelete), func(ctx context.Context, s *session.Session, node string) error {
		return s.Delete(ctx, node, -1)
	}},
	"multi": {zktest.Any(zktest.OpMulti), func(ctx context.Context, s *session.Session, node string) error {
		return expect.Err(s.Multi(ctx, &zk.SetDataRequest{Path: node, Version: -1}))
	}},
}

// The error of a write that was sent and not answered says that nobody knows what became of it, whatever has cost the
// answer. That of a write that was refused, or was not sent, does not say so.
func TestErrUncertain(t *testing.T) {
	for name, w := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, m, s := behindProxy(t, 10*time.Second)
			node := dir(t, s) + "/n"
			_, err := s.Create(patient(t), node, nil, session.Persistent)
			must(t, err)
			check := func(what string, err, cause error, uncertain bool) {
				t.Helper()
				if !errors.Is(err, cause) || errors.Is(err, session.ErrUncertain) != uncertain {
					t.Errorf("%s: %v: want %v, uncertain %v", what, err, cause, uncertain)
				}
			}
			held := func(end func(cancel context.CancelFunc)) error {
				ctx, cancel := context.WithCancel(patient(t))
				defer cancel()
				f := p.HoldReply(w.op)
				result := expect.Go(func() error { return w.send(ctx, s, node) })
				expect.Receive(t, "the request", f.Hit())
				end(cancel)
				err := expect.Receive(t, name, result)
				f.Release()
				return err
			}
			none := func(what string) { // and there is a connection
				t.Helper()
				want := zk.ErrNoNode
				if name == "create" { // which makes what is missing
					_, err := makeNode(patient(t), s, node+"/none", nil)
					if err != nil && !errors.Is(err, zk.ErrNodeExists) {
						t.Fatal(err)
					}
					want = zk.ErrNoChildrenForEphemerals
				}
				check(what+", refused", w.send(patient(t), s, node+"/none/none"), want, false)
			}
			none("at first")
			p.CutAfterCommit(w.op)
			check("reply lost", w.send(patient(t), s, node), zk.ErrConnectionClosed, true)
			none("after a lost reply")
			err = held(func(cancel context.CancelFunc) { cancel() })
			check("ctx ended", err, context.Canceled, true)
			none("after the end of ctx")

			p.Refuse(true)
			p.Disconnect()
			zktest.Eventually(t, testserver.Patience, "the outage", func() bool { return m.State() == session.Suspended })
			ctx, cancel := context.WithCancel(patient(t))
			result := expect.Go(func() error { return w.send(ctx, s, node) })
			cancel()
			check("never sent", expect.Receive(t, name, result), context.Canceled, false)
			p.Refuse(false)

			none("after the outage")
			err = held(func(context.CancelFunc) { go func() { _ = m.Close() }() })
			check("manager closed", err, session.ErrClosed, true)
			check("after that", w.send(patient(t), s, node), session.ErrClosed, false)
		})
	}
}
