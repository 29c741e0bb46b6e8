package session_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// gate has the connections of a dialer. While it is shut, nothing can be written to them.
type gate struct {
	d    dial
	shut atomic.Pointer[chan struct{}] // closed when it opens; nil: it is open
}

type gated struct {
	net.Conn
	g *gate
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := g.d(ctx, network, addr)
	return gated{c, g}, err
}

func (c gated) Write(b []byte) (int, error) {
	if shut := c.g.shut.Load(); shut != nil {
		<-*shut
	}
	return c.Conn.Write(b)
}

// The caller may use its buffers again once a call has returned, even if the network has not taken the request yet.
func TestBuffersAreTheCallersAgain(t *testing.T) {
	for name, c := range map[string]struct {
		call func(ctx context.Context, s *session.Session, data []byte) error
		want map[string]string // data by path
	}{
		"set": {func(ctx context.Context, s *session.Session, data []byte) error {
			return expect.Err(s.Set(ctx, "/a", data, -1))
		}, map[string]string{"/a": "wanted", "/b": "before"}},
		"create": {func(ctx context.Context, s *session.Session, data []byte) error {
			return expect.Err(s.Create(ctx, "/new", data, session.Persistent))
		}, map[string]string{"/a": "before", "/b": "before", "/new": "wanted"}},
		"multi": {func(ctx context.Context, s *session.Session, data []byte) error {
			set := &zk.SetDataRequest{Path: "/a", Data: data, Version: -1}
			acl := zk.WorldACL(zk.PermAll)
			create := &zk.CreateRequest{Path: "/new", Data: data, Acl: acl}
			remove := &zk.DeleteRequest{Path: "/b", Version: -1}
			_, err := s.Multi(ctx, set, create, remove)
			set.Path, create.Path, remove.Path = "/x", "/x", "/x"
			acl[0].Perms = 0
			return err
		}, map[string]string{"/a": "wanted", "/new": "wanted"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				g := &gate{d: srv.Dialer()}
				_, s := virtually(t, "h:1", g.dial)
				_, other := virtually(t, "h:1", srv.Dialer())
				for _, node := range []string{"/a", "/b"} {
					must(t, expect.Err(s.Create(t.Context(), node, []byte("before"), session.Persistent)))
				}
				opens := make(chan struct{})
				g.shut.Store(&opens)
				ctx, cancel := context.WithCancel(t.Context())
				data := []byte("wanted")
				returned := make(chan struct{})
				go func() {
					defer close(returned)
					_ = c.call(ctx, s, data)
					copy(data, "foul!!")
				}()
				synctest.Wait()
				cancel()
				<-returned
				close(opens)
				must(t, s.Sync(t.Context(), "/"))
				got := make(map[string]string)
				for _, node := range []string{"/a", "/b", "/new"} {
					if data, _, err := other.Get(t.Context(), node); err == nil {
						got[node] = string(data)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("the nodes (-want +got):\n%s", diff)
				}
			})
		})
	}
}
