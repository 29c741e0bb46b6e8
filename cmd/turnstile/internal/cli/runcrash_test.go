//go:build linux || darwin || freebsd

package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/supervise"
	"github.com/turnstile-go/turnstile/cmd/turnstile/internal/visit"
	"github.com/turnstile-go/turnstile/zktest"
)

// patientServer starts a server that grants no session timeout of less than 20 minutes. So what comes free in a test does
// not do so because a session has timed out.
func patientServer(t *testing.T) (addr string, w *world) {
	t.Helper()
	srv := zktest.Start(t, zktest.TickTime(10*time.Minute))
	return srv.Addr(), newWorld(t, srv.Addr(), "/test")
}

// contenders returns how many contenders are at a path.
func (w *world) contenders(path string) int {
	names, _, _ := w.admin.Children(path)
	return len(names)
}

// The lock of a turnstile that was killed is free as soon as the command and its descendants are dead, and not before.
func TestRunKilledFreesAtOnce(t *testing.T) {
	t.Parallel()
	addr, w := patientServer(t)
	const path = "/test/lock"
	j := newJournal(t)
	holder := start(t, addr, "run", path, "--", "sh", "-c", "setsid sh -c \""+j.loop("far")+"\" & "+j.forever("A"))
	for _, word := range []string{"A", "a", "far"} {
		j.await(t, word)
	}
	rival := start(t, addr, "run", path, "--", "sh", "-c", j.once("B")+"; sleep 0.5")
	zktest.Eventually(t, patience, "two contenders", func() bool { return w.contenders(path) == 2 })
	began := time.Now()
	holder.signal(t, syscall.SIGKILL)
	j.await(t, "B")
	t.Logf("the next holder has worked after %v", time.Since(began))
	rival.wait(t, 0)
	wantLast(t, j, "B", "A", "a", "far")
}

// A waiter that was killed leaves no contender.
func TestRunKilledWaiterLeaves(t *testing.T) {
	t.Parallel()
	addr, w := patientServer(t)
	const path = "/test/lock"
	w.own(t, "lock/"+uuidA+"lock-0000000000", dataA)
	waiter := start(t, addr, "run", path, "--", "true")
	zktest.Eventually(t, patience, "a waiter", func() bool { return w.contenders(path) == 2 })
	waiter.signal(t, syscall.SIGKILL)
	zktest.Eventually(t, patience, "the end of the waiter", func() bool { return w.contenders(path) == 1 })
}

// The guard does so over TLS too, with the identities, if the server that turnstile was connected to has gone, and if the
// session was opened in place of one that was lost.
func TestRunKilledFreesThrough(t *testing.T) {
	t.Parallel()
	addr, w := patientServer(t)
	secure, ca, key := startTLS(t, addr)
	const path = "/test/lock"
	t.Run("TLS", func(t *testing.T) {
		j := newJournal(t)
		p := start(t, secure, "run", "--cacert", ca, "--cert", key, "--key", key,
			"--auth", "digest:user:secret", "--acl", "open", path, "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		j.await(t, "A")
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders(path) == 0 })
	})
	t.Run("another server", func(t *testing.T) {
		j := newJournal(t)
		one, two := zktest.StartProxy(t, addr), zktest.StartProxy(t, addr)
		p := start(t, one.Addr()+","+two.Addr(), "run", path, "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		j.await(t, "A")
		gone := one
		if len(one.Requests()) == 0 || len(two.Requests()) > len(one.Requests()) {
			gone = two
		}
		gone.Refuse(true)
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders(path) == 0 })
	})
	t.Run("another session", func(t *testing.T) {
		j := newJournal(t)
		w.own(t, "lock/"+uuidA+"lock-0000000000", dataA)
		proxy := zktest.StartProxy(t, addr)
		p := start(t, proxy.Addr(), "run", path, "--", "sh", "-c", j.once("A")+"; exec sleep 1000")
		waiter := awaitOther(t, w, path, uuidA+"lock-0000000000")
		for _, id := range proxy.Sessions() {
			if err := proxy.Expire(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		awaitOther(t, w, path, uuidA+"lock-0000000000", waiter)
		w.remove(t, "lock/"+uuidA+"lock-0000000000")
		j.await(t, "A")
		p.signal(t, syscall.SIGKILL)
		zktest.Eventually(t, patience, "the release", func() bool { return w.contenders(path) == 0 })
	})
}

// greeter is a connection to a server that greets each handshake with one session.
type greeter struct {
	net.Conn
	greeting *bytes.Reader
}

func (greeter) Write(p []byte) (int, error)  { return len(p), nil }
func (g greeter) Read(p []byte) (int, error) { return g.greeting.Read(p) }

// Connections that close a former session, or learn the tick, do not make the guard forget the present session.
func TestGreetedNotesPresentSession(t *testing.T) {
	var noted []int64
	n := &notes{note: func(s supervise.Session) { noted = append(noted, s.ID) }}
	for _, c := range []struct {
		timeout      int32
		asked, given int64
	}{{10000, 0, 7}, {10000, 7, 7}, {10000, 0, 8}, {10000, 7, 7}, {1, 0, 9}, {10000, 8, 8}, {10000, 8, 0}} {
		greeting := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 37, 0, 0, 0, 0}, uint32(c.timeout))
		greeting = binary.BigEndian.AppendUint64(greeting, uint64(c.given))
		greeting = append(append(greeting, 0, 0, 0, visit.PasswordLength), make([]byte, visit.PasswordLength+1)...)
		conn := &greetedConn{Conn: greeter{greeting: bytes.NewReader(greeting)}, notes: n}
		_, _ = conn.Write(visit.Hello{Timeout: time.Duration(c.timeout) * time.Millisecond, Session: c.asked}.Frame())
		_, _ = conn.Read(make([]byte, 100))
	}
	if want := []int64{7, 7, 8, 8}; !slices.Equal(noted, want) {
		t.Errorf("the guard was told of the sessions %v, want %v", noted, want)
	}
}

// All addresses of a name are dialled, also if the first one accepts every connection.
func TestDialerTakesTurns(t *testing.T) {
	t.Parallel()
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, port, _ := net.SplitHostPort(first.Addr().String())
	d := newDialer(nil)
	d.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1", "::1", "127.0.0.2"}, nil }
	var reached int
	for range 6 {
		if conn, err := d.dial(t.Context(), "servers:"+port); err == nil {
			conn.Close()
			reached++
		}
	}
	if reached != 2 {
		t.Errorf("%d of 6 connections went to the only server, want 2", reached)
	}
}
