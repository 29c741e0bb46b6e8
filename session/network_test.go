package session_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// gate has the connections of a dialer. While it is shut, nothing can be written to them.
type gate struct {
	d dial

	mu   sync.Mutex
	open chan struct{} // nil: it is
}

type gated struct {
	net.Conn
	g *gate
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := g.d(ctx, network, addr)
	return gated{c, g}, err
}

// shut shuts the gate, and returns the function that opens it.
func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ch := make(chan struct{})
	g.open = ch
	return func() { close(ch) } // it stays open
}

func (c gated) Write(b []byte) (int, error) {
	c.g.mu.Lock()
	open := c.g.open
	c.g.mu.Unlock()
	if open != nil {
		<-open
	}
	return c.Conn.Write(b)
}

// The caller may use its buffers again once a call has returned, even if the network has not taken the request yet.
func TestBuffersAreTheCallersAgain(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, s *session.Session, data []byte) error{
		"set": func(ctx context.Context, s *session.Session, data []byte) error {
			_, err := s.Set(ctx, "/a", data, -1)
			return err
		},
		"create": func(ctx context.Context, s *session.Session, data []byte) error {
			_, err := s.Create(ctx, "/new", data, session.Persistent)
			return err
		},
		"multi": func(ctx context.Context, s *session.Session, data []byte) error {
			set := &zk.SetDataRequest{Path: "/a", Data: data, Version: -1}
			acl := zk.WorldACL(zk.PermAll)
			create := &zk.CreateRequest{Path: "/new", Data: data, Acl: acl}
			remove := &zk.DeleteRequest{Path: "/b", Version: -1}
			_, err := s.Multi(ctx, set, create, remove)
			set.Path, create.Path, remove.Path = "/x", "/x", "/x"
			acl[0].Perms = 0
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				g := &gate{d: srv.Dialer()}
				_, s := virtually(t, "h:1", g.dial)
				_, other := virtually(t, "h:1", srv.Dialer())
				for _, node := range []string{"/a", "/b"} {
					_, err := s.Create(t.Context(), node, []byte("before"), session.Persistent)
					must(t, err)
				}
				open := g.shut()
				ctx, cancel := context.WithCancel(t.Context())
				data := []byte("wanted")
				returned := make(chan struct{})
				go func() {
					defer close(returned)
					_ = call(ctx, s, data)
					copy(data, "foul!!")
				}()
				synctest.Wait()
				cancel()
				<-returned
				open()
				must(t, s.Sync(t.Context(), "/"))
				for _, node := range []string{"/a", "/new"} {
					got, _, err := other.Get(t.Context(), node)
					if err == nil && string(got) == "foul!!" {
						t.Errorf("%s has the bytes of a buffer that was used again", node)
					}
				}
				if got, _, err := other.Get(t.Context(), "/a"); name != "create" && string(got) != "wanted" {
					t.Errorf("the request was not sent: %q, %v", got, err)
				}
				if got, _, err := other.Get(t.Context(), "/new"); name != "set" && string(got) != "wanted" {
					t.Errorf("the request was not sent: %q, %v", got, err)
				}
				if gone, err := other.Exists(t.Context(), "/b"); name == "multi" && (gone != nil || err != nil) {
					t.Errorf("the request was not sent: %v", err)
				}
			})
		})
	}
}
