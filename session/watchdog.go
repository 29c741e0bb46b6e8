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
	// looksPerTimeout is how many times in a timeout the watchdog looks.
	looksPerTimeout = 20
)

// watchdog ends the session when its clock has run out. Before that, it closes a connection that
// has fallen silent, because another server may be in touch with the leader. It does that once
// for each time the clock has advanced. It does no I/O itself, so nothing delays it.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer // nil before keep and after stop
	over  bool
	cutAt time.Time // the clock's Latest when a connection was last closed
}

// keep starts the watchdog.
func (d *watchdog) keep(s *Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over && d.timer == nil {
		d.timer = time.AfterFunc(0, func() { d.look(s) })
	}
}

func (d *watchdog) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// look is called by the timer.
func (d *watchdog) look(s *Session) {
	if s.Err() != nil {
		return
	}
	timeout, left := s.Timeout(), s.remaining()
	conn := s.present()
	silence := silenceOf(conn)
	d.mu.Lock() // and no other lock: a connection holds its own when it ends the session, which calls stop
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if last := s.clock.Latest(); left < timeout/shortPerTimeout && last.After(d.cutAt) && silence > timeout/silentPerTimeout {
		d.cutAt = last
		go conn.Cut(errSilence(silence)) // and not the present one: that can be another by then
	}
	d.timer.Reset(max(0, min(timeout/looksPerTimeout, left)))
}
