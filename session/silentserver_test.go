package session_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// halfMute is an ensemble in which the servers called mute accept connections, read what comes, and say nothing.
func halfMute(d dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !strings.HasPrefix(addr, "mute") {
			return d(ctx, network, addr)
		}
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.Copy(io.Discard, theirs)
			_ = theirs.Close()
		}()
		return ours, nil
	}
}

// One of three servers accepts connections and greets nobody. A manager that comes there first goes on to another server
// long before a session timeout is over.
//
// Broken rule: section 7, Dialing: such a server is given a quarter of the lease, and then half.
func TestConnectPassesSilentServer(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
		slow := 0
		for range 40 { // the order of the hosts is random
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.MaxSessionTimeout(time.Minute))
				began := time.Now()
				virtually(t, "mute:1,light:1,light:2", halfMute(srv.Dialer()), session.WithTimeout(timeout))
				if time.Since(began) > timeout/3 {
					slow++
				}
			})
		}
		if slow > 0 {
			t.Errorf("timeout %v: %d of 40 managers waited too long for the silent server", timeout, slow)
		}
	}
}

// A session whose connection breaks, and which comes to the silent server, is not lost, and is connected again before
// half of its lease is over.
//
// Broken rule: the same; section 6.2, "To be connected again matters more".
func TestReconnectPassesSilentServer(t *testing.T) {
	const timeout = 10 * time.Second
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			_, s := virtually(t, "mute:1,light:1,light:2", halfMute(srv.Dialer()), session.WithTimeout(timeout))
			enter(t, s, "/own")
			srv.Disconnect()
			began := time.Now()
			must(t, s.Sync(t.Context(), "/"))
			if d := time.Since(began); d > timeout*2/5 {
				t.Errorf("connected again after %v", d)
			}
			must(t, s.Err())
		})
	}
}
