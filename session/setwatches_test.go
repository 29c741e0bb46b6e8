package session_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/plumbing"
	"github.com/turnstile-go/turnstile/internal/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// setWatchesLost makes the server refuse each setWatches: it replaces the request with a delete
// of a node that does not exist.
type setWatchesLost struct {
	net.Conn
	n chan<- struct{}
}

func (c setWatchesLost) Write(frame []byte) (int, error) {
	const setWatches, remove = 101, 2
	if len(frame) < 12 || binary.BigEndian.Uint32(frame[8:]) != setWatches {
		return c.Conn.Write(frame)
	}
	const none = "/no-such-node"
	b := words(int32(8+4+len(none)+4), int32(binary.BigEndian.Uint32(frame[4:])), remove, int32(len(none)))
	b = append(append(b, none...), words(-1)...)
	select {
	case c.n <- struct{}{}:
	default:
	}
	if _, err := c.Conn.Write(b); err != nil {
		return 0, err
	}
	return len(frame), nil
}

// A server that throttles requests can refuse to set watches again on a new connection. zk.Conn
// believes that they are set. A watch that is set after that must work.
func TestSetWatchesRefused(t *testing.T) {
	refused := make(chan struct{}, 1)
	p, _, s := behindProxy(t, time.Minute, session.WithDialer(
		func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return setWatchesLost{c, refused}, err
		}))
	d, ctx := dir(t, s), patient(t)
	node, err := s.Create(ctx, d+"/n", nil, session.Persistent)
	must(t, err)
	_, _, w, err := s.Watch(ctx, node)
	must(t, err)
	children, absent := watchChildren(t, s, d), watchChildren(t, s, d+"/absent")
	p.Disconnect()
	within(t, refused, "setWatches")
	must(t, s.Sync(ctx, d)) // behind it
	if e := w.Event(); e != session.WatchBroken {
		t.Errorf("event %v", e)
	}
	wantChildEvent(t, children, plumbing.WatchBroken)
	wantChildEvent(t, absent, plumbing.WatchBroken)
	children, absent = watchChildren(t, s, d), watchChildren(t, s, d+"/absent")
	_, _, w, err = s.Watch(ctx, node)
	must(t, err)
	other := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	must(t, other.Delete(ctx, node, -1))
	zktest.Eventually(t, testserver.Patience, "the news", func() bool { return w.Event() == session.WatchDeleted })
	wantChildEvent(t, children, plumbing.WatchChanged)
	_, err = other.Create(ctx, d+"/absent", nil, session.Persistent)
	must(t, err)
	wantChildEvent(t, absent, plumbing.WatchChanged)
}
