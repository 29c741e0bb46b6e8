package core

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/room"
)

// greet gives a session the answer of a server to a handshake that is sent now.
func greet(s *Session, timeout time.Duration) error {
	return (*wireEvents)(s).Greeted(codec.Greeting{TimeoutMillis: int32(timeout.Milliseconds()), Session: 7}, clock.Now())
}

// After a long pause of the process the first answer is right, although no timer has run. The answer marks the end, which
// the watchdog then brings about: looking ends nothing.
func TestErrComputedWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		if err := greet(s, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		w, _ := s.watches.Data.Join("/watched")
		time.Sleep(8999 * time.Millisecond) // of the fake clock
		if err := s.Err(); err != nil || s.Remaining() != time.Millisecond {
			t.Errorf("just before: %v, %v remain", err, s.Remaining())
		}
		time.Sleep(time.Millisecond)
		if s.isMarked() {
			t.Fatal("something has looked at the clock: this test shows nothing")
		}
		if s.Remaining() != 0 || s.Err() == nil {
			t.Errorf("at the end: %v, %v remain", s.Err(), s.Remaining())
		}
		s.clock.Prove(clock.Now()) // a lost session never comes back
		if s.Err() == nil || s.Remaining() != 0 {
			t.Error("the session came back to life")
		}
		if s.life.Err() != nil || w.Event() != WatchPending {
			t.Error("looking has ended the session")
		}
		go s.watchdog.run(s)
		<-s.watchdog.ended
		if s.life.Err() == nil || w.Event() != WatchBroken {
			t.Error("the watchdog has not ended the session")
		}
	})
}

// What ends a session does not wait for a connection that is slow to close.
func TestLossDoesNotWaitForTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		if err := greet(s, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		s.link.wire, _ = connection(t, s)
		go s.watchdog.run(s)
		start := time.Now()
		<-s.Done()
		if d := time.Since(start); d != 9*time.Second {
			t.Errorf("ended after %v, want 9s", d)
		}
	})
}

// An answer or a reconnect is too late if it comes after the clock has run out, even if nothing
// has called Err or Remaining in between.
func TestLateAnswers(t *testing.T) {
	for name, late := range map[string]func(*Session){
		"a write": func(s *Session) {
			(*wireEvents)(s).Answered(clock.Answered{Sent: clock.Now(), Quorum: true, Touched: clock.Now()}, 0, 0)
		},
		"a reconnect": func(s *Session) { _ = greet(s, 10*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareSession(t, newFakeConfig(t))
				if err := greet(s, 10*time.Second); err != nil {
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

// While the session owns nodes, only answers that a quorum has agreed to count. A leader that was
// cut off from the other servers still answers syncs and handshakes.
func TestWhatCounts(t *testing.T) {
	for _, c := range []struct {
		name         string
		owns, quorum bool
		moves        bool
	}{
		{"leader, nothing owned", false, false, true},
		{"quorum, nothing owned", false, true, true},
		{"leader, a node owned", true, false, false},
		{"quorum, a node owned", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := bareSession(t, newFakeConfig(t))
				if err := greet(s, 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if c.owns {
					s.room.Found("/node", room.SizeOf("/node", false), nil)
				}
				time.Sleep(time.Second)
				(*wireEvents)(s).Answered(clock.Answered{Sent: clock.Now(), Quorum: c.quorum, Touched: clock.Now()}, 0, 0)
				if moved := s.Remaining() == 9*time.Second; moved != c.moves {
					t.Errorf("%v remain", s.Remaining())
				}
				time.Sleep(time.Second)
				if err := greet(s, 10*time.Second); err != nil {
					t.Fatal(err)
				}
				if moved := s.Remaining() == 9*time.Second; moved == c.owns {
					t.Errorf("after a reconnect %v remain", s.Remaining())
				}
			})
		})
	}
}

// A server has restarted with a lower limit on session timeouts. The session goes by that limit.
func TestShorterTimeoutAtReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bareSession(t, newFakeConfig(t))
		for _, c := range []struct{ granted, timeout, remain time.Duration }{
			{20 * time.Second, 20 * time.Second, 18 * time.Second},
			{4 * time.Second, 4 * time.Second, 3600 * time.Millisecond},
			{30 * time.Second, 4 * time.Second, 3600 * time.Millisecond}, // the session asks for no more
		} {
			if err := greet(s, c.granted); err != nil {
				t.Fatal(err)
			}
			if s.Timeout() != c.timeout || s.Remaining() != c.remain {
				t.Errorf("granted %v: timeout %v, %v remain", c.granted, s.Timeout(), s.Remaining())
			}
		}
	})
}

// The value of half a tick depends on what is known of the tick.
func TestHalfTick(t *testing.T) {
	for _, c := range []struct {
		name                    string
		told, shortest, timeout time.Duration
		want                    time.Duration
	}{
		{"told", 2 * time.Second, 0, 10 * time.Second, time.Second},
		{"told, and learned", 2 * time.Second, 40 * time.Second, 10 * time.Second, time.Second},
		{"learned", 0, 4 * time.Second, 10 * time.Second, time.Second},
		{"learned, a longer tick", 0, 6 * time.Second, 20 * time.Second, 1500 * time.Millisecond},
		{"learned, and less than is believed", 0, 400 * time.Millisecond, 10 * time.Second, time.Second},
		{"learned, more than a quarter of the timeout", 0, 10 * time.Second, 6 * time.Second, 1500 * time.Millisecond},
		{"not known", 0, 0, 10 * time.Second, 2500 * time.Millisecond},
	} {
		k := tick{told: c.told}
		k.shortest.Store(int64(c.shortest))
		if got := k.half(c.timeout); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
