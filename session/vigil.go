package session

import (
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

const (
	// shortPerTimeout: what remains of a session is running short below this part of a
	// timeout.
	shortPerTimeout = 3
	// silentPerTimeout: a connection on which nothing was heard for this part of a timeout,
	// although an answer is due, may be cut off. Where answers merely take long, those to
	// pings come often.
	silentPerTimeout = 4
	// looksPerTimeout is how often the vigil looks.
	looksPerTimeout = 20
)

// vigil ends the session when its clock has run out, and before that gives up, once, a
// connection that has fallen silent: another server may be in touch with the leader. It does
// no I/O itself, so nothing delays it.
type vigil struct {
	mu    sync.Mutex
	timer *time.Timer // nil before keep and after stop
	over  bool
	cutAt time.Time // what the clock had proven when a connection was last given up
}

// keep begins the vigil.
func (v *vigil) keep(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.over && v.timer == nil {
		v.timer = time.AfterFunc(0, func() { v.look(s) })
	}
}

func (v *vigil) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	if v.timer != nil {
		v.timer.Stop()
	}
}

// look is called by the timer.
func (v *vigil) look(s *Session) {
	if s.Err() != nil {
		return
	}
	timeout, left, silence := s.Timeout(), s.remaining(), s.silence()
	v.mu.Lock() // held while nothing else is: a connection that ends the session stops the vigil
	defer v.mu.Unlock()
	if v.over {
		return
	}
	if last := s.clock.Latest(); left < timeout/shortPerTimeout && last.After(v.cutAt) && silence > timeout/silentPerTimeout {
		v.cutAt = last
		go s.cut()
	}
	v.timer.Reset(max(0, min(timeout/looksPerTimeout, left)))
}

// silence returns for how long the present connection has owed an answer and said nothing.
func (s *Session) silence() time.Duration {
	s.mu.Lock()
	w := s.wire
	s.mu.Unlock()
	if w == nil {
		return 0
	}
	return w.Silence(wire.Now())
}
