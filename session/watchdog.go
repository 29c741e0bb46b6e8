package session

import (
	"sync"
	"time"
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

// watchdog ends the session when its clock has run out. Before that, it closes a connection that
// has fallen silent, because another server may be in touch with the leader. It does that once
// for each time the clock has advanced. While the bytes of a long answer come, it waits for as long
// as it can. It does no I/O itself, so nothing delays it.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer // nil before the first look
	over  bool
	cutAt time.Time // the clock's Latest when a connection was last closed
}

// keep starts the watchdog. It is called once.
func (d *watchdog) keep(s *Session) {
	go d.look(s) // not by a timer that is due at once: see .ci/race
}

func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// look is called by keep, and then by the timer.
func (d *watchdog) look(s *Session) {
	if s.Err() != nil {
		return
	}
	timeout, left := s.Timeout(), s.remaining()
	conn := s.present()
	noBytes, noFrame := silenceOf(conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
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
	next := max(0, min(timeout/looksPerTimeout, left))
	if d.timer == nil {
		d.timer = time.AfterFunc(next, func() { d.look(s) })
	} else {
		d.timer.Reset(next)
	}
}
