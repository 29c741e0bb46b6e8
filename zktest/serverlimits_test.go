package zktest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// crowd makes ephemeral nodes so that the end of their session has so many bytes.
func (c *caller) crowd(size int) {
	c.s.t.Helper()
	size -= 48
	for i := 0; size > 0; i++ {
		n := min(size, 104) - 4
		if rest := size - n - 4; rest > 0 && rest < 10 {
			n -= 10
		}
		c.does(ephemeral(fmt.Sprintf("/%0*d", n-1, i)))
		size -= n + 4
	}
}

// smallEnsemble has three servers that read at most 8 kB of the end of a session. It may end up past help.
func smallEnsemble(t *testing.T) *stage {
	srv, err := New(Servers(3), MaxPacket(4096))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return newStage(t, srv)
}

// In an ensemble, each leader that ends the session stops serving, until no majority is left.
func TestSessionEndTooLongForEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := smallEnsemble(t)
		c := s.call("client", 0, nil, shortSession)
		c.crowd(2*4096 + 1)
		s.leads(2)
		c.write(codec.CloseFrame(c.xid + 1))
		s.pass(2 * tickOnStage)
		s.leads(1) // it has not seen the end of the session, and waits for the session to expire
		if s.failure(2) == nil || s.failure(1) != nil || s.failure(0) != nil {
			t.Errorf("failures: %v", s.failures())
		}
		s.call("second", 0, nil, 40*time.Second).does(there("/"))
		s.pass(20 * time.Second)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads", l)
		}
		if s.failure(2) == nil || s.failure(1) == nil || s.failure(0) != nil {
			t.Errorf("failures: %v", s.failures())
		}
		for i := range 3 {
			s.dials(fmt.Sprint("client of ", i), i, nil, shortSession).connected(false)
			s.StopServer(i)
			if err := s.StartServer(i); (err == nil) != (i == 0) {
				t.Errorf("server %d at its start: %v", i, err)
			}
		}
		s.pass(20 * time.Second)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads in the end", l)
		}
	})
}
