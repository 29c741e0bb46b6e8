package core

import (
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// The watchdog cuts the connection that has fallen silent, and not one that has taken its place before the
// cut runs.
func TestLateCutSparesTheNextConnection(t *testing.T) {
	// With one processor, the goroutine of the cut runs only once this one waits.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		first, far := connection(t, s)
		if err := s.setWire(first, logbook.Target{Addr: "h1:1"}); err != nil {
			t.Fatal(err)
		}
		go func() { // a server that answers nothing but the handshake
			_, _ = codec.ReadFrame(far, codec.MaxFrame)
			e := codec.NewFrame()
			e.Int32(0)
			e.Int32(2000)
			e.Int64(77)
			e.Buffer(make([]byte, 16))
			_, _ = far.Write(e.Frame())
			for {
				if _, err := codec.ReadFrame(far, codec.MaxFrame); err != nil {
					return
				}
			}
		}()
		served := make(chan error, 1)
		go func() { served <- first.Serve(codec.Hello{TimeoutMillis: 2000}) }()
		synctest.Wait()
		first.Call(outbox.Call{Frame: reading(codec.OpExists, "/", false).Frame, Done: func(outbox.Reply) {}})
		time.Sleep(1500 * time.Millisecond)
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		second, _ := connection(t, s)
		s.watchdog.look(s)
		if err := s.setWire(second, logbook.Target{Addr: "h1:1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if first.Err() == nil {
			t.Error("the silent connection was not cut")
		}
		if err := second.Err(); err != nil {
			t.Errorf("the next connection was cut: %v", err)
		}
		first.Cut(net.ErrClosed)
		second.Cut(net.ErrClosed)
		<-served
		s.endLife(nil)
	})
}

// connection returns a connection of the session, and its other end.
func connection(t *testing.T, s *Session) (*wire.Conn, net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	return s.connection(near, logbook.Target{}), far
}
