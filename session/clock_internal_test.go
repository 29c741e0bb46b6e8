package session

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/dial"
	"github.com/turnstile-go/turnstile/internal/wire"
)

// unwatched returns a session that was granted a timeout, with the default margin of a tenth. It has no connection, and no
// timer looks at its clock.
func unwatched(t *testing.T, granted time.Duration) *Session {
	cfg, err := newConfig("h:1", []Option{WithLogger(slog.New(slog.DiscardHandler)), WithTimeout(20 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{cfg: cfg, dialer: dial.New(dial.Config{})}
	m.open, m.shut = context.WithCancel(t.Context())
	m.outage.log = cfg.log
	m.closer.init(m)
	s := newSession(m)
	if err := greet(s, granted); err != nil {
		t.Fatal(err)
	}
	s.timer.Stop()
	return s
}

// greet has a server greet the session now.
func greet(s *Session, granted time.Duration) error {
	return s.greeted(codec.Greeting{Session: 7, TimeoutMillis: int32(granted.Milliseconds())}, clock.Now(), dial.Target{})
}

// Err and Remaining read the clock when they are asked. A lost session never comes back. Looking marks the loss, and waits for
// nothing.
func TestErrComputedWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unwatched(t, 10*time.Second)
		w, _ := s.join(onData, "/watched")
		time.Sleep(8999 * time.Millisecond) // of the fake clock
		if err := s.Err(); err != nil || s.Remaining() != time.Millisecond {
			t.Errorf("just before: %v, %v remain", err, s.Remaining())
		}
		time.Sleep(time.Millisecond)
		if s.Remaining() != 0 || s.Err() == nil {
			t.Errorf("at the end: %v, %v remain", s.Err(), s.Remaining())
		}
		s.clock.Prove(clock.Now())
		if s.Err() == nil || s.Remaining() != 0 {
			t.Error("the session came back to life")
		}
		<-s.Done()
		if w.Event() != WatchBroken {
			t.Error("the watch is not broken")
		}
	})
}

// An answer that comes when the clock has run out revives nothing, even if nobody has looked at the clock yet.
func TestLateAnswers(t *testing.T) {
	for name, late := range map[string]func(*Session){
		"a write": func(s *Session) {
			_ = s.take(wire.News{ByLeader: true, Proof: clock.Answered{Sent: clock.Now(), Quorum: true, Touched: clock.Now()}})
		},
		"a reconnect": func(s *Session) { _ = greet(s, 10*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := unwatched(t, 10*time.Second)
				time.Sleep(10 * time.Second)
				late(s)
				if s.Err() == nil || s.Remaining() != 0 {
					t.Errorf("%v, %v remain: the session came back to life", s.Err(), s.Remaining())
				}
			})
		})
	}
}

// A connection that is granted less shortens the lease at once. One that is granted more does not lengthen it: followers touch
// a session with the timeout of the connection, and a new leader counts by the first.
func TestShorterTimeoutAtReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unwatched(t, 20*time.Second)
		for _, c := range []struct{ granted, timeout, remain time.Duration }{
			{20 * time.Second, 20 * time.Second, 18 * time.Second},
			{4 * time.Second, 4 * time.Second, 3600 * time.Millisecond},
			{30 * time.Second, 4 * time.Second, 3600 * time.Millisecond},
		} {
			if err := greet(s, c.granted); err != nil {
				t.Fatal(err)
			}
			if s.Timeout() != c.timeout || s.Remaining() != c.remain {
				t.Errorf("granted %v: timeout %v, %v remain", c.granted, s.Timeout(), s.Remaining())
			}
		}
		_ = s.mark(ErrClosed) // ends what belongs to it
	})
}
