package session_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// cuttable is a dialer whose last connection can be closed.
type cuttable struct {
	mu   sync.Mutex
	last net.Conn
}

func (c *cuttable) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = conn
	return conn, err
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last.Close()
}

// A server that insists on identities accepts no closeSession without them. A session that is
// lost here is closed there all the same, and the attempts do not keep it alive.
func TestLostSessionIsClosedWithIdentity(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t, zktest.Property("enforce.auth.enabled", "true"),
		zktest.Property("enforce.auth.schemes", "digest"))
	us := session.WithAuth("digest", []byte("us:secret"))
	var line cuttable
	s := testserver.Session(t, testserver.Connect(t, e.ConnectString(), us, session.WithTimeout(time.Minute),
		session.WithLossOnSuspend(), session.WithDialer(line.dial)))
	other := testserver.Session(t, testserver.Connect(t, e.ConnectString(), us))
	_, err := makeNode(patient(t), s, "/held", nil)
	must(t, err)
	line.cut()
	within(t, s.Done(), "the loss")
	ctx := patient(t)
	zktest.Eventually(t, testserver.Patience, "the end of what was held", func() bool {
		stat, err := other.Exists(ctx, "/held")
		must(t, err)
		return stat == nil
	})
}

// fickle is a server with one session that accepts the identity on the first connection only. It
// closes that connection when told to. It closes the session, once, for a client that asks for it
// without presenting the identity again.
func fickle(t *testing.T, hangUp <-chan struct{}) (addr string, closed <-chan struct{}) {
	t.Helper()
	asked := make(chan struct{}, 1)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(testserver.Patience))
				if _, err := codec.ReadFrame(c, codec.MaxFrame); err != nil {
					return
				}
				_, _ = c.Write(greet(0x77))
				head := make([]byte, 12)
				if _, err := io.ReadFull(c, head); err != nil {
					return
				}
				xid, op := int32(binary.BigEndian.Uint32(head[4:])), int32(binary.BigEndian.Uint32(head[8:]))
				switch {
				case op == -11:
					select {
					case asked <- struct{}{}:
					default:
					}
					_, _ = c.Write(words(16, xid, 0, 1, 0))
				case !first:
					_, _ = io.ReadFull(c, make([]byte, authFrameSize-len(head)))
					_, _ = c.Write(words(16, xid, 0, 1, -115))
				default:
					_, _ = io.ReadFull(c, make([]byte, authFrameSize-len(head)))
					_, _ = c.Write(words(16, xid, 0, 1, 0))
					select {
					case <-hangUp:
					case <-t.Context().Done():
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); conns.Wait() })
	return l.Addr().String(), asked
}

// A server that refuses the identity by then does not accept a closeSession behind it. The
// session is closed without the identity.
func TestLostSessionIsClosedWithoutRefusedIdentity(t *testing.T) {
	for name, opts := range map[string][]session.Option{
		"refused to the session":  nil,
		"refused when it is over": {session.WithLossOnSuspend()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hangUp := make(chan struct{})
			addr, closed := fickle(t, hangUp)
			s := testserver.Session(t, testserver.Connect(t, addr, append(opts, session.WithTimeout(time.Minute),
				session.WithAuth("digest", []byte("us:secret")))...))
			close(hangUp)
			within(t, s.Done(), "the loss")
			within(t, closed, "a closeSession")
		})
	}
}
