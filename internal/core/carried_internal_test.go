package core

import (
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/logbook"
	"github.com/turnstile-go/turnstile/internal/outbox"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// A write that has not left waits for the next connection, and for the one after that, until the session ends. Each ends
// once.
func TestCarried(t *testing.T) {
	s := bareSession(t, newFakeConfig(t))
	var ended []string
	call := func(name string) outbox.Call {
		e := request(codec.OpSetData, "/"+name)
		e.Buffer(nil)
		e.Int32(-1)
		return outbox.Call{Frame: e.Frame(), Done: func(r outbox.Reply) {
			if !errors.Is(r.Err, outbox.ErrNotSent) {
				t.Errorf("%s: %v", name, r.Err)
			}
			ended = append(ended, name)
		}}
	}
	connect := func() *wire.Conn { // which never greets
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		w := wire.New(near, wire.Config{})
		if err := s.setWire(w, logbook.Target{}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	waits := func(n int) {
		t.Helper()
		if got := len(s.carried.all); got != n || len(ended) > 0 {
			t.Errorf("%d wait for the next connection, want %d; %v have ended", got, n, ended)
		}
	}
	first := connect()
	s.callLasting(first, call("a"))
	waits(0)
	first.Forsake()
	waits(1)
	s.callLasting(first, call("b")) // after its end
	waits(2)
	second := connect()
	waits(0)
	s.callLasting(first, call("c")) // whose caller has not seen the second one yet
	waits(0)
	second.Forsake()
	waits(3)
	third := connect()
	s.carried.end()
	third.Forsake()
	s.callLasting(third, call("d"))
	slices.Sort(ended)
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(ended, want) {
		t.Errorf("ended: %v, want %v", ended, want)
	}
	if len(s.carried.all) > 0 {
		t.Errorf("%d wait for ever", len(s.carried.all))
	}
}
