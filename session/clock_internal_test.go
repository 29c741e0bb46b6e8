package session

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d * time.Second) }
	for _, c := range []struct {
		name     string
		confirms []time.Duration // seconds after the start
		now      time.Duration
		want     time.Duration
	}{
		{"fresh", nil, 0, 9},
		{"from the send time", []time.Duration{2}, 5, 6},
		{"nothing for as long as the lease", []time.Duration{2}, 11, 0},
		{"longer", []time.Duration{2}, 13, -2},
		{"the latest counts", []time.Duration{2, 4}, 5, 8},
		{"in whatever order the replies come", []time.Duration{4, 2}, 5, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newClock(start)
			k.setLease(9 * time.Second)
			for _, sent := range c.confirms {
				k.confirm(at(sent))
			}
			if got := k.remaining(at(c.now)); got != c.want*time.Second {
				t.Errorf("remaining %v, want %v", got, c.want*time.Second)
			}
		})
	}
}

func TestClockConcurrent(t *testing.T) {
	start := time.Now()
	k := newClock(start)
	synctest.Test(t, func(t *testing.T) {
		for i := range 50 {
			go k.confirm(start.Add(time.Duration(i) * time.Second))
		}
		synctest.Wait()
	})
	if got := k.last(); !got.Equal(start.Add(49 * time.Second)) {
		t.Errorf("last is %v after the start, want 49s", got.Sub(start))
	}
}

func TestMargin(t *testing.T) {
	for _, c := range []struct{ configured, timeout, want time.Duration }{
		{0, 10 * time.Second, time.Second},
		{0, 400 * time.Millisecond, 40 * time.Millisecond},
		{2 * time.Second, 10 * time.Second, 2 * time.Second},
		{5 * time.Second, 10 * time.Second, 5 * time.Second},
		{6 * time.Second, 10 * time.Second, 5 * time.Second}, // the server granted less than was asked for
	} {
		if got := margin(c.configured, c.timeout); got != c.want {
			t.Errorf("margin(%v, %v) = %v, want %v", c.configured, c.timeout, got, c.want)
		}
	}
}

// After a long pause of the process the first answer is already right: nothing but
// the time has changed, no timer has run.
func TestErrComputedWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		if err := s.greeted(greeting{timeoutMillis: 10_000, session: 7}, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8999 * time.Millisecond) // of the fake clock
		if err := s.Err(); err != nil || s.Remaining() != time.Millisecond {
			t.Errorf("just before: %v, %v remain", err, s.Remaining())
		}
		time.Sleep(time.Millisecond)
		if s.life.Err() != nil {
			t.Fatal("something has ended the session: this test shows nothing")
		}
		if s.Remaining() != 0 || s.Err() == nil {
			t.Errorf("at the end: %v, %v remain", s.Err(), s.Remaining())
		}
		s.clock.confirm(time.Now()) // what is lost never comes back
		if s.Err() == nil || s.Remaining() != 0 || s.life.Err() == nil {
			t.Error("the session came back to life")
		}
	})
}

// An answer, or a reconnect, that comes when the clock has run out is too late, also when
// nobody had asked in between.
func TestLateAnswers(t *testing.T) {
	for name, late := range map[string]func(*Session){
		"a write":     func(s *Session) { s.confirmed(time.Now(), proofQuorum) },
		"a reconnect": func(s *Session) { _ = s.greeted(greeting{timeoutMillis: 10_000, session: 7}, time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareSession(t, newFakeConfig(t))
				if err := s.greeted(greeting{timeoutMillis: 10_000, session: 7}, time.Now()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				late(s)
				if s.Err() == nil || s.Remaining() != 0 {
					t.Errorf("%v, %v remain: the session came back to life", s.Err(), s.Remaining())
				}
			})
		})
	}
}

// While the session owns nodes, only what a quorum has agreed to moves the clock: a leader
// that was cut off from the others still answers syncs, and handshakes.
func TestWhatCounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		owns  bool
		proof proof
		moves bool
	}{
		{"leader, nothing owned", false, proofLeader, true},
		{"quorum, nothing owned", false, proofQuorum, true},
		{"leader, a node owned", true, proofLeader, false},
		{"quorum, a node owned", true, proofQuorum, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareSession(t, newFakeConfig(t))
				if err := s.greeted(greeting{timeoutMillis: 10_000, session: 7}, time.Now()); err != nil {
					t.Fatal(err)
				}
				if c.owns {
					s.nodes.found("/node")
				}
				time.Sleep(time.Second)
				s.confirmed(time.Now(), c.proof)
				if moved := s.Remaining() == 9*time.Second; moved != c.moves {
					t.Errorf("%v remain", s.Remaining())
				}
				time.Sleep(time.Second)
				if err := s.greeted(greeting{timeoutMillis: 10_000, session: 7}, time.Now()); err != nil {
					t.Fatal(err)
				}
				if moved := s.Remaining() == 9*time.Second; moved == c.owns {
					t.Errorf("after a reconnect %v remain", s.Remaining())
				}
			})
		})
	}
}

// A server that was started again with a lower limit expires the session by that.
func TestShorterTimeoutAtReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		for _, c := range []struct{ granted, timeout, remain time.Duration }{
			{20 * time.Second, 20 * time.Second, 18 * time.Second},
			{4 * time.Second, 4 * time.Second, 3600 * time.Millisecond},
			{30 * time.Second, 4 * time.Second, 3600 * time.Millisecond}, // zk.Conn asks for no more
		} {
			if err := s.greeted(greeting{timeoutMillis: int32(c.granted.Milliseconds()), session: 7}, time.Now()); err != nil {
				t.Fatal(err)
			}
			if s.Timeout() != c.timeout || s.Remaining() != c.remain {
				t.Errorf("granted %v: timeout %v, %v remain", c.granted, s.Timeout(), s.Remaining())
			}
		}
	})
}
