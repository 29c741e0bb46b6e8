package session_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
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

// Callers that give up while the network takes no bytes leave nothing behind: no goroutine, and no node afterwards.
func TestGivenUpBehindABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{d: zktest.Start(t).Dialer()}
		_, s := virtually(t, "h:1", g.dial, session.WithTimeout(10*time.Second))
		open := g.shut()
		var all sync.WaitGroup
		all.Go(func() { // its write blocks
			_, _, err := s.Get(t.Context(), "/")
			must(t, err)
		})
		time.Sleep(100 * time.Millisecond)
		before := goroutines.Count()
		var callers sync.WaitGroup
		for range 500 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				_, err := makeNumbered(ctx, s, "/n-", nil)
				wantErr(t, "create", err, context.DeadlineExceeded)
			})
		}
		callers.Wait()
		synctest.Wait()
		if n := goroutines.Count() - before; n > 5 {
			t.Errorf("%d goroutines are left", n)
		}
		open()
		all.Wait()
		synctest.Wait()
		names, _, err := s.Children(t.Context(), "/")
		must(t, err)
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "n-") }) {
			t.Errorf("left: %v", names)
		}
	})
}

// The buffer for requests does not limit replies. Long queues have long lists of children, and
// other clients may have written as much as the server allows.
func TestLargeReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, srv := virtualEntry(t)
		_, err := rawClient(t, srv.Dialer()).Create(e.d+"/big", make([]byte, 900<<10), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
		data, _, err := e.s.Get(t.Context(), e.d+"/big")
		must(t, err)
		var ops []any
		for i := range 1000 {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s%d", e.d, strings.Repeat("x", 100), i)})
		}
		for range 3 {
			_, err = e.s.Multi(t.Context(), ops...)
			must(t, err)
			for _, op := range ops {
				op.(*zk.CreateRequest).Path += "x"
			}
		}
		names, _, err := e.s.Children(t.Context(), e.d) // some 350 KB
		must(t, err)
		if len(data) != 900<<10 || len(names) != 3001 {
			t.Errorf("%d bytes, %d names", len(data), len(names))
		}
	})
}

// Every request that is accepted can be sent. Others are refused before anything is sent.
func TestLargeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := virtualEntry(t)
		longest := e.d + "/" + strings.Repeat("x", 16<<10-len(e.d)-1)
		create := func(size int) error {
			_, err := e.s.Create(t.Context(), longest, make([]byte, size), session.Persistent)
			return err
		}
		multi := func(size int) error {
			_, err := e.s.Multi(t.Context(), &zk.DeleteRequest{Path: longest, Version: -1}, &zk.CreateRequest{Path: e.d + "/short", Data: make([]byte, size)})
			return err
		}
		for what, call := range map[string]func(int) error{"create": create, "multi": multi} {
			if what == "multi" {
				_ = create(1)
			}
			size, err := 300<<10, error(nil)
			for ; size > 200<<10; size -= 500 {
				if err = call(size); err == nil {
					break
				}
				wantErr(t, what, err, session.ErrInvalid)
			}
			if err != nil {
				t.Errorf("%s: none of more than %d bytes was sent", what, size)
			}
			_ = e.s.Delete(t.Context(), longest, -1)
		}
		_, err := e.s.Set(t.Context(), e.d, make([]byte, 300<<10), -1)
		wantErr(t, "set", err, session.ErrInvalid)
		half := &zk.SetDataRequest{Path: e.d, Data: make([]byte, 150<<10), Version: -1}
		_, err = e.s.Multi(t.Context(), half, half)
		wantErr(t, "multi", err, session.ErrInvalid)
	})
}
