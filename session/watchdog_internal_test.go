package session

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest"
)

// slowExpired delegates to the session's events, and lets the test stop inside Expired, which
// package wire calls with Conn.mu held.
type slowExpired struct {
	*wireEvents
	in, goOn chan struct{}
}

func (e slowExpired) Expired()  { close(e.in); <-e.goOn; e.wireEvents.Expired() }
func (e slowExpired) Go(func()) {}

// watchdog.look holds watchdog.mu and wants Conn.mu (silence); Conn.receive holds Conn.mu and wants
// watchdog.mu (Expired → lose → end → watchdog.stop).
func TestWatchdogAndExpiryDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const patience = 20 * time.Second // of a busy machine
	cfg := newFakeConfig(t, WithTimeout(2*time.Second))
	s := bareSession(t, cfg)
	s.work.init(s.life.Done())
	ev := slowExpired{(*wireEvents)(s), make(chan struct{}), make(chan struct{})}
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	w := wire.New(client, wire.Config{Events: ev, Clock: s.clock, Seen: new(wire.Seen), Refusals: new(wire.Refusals), HandshakeLimit: time.Hour, Half: s.dialer.tick.half})
	defer w.Close()
	if err := s.setWire(w, target{addr: "h1:1"}); err != nil {
		t.Fatal(err)
	}
	go func() { // a server: greets, then answers a request with SessionExpired
		buf := make([]byte, 1024)
		server.Read(buf) // handshake
		g := make([]byte, 4+36)
		binary.BigEndian.PutUint32(g, 36)
		binary.BigEndian.PutUint32(g[8:], 2000)
		binary.BigEndian.PutUint64(g[12:], 77)
		binary.BigEndian.PutUint32(g[20:], 16)
		server.Write(g)
		server.Read(buf)
		// Less than a third remains. A bubble's time stands still while a goroutine waits for a mutex, as here.
		time.Sleep(1400 * time.Millisecond) //nolint:forbidigo // the test is about time that passes
		r := make([]byte, 4+16)
		binary.BigEndian.PutUint32(r, 16)
		binary.BigEndian.PutUint32(r[4:], 1)
		code := int32(wire.CodeSessionExpired)
		binary.BigEndian.PutUint32(r[16:], uint32(code))
		server.Write(r)
	}()
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := w.Read(b); err != nil {
				return
			}
		}
	}()
	w.Write(make([]byte, 48)) // handshake
	zktest.Eventually(t, patience, "the greeting", func() bool { return s.ID() != 0 })
	s.watchdog.stop() // not the timer's looks: the test's own
	s.watchdog.over = false
	req := make([]byte, 12)
	binary.BigEndian.PutUint32(req, 8)
	binary.BigEndian.PutUint32(req[4:], 1)
	binary.BigEndian.PutUint32(req[8:], wire.OpExists)
	w.Write(req)
	<-ev.in // the reader has Conn.mu
	go s.watchdog.look(s)
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // look has watchdog.mu and wants Conn.mu, which nothing can tell
	close(ev.goOn)
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("the session has expired and never ends: watchdog.mu and Conn.mu are locked in both orders")
	}
}
