package session_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
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

// toldTransactions notes the last transaction that a connection tells the server: in the handshake, and then in
// each setWatches.
type toldTransactions struct {
	net.Conn
	mu   sync.Mutex
	told []int64
}

func (c *toldTransactions) Write(frame []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const setWatches = 101
	switch {
	case len(c.told) == 0:
		c.told = append(c.told, int64(binary.BigEndian.Uint64(frame[8:])))
	case len(frame) > 20 && binary.BigEndian.Uint32(frame[8:]) == setWatches:
		c.told = append(c.told, int64(binary.BigEndian.Uint64(frame[12:])))
	}
	return c.Conn.Write(frame)
}

func (c *toldTransactions) all() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// If there are many watches, zk.Conn sets them again with several requests, each after the answer to the one before.
// None may tell a transaction of which the client knows only from such an answer. The server would leave out
// the events of the time without a connection.
func TestSetWatchesInParts(t *testing.T) {
	const n, size, limit = 300, 500, 128 << 10 // of zk.Conn, for one request
	var newest atomic.Pointer[toldTransactions]
	p, _, s := behindProxy(t, time.Minute, session.WithDialer(
		func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			told := &toldTransactions{Conn: c}
			newest.Store(told)
			return told, err
		}))
	d, ctx := dir(t, s), patient(t)
	for i := range n {
		node, err := s.Create(ctx, fmt.Sprintf("%s/%0*d", d, size, i), nil, session.Persistent)
		must(t, err)
		_, _, _, err = s.Watch(ctx, node)
		must(t, err)
	}
	p.Refuse(true)
	p.Disconnect()
	other := testserver.Session(t, testserver.Connect(t, testserver.Server(t).ConnectString()))
	_, err := other.Set(ctx, d, []byte("what the next answers show"), -1)
	must(t, err)
	p.Refuse(false)
	const want = 1 + (n*size+limit-1)/limit
	zktest.Eventually(t, testserver.Patience, "all parts", func() bool { return len(newest.Load().all()) == want })
	told := newest.Load().all()
	if slices.Min(told) != slices.Max(told) || told[0] == 0 {
		t.Errorf("the handshake and each setWatches tell %x, want the same", told)
	}
}
