package session

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

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
	m.outage.cfg = cfg
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

// The watchdog begins with the first greeting. It has looked at a session without a timeout each microsecond, once servers were
// away for an hour.
func TestNoWatchdogBeforeTheGreeting(t *testing.T) {
	m := unwatched(t, 10*time.Second).m
	s := newSession(m)
	if s.timer.Stop() {
		t.Error("the timer runs before the greeting")
	}
	if err := greet(s, 10*time.Second); err != nil || !s.timer.Stop() {
		t.Errorf("the timer does not run after the greeting: %v", err)
	}
}

// Err and Remaining read the clock when they are asked. A lost session never comes back. Looking marks the loss, and waits for
// nothing.
func TestErrComputedWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unwatched(t, 10*time.Second)
		w, _ := s.join(getData, "/watched", false)
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

// The goroutine of a connection can get no processor for so long that the manager goes on without it. What it tells then of a
// session that has ended does not take the place of the next session.
func TestLateNewsOfEndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := unwatched(t, 10*time.Second)
		m := old.m
		m.changed = make(chan struct{})
		_ = old.mark(ErrLost)
		m.transition(Connected, old, nil)
		if state := m.State(); state != Connecting {
			t.Errorf("%v, by the connection of a session that has ended", state)
		}
		next := newSession(m)
		if err := greet(next, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		m.transition(Connected, next, nil)
		m.transition(Suspended, old, nil)
		if s, err := m.Session(t.Context()); s != next || m.State() != Connected {
			t.Errorf("%p, %v, want %p; %v", s, err, next, m.State())
		}
		m.shut()
	})
}

// The session ends while the answer of a server that refuses a delete is on its way through this process. The Removal ends once,
// with the one or the other.
func TestRefusalAtTheEndOfSession(t *testing.T) {
	for what, both := range map[string]func(refused, ended func()){
		"the end first": func(refused, ended func()) { ended(); refused() },
		"at once":       func(refused, ended func()) { go refused(); ended() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := unwatched(t, 10*time.Second)
				r := s.Remove(t.Context(), "/n")
				both(func() { s.removals.failed(r, zk.ErrNoAuth) }, func() {
					_ = s.mark(ErrClosed)
					<-r.Done()
				})
				if synctest.Wait(); !errors.Is(r.Err(), zk.ErrNoAuth) && !errors.Is(r.Err(), ErrClosed) {
					t.Error(r.Err())
				}
			})
		})
	}
}

// What comes late of a node does not count it again, and does not take the place of one that was made at its path since.
func TestRoomCountsOnce(t *testing.T) {
	r := &room{mostNodes: 2, mostBytes: 1 << 20}
	gone, err := r.take("/a", false)
	if err != nil {
		t.Fatal(err)
	}
	r.made(gone, "/a")
	r.end(gone)
	again, err := r.take("/a", false)
	if err != nil {
		t.Fatal(err)
	}
	r.made(again, "/a")
	r.end(gone)
	r.made(gone, "/a")
	if r.at("/a") != again || r.nodes != 1 || r.there.Load() != 1 {
		t.Errorf("%d nodes, %d there, the new one is forgotten: %v", r.nodes, r.there.Load(), r.at("/a") != again)
	}
}

// The error of a loss tells a process that stood still from one whose servers did not answer. (The test of a process that is
// really stopped is that of package zklock.)
func TestWhyLost(t *testing.T) {
	const timeout = 10 * time.Second
	for late, want := range map[time.Duration]string{
		0:               "no answer through the leader",
		timeout/4 - 1e9: "no answer through the leader",
		timeout/4 + 1e9: "this process stood still for 3.5",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := unwatched(t, timeout)
			time.Sleep(timeout) // of the fake clock
			s.lookAt = clock.Now().Add(-late)
			if got := s.Err(); !strings.HasPrefix(reasonOf(got).Error(), want) {
				t.Errorf("late by %v: %v", late, got)
			}
		})
	}
}

// A call that looks for a connection at the moment at which there is one again waits for it or gets it, and never nothing.
func TestReadyAtTheMomentOfAConnection(t *testing.T) {
	s, l := unwatched(t, time.Hour), new(link)
	stop, looking := make(chan struct{}), sync.WaitGroup{}
	for range 4 {
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(0, cancel)
				if got, err := s.ready(ctx); got == nil && err == nil {
					t.Error("there is neither a connection nor an error")
					return
				}
			}
		})
	}
	for range 100_000 { // as connected, accepted and disconnected do
		s.mu.Lock()
		s.now, s.isUp = l, true
		close(s.up)
		s.mu.Unlock()
		s.mu.Lock()
		s.now, s.isUp, s.up = nil, false, make(chan struct{})
		s.mu.Unlock()
	}
	close(stop)
	looking.Wait()
}

// A removal that meets a connection which has just come sends its own delete alone: those that are owed are the first calls of
// the connection, which waits until they have been sent.
func TestOwedDeletesStayWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, slow := unwatched(t, 10*time.Second), make(chan struct{})
		s.m.trace.now.Store(&Trace{Request: func(ctx context.Context, i RequestInfo) (context.Context, func(error)) {
			if i.Path == "/owed" {
				<-slow
			}
			return ctx, nil
		}})
		_, start := s.removals.begin(t.Context(), "/late", nil, nil)
		s.Remove(t.Context(), "/owed")
		near, _ := net.Pipe()
		l := &link{conn: wire.New(near, wire.Config{})}
		s.now = l // as connected does
		go start()
		synctest.Wait()
		resumed := make(chan struct{})
		go func() {
			defer close(resumed)
			s.removals.resume(l)
		}()
		synctest.Wait()
		select {
		case <-resumed:
			t.Error("the connection goes on before the delete is sent")
		default:
		}
		close(slow)
		s.now = nil
		_ = s.mark(ErrClosed)
	})
}
