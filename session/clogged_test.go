package session_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/goroutines"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// clogged is a network that takes no bytes while clog has a channel that is open.
type clogged struct {
	net.Conn
	clog *atomic.Pointer[chan struct{}]
}

func (c clogged) Write(b []byte) (int, error) {
	if open := c.clog.Load(); open != nil {
		<-*open
	}
	return c.Conn.Write(b)
}

// Callers that give up while the network takes no bytes leave nothing behind: no goroutine, and no node afterwards.
func TestGivenUpBehindABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clog atomic.Pointer[chan struct{}]
		d := zktest.Start(t).Dialer()
		_, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := d(ctx, network, addr)
			return clogged{c, &clog}, err
		}, session.WithTimeout(10*time.Second))
		open := make(chan struct{})
		clog.Store(&open)
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
		clog.Store(nil)
		close(open)
		all.Wait()
		synctest.Wait()
		names, _, err := s.Children(t.Context(), "/")
		must(t, err)
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "n-") }) {
			t.Errorf("left: %v", names)
		}
	})
}
