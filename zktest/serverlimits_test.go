package zktest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// outstanding returns how many requests are in process, as the servers say in their answer to srvr.
func (s *stage) outstanding() string {
	s.t.Helper()
	text, err := s.Word("srvr")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "Outstanding: ")
	n, _, _ := strings.Cut(rest, "\n")
	return n
}

// A server above its limit does not read on until it has answered. Other servers and other clients go on.
func TestOutstandingLimit(t *testing.T) {
	onStage(t, func(s *stage) {
		busy, other, far := s.call("busy", 0, nil, shortSession), s.call("other", 0, nil, 40*time.Second), s.call("far", 1, nil, 40*time.Second)
		other.does(plain("/n"))
		s.SetCommitDelay(time.Second)
		var asked []int32
		for i := range 30 {
			asked = append(asked, busy.ask(plain(fmt.Sprint("/busy", i))))
		}
		if got := s.outstanding(); got != "12" { // the limit is 10, and is looked at before the request counts
			t.Errorf("%s requests in process", got)
		}
		late := busy.ask(there("/"))
		other.does(there("/n"))
		other.does(there("/n"))
		other.does(ping())
		far.does(there("/n"))
		second := other.ask(plain("/other"))
		s.pass(time.Second)
		for _, xid := range asked[:12] {
			busy.wants(xid, 0)
		}
		for _, xid := range append(asked[12:], late) {
			busy.waits(xid)
		}
		other.wants(second, 0)
		s.pass(time.Second)
		s.pass(time.Second)
		for _, xid := range append(asked[12:], late) {
			busy.wants(xid, 0)
		}
		if got := s.outstanding(); got != "0" {
			t.Errorf("%s requests in process", got)
		}
	}, OutstandingLimit(20))
}

// A server reads on when it answers and is no longer above its limit, and not before. Pings are read in any case.
func TestOutstandingLimitReadsOn(t *testing.T) {
	onStage(t, func(s *stage) {
		busy, other := s.call("busy", 0, nil, 40*time.Second), s.call("other", 0, nil, 40*time.Second)
		s.SetCommitDelay(time.Second)
		other.ask(plain("/other"))
		for i := range 30 {
			busy.ask(plain(fmt.Sprint("/busy", i)))
			if i < 12 {
				s.pass(50 * time.Millisecond)
			}
		}
		want := func(what, n string) {
			t.Helper()
			if got := s.outstanding(); got != n {
				t.Errorf("%s: %s requests in process, want %s", what, got, n)
			}
		}
		want("at first", "12")
		for range 3 {
			other.ask(ping())
		}
		want("with three pings", "15")
		s.passTo(1010 * time.Millisecond) // answers to the other client, and one to the busy one: ten are left
		want("after the first answer", "12")
		s.passTo(1060 * time.Millisecond)
		want("still above the limit", "11")
		s.passTo(1110 * time.Millisecond)
		want("no longer above the limit", "12")
	}, OutstandingLimit(20))
}

// A server that is above its limit for long does not read pings either, and the session of their client expires. When the
// client hangs up, nothing is left.
func TestOutstandingLimitAndSession(t *testing.T) {
	onStage(t, func(s *stage) {
		busy, quiet := s.call("busy", 2, nil, shortSession), s.call("quiet", 2, nil, shortSession)
		s.SetCommitDelay(time.Minute)
		for i := range 3 {
			busy.ask(plain(fmt.Sprint("/busy", i)))
		}
		for range 8 {
			busy.ask(ping())
			quiet.does(ping())
			s.pass(time.Second)
		}
		if _, ok := s.Expiry(busy.session); ok {
			t.Error("the session goes on although its pings are not read")
		}
		if _, ok := s.Expiry(quiet.session); !ok {
			t.Error("another session is over")
		}
		_ = busy.conn.Close()
		synctest.Wait()
	}, OutstandingLimit(2))
}

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

// A server alone goes on after the end of a session that it cannot read again. Once it is stopped, it does not start any
// more.
func TestSessionEndTooLongAlone(t *testing.T) {
	for _, size := range []int{5120, 5121} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, err := New(MaxPacket(4096), ExtraPacket(1024))
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				s := newStage(t, srv)
				c, other := s.call("client", 0, nil, shortSession), s.call("other", 0, nil, 40*time.Second)
				c.crowd(size)
				if err := s.Failure(0); err != nil {
					t.Error(err)
				}
				c.write(codec.CloseFrame(c.xid + 1))
				other.does(plain("/still"))
				failed := s.Failure(0)
				s.StopServer(0)
				err = s.StartServer(0)
				if size <= 5120 {
					if failed != nil || err != nil {
						t.Errorf("%v, and at its start: %v", failed, err)
					}
					s.pass(time.Second)
					s.call("again", 0, nil, shortSession).does(there("/still"))
					return
				}
				if failed == nil || err == nil || err.Error() != failed.Error() || !strings.Contains(err.Error(), "Unreasonable length = 5121") {
					t.Errorf("%v, and at its start: %v", failed, err)
				}
				if _, err := s.DialerTo(0)(t.Context(), "tcp", ""); err == nil {
					t.Error("a server that could not start accepts a connection")
				}
			})
		})
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
		if s.Failure(2) == nil || s.Failure(1) != nil || s.Failure(0) != nil {
			t.Errorf("failures: %v", s.failures())
		}
		s.call("second", 0, nil, 40*time.Second).does(there("/"))
		s.pass(20 * time.Second)
		if l, ok := s.Leader(); ok {
			t.Errorf("server %d leads", l)
		}
		if s.Failure(2) == nil || s.Failure(1) == nil || s.Failure(0) != nil {
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

// A follower that has left such a leader does not follow it again, even if another follower still does.
func TestSessionEndTooLongForOneFollowerFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := smallEnsemble(t)
		c := s.call("client", 0, nil, 40*time.Second)
		c.crowd(2*4096 + 1)
		s.DelayLink(2, 1, time.Second)
		c.write(codec.CloseFrame(c.xid + 1))
		s.pass(900 * time.Millisecond)
		s.dials("early", 0, nil, 40*time.Second).connected(false)
		s.pass(2 * tickOnStage)
		s.leads(1)
		s.call("late", 0, nil, 40*time.Second).does(there("/"))
	})
}
