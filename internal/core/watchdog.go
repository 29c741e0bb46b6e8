package core

import (
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
)

const (
	// shortPerTimeout: the remaining time of a session is short if it is less than this part of
	// a timeout.
	shortPerTimeout = 3
	// silentPerTimeout: a connection may be cut off if an answer is due and nothing was heard for
	// this part of a timeout. A connection that is merely slow is heard more often, because of
	// the answers to pings.
	silentPerTimeout = 4
	// dialPerTimeout: a connection on which a long answer arrives is cut only when less than this
	// part of a timeout remains. That is about what it takes to dial another server.
	dialPerTimeout = 10
	// looksPerTimeout is how many times in a timeout the watchdog looks.
	looksPerTimeout = 20
)

// watchdog is the goroutine that ends a session, once somebody has marked its end. It looks at the clock
// itself, and marks the end when that has run out. Before that, it closes a connection that has fallen
// silent, because another server may be in touch with the leader. It does that once for each time the clock
// has advanced. While the bytes of a long answer come, it waits for as long as it can. It does no I/O itself
// and calls no function of the user, so nothing delays it.
type watchdog struct {
	begun chan struct{} // closed with the first greeting: there is a clock to look at
	ended chan struct{} // closed when run has returned
	cutAt time.Time     // the clock's Latest when a connection was last closed; only run and its look use it
}

func (d *watchdog) init() { d.begun, d.ended = make(chan struct{}), make(chan struct{}) }

// run watches over a session until its end, and ends it.
func (d *watchdog) run(s *Session) {
	defer close(d.ended)
	defer s.end()
	select {
	case <-s.marked:
		return
	case <-d.begun:
	}
	timer := time.NewTimer(time.Hour) // until the first look
	defer timer.Stop()
	for s.Err() == nil {
		timer.Reset(d.look(s))
		select {
		case <-s.marked:
		case <-timer.C:
		}
	}
}

// look cuts the connection if it has fallen silent, and returns when to look again.
func (d *watchdog) look(s *Session) time.Duration {
	timeout, left := s.Timeout(), s.remaining()
	conn := s.present()
	noBytes, noFrame := conn.Silence(clock.Now())
	if last := s.clock.Latest(); last.After(d.cutAt) {
		// The connection that was looked at is cut, and not the present one: that can be another by then.
		switch long := timeout / silentPerTimeout; {
		case left < timeout/shortPerTimeout && noBytes > long:
			d.cutAt = last
			go conn.Cut(errSilence(noBytes))
		case left < timeout/dialPerTimeout && noFrame > long:
			d.cutAt = last
			go conn.Cut(errLongAnswer(noFrame))
		}
	}
	return max(time.Microsecond, min(timeout/looksPerTimeout, left)) // no timer is due at once: see .ci/race
}
