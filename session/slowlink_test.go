package session_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// slowLink takes a MiB in a second.
type slowLink struct{ net.Conn }

func (c slowLink) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); {
		n := min(len(b)-sent, 16<<10)
		time.Sleep(time.Duration(n) * time.Second / (1 << 20))
		if _, err := c.Conn.Write(b[sent : sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(b), nil
}

// Many large requests that come together take longer than a session timeout on a slow network. Heartbeats go
// between them, so the session is not lost.
func TestBurstOnSlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := zktest.Start(t).Dialer()
		_, s := virtually(t, "h:1", func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := d(ctx, network, addr)
			return slowLink{c}, err
		}, session.WithTimeout(6*time.Second))
		_, err := makeNode(t.Context(), s, "/own", nil)
		must(t, err)
		const callers = 40
		for i := range callers {
			_, err := s.Create(t.Context(), fmt.Sprint("/n", i), nil, session.Persistent)
			must(t, err)
		}
		data := make([]byte, 200<<10)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				if _, err := s.Set(t.Context(), fmt.Sprint("/n", i), data, -1); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		must(t, s.Err())
	})
}
