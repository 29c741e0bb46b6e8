package session

import (
	"sync"
	"time"
)

const (
	// shortPerTimeout: what remains of a session is running short below this part of a
	// timeout.
	shortPerTimeout = 3
	// silentPerTimeout: a connection on which nothing was heard for this part of a timeout,
	// although an answer is due, may be cut off. Where answers merely take long, those to
	// pings come often.
	silentPerTimeout = 4
	// looksPerTimeout is how often the watchdog looks.
	looksPerTimeout = 20
)

// watchdog ends the session when its clock has run out, and before that gives up, once, a
// connection that has fallen silent: another server may be in touch with the leader. It does
// no I/O itself, so nothing delays it.
type watchdog struct {
	mu    sync.Mutex
	timer *time.Timer // nil before keep and after stop
	over  bool
	cutAt time.Time // what the clock had proven when a connection was last given up
}

// keep begins the watchdog.
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
	timeout, left, silence := s.Timeout(), s.remaining(), s.silence()
	d.mu.Lock() // held while nothing else is: a connection that ends the session stops the watchdog
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if last := s.clock.Latest(); left < timeout/shortPerTimeout && last.After(d.cutAt) && silence > timeout/silentPerTimeout {
		d.cutAt = last
		go s.cut()
	}
	d.timer.Reset(max(0, min(timeout/looksPerTimeout, left)))
}
