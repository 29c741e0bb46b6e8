package quorum

import (
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A tracker is the leader's session tracker, which decides when each session is over. Sessions expire on its ticks
// only. So a session lives for at least its timeout after the last touch, and for at most one tick more.
type tracker struct {
	conf     *Config
	tick     time.Duration // by the clock of this process
	origin   time.Time     // the time of a tick before the first touch
	sessions map[int64]*tracked
}

// tracked is what the tracker knows about a session.
type tracked struct {
	expires time.Time
	closing bool        // its end has been proposed
	owned   bool        // owner is known
	owner   *quorumConn // the connection on which its requests arrive; nil: it is the leader's own client
}

// newTracker returns the tracker of a server of an ensemble that was started at the given time.
func newTracker(conf *Config, start time.Time, server int) *tracker {
	return &tracker{
		conf:     conf,
		tick:     conf.real(conf.Tick),
		origin:   start.Add(conf.real(conf.phase(server) - conf.Tick)),
		sessions: make(map[int64]*tracked),
	}
}

// nextTick returns the first tick after t.
func (k *tracker) nextTick(t time.Time) time.Time {
	return k.origin.Add((t.Sub(k.origin)/k.tick + 1) * k.tick)
}

// add begins to track a session, and touches it.
func (k *tracker) add(session int64, timeout time.Duration) {
	if k.sessions[session] == nil {
		k.sessions[session] = new(tracked)
	}
	k.touch(session, timeout)
}

// touch extends a session by its timeout. It returns false if the session is over.
func (k *tracker) touch(session int64, timeout time.Duration) bool {
	s := k.sessions[session]
	if s == nil || s.closing {
		return false
	}
	s.expires = k.nextTick(time.Now().Add(k.conf.real(timeout)))
	return true
}

// due returns the sessions that have expired and are not being closed yet, sorted.
func (k *tracker) due() []int64 {
	now := time.Now()
	var expired []int64
	for id, s := range k.sessions {
		if !s.closing && !s.expires.After(now) {
			expired = append(expired, id)
		}
	}
	slices.Sort(expired)
	return expired
}

// close makes the tracker refuse later touches and requests of a session.
func (k *tracker) close(session int64) {
	if s := k.sessions[session]; s != nil {
		s.closing = true
	}
}

func (k *tracker) remove(session int64) { delete(k.sessions, session) }

// own notes the connection on which the session's requests arrive from now on.
func (k *tracker) own(session int64, via *quorumConn) {
	if s := k.sessions[session]; s != nil && !s.closing {
		s.owner, s.owned = via, true
	}
}

// check returns an error if a request of the session must not be processed. Either the session is over,
// or the request is late, and arrives from a server that the session has left.
func (k *tracker) check(session int64, via *quorumConn) error {
	s := k.sessions[session]
	switch {
	case s == nil || s.closing:
		return znode.CodeSessionExpired
	case !s.owned: // a new leader takes the first connection that it sees
		s.owner, s.owned = via, true
	case s.owner != via:
		return znode.CodeSessionMoved
	}
	return nil
}

// track makes the leader close expired sessions on each tick of the tracker.
func (l *leadership) track() {
	m := l.m
	m.later(time.Until(l.tracker.nextTick(time.Now())), &m.overdue.expiry, func() {
		if m.lead != l {
			return
		}
		for _, id := range l.tracker.due() {
			l.endSession(id)
		}
		l.track()
	})
}

// endSession closes a session without a request of its client.
func (l *leadership) endSession(id int64) *proposal {
	return l.prepare(&request{session: id, op: codec.OpClose})
}
