package session_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The servers delete the nodes of a session that is closed, and send the events of the watches on them. So the watches of
// the session itself have ended by the time at which Close asks for that. Otherwise holders would take it for a deletion
// by others.
func TestWatchesEndBeforeClose(t *testing.T) {
	server := zktest.Start(t)
	early := 0
	for range 200 {
		var w *session.Watch
		asked := make(chan session.WatchEvent, 1)
		m, err := session.Connect(patient(t), "any:2181", session.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := server.Dialer()(ctx, network, addr)
			return &closeWitness{c, func() {
				select {
				case asked <- w.Event():
				default:
				}
			}}, err
		}), session.WithTickTime(2*time.Second), session.WithLogger(slog.New(slog.DiscardHandler)))
		must(t, err)
		s, err := m.Session(patient(t))
		must(t, err)
		path, err := makeNumbered(patient(t), s, "/watched-", nil)
		must(t, err)
		_, _, w, err = s.Watch(patient(t), path)
		must(t, err)
		must(t, m.Close())
		if event := within(t, asked, "closeSession"); event != session.WatchBroken {
			early++
		}
	}
	if early > 0 {
		t.Errorf("the watches of %d of 200 sessions were pending", early)
	}
}

// closeWitness is a connection that tells when closeSession is sent.
type closeWitness struct {
	net.Conn
	closing func()
}

func (c *closeWitness) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte{0xff, 0xff, 0xff, 0xf5}) { // the operation
		c.closing()
	}
	return c.Conn.Write(b)
}
