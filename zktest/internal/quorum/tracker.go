package quorum

import (
	"maps"
	"slices"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A tracker is the leader's session tracker: it knows when each session is over.
// Sessions expire on its ticks only. So a session lives for at least its timeout
// after the last touch, and for at most one tick more.
type tracker struct {
	tick     time.Duration
	origin   time.Time // one of the ticks, before the first touch
	sessions map[int64]*tracked
}

// tracked is what the tracker knows of a session.
type tracked struct {
	expires time.Time
	closing bool  // its end has been proposed
	owned   bool  // owner is known
	owner   *bond // the connection that its requests come on; nil: the leader's own clients
}

func newTracker(tick time.Duration, origin time.Time) *tracker {
	return &tracker{tick: tick, origin: origin, sessions: make(map[int64]*tracked)}
}

// nextTick returns the first tick after t.
func (k *tracker) nextTick(t time.Time) time.Time {
	return k.origin.Add((t.Sub(k.origin)/k.tick + 1) * k.tick)
}

// add tracks a session, and touches it.
func (k *tracker) add(session int64, timeout time.Duration) {
	if k.sessions[session] == nil {
		k.sessions[session] = new(tracked)
	}
	k.touch(session, timeout)
}

// touch puts the session's end off. It returns false if the session is over.
func (k *tracker) touch(session int64, timeout time.Duration) bool {
	s := k.sessions[session]
	if s == nil || s.closing {
		return false
	}
	s.expires = k.nextTick(time.Now().Add(timeout))
	return true
}

// due returns the sessions that have expired and are not being closed yet,
// sorted.
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

// close makes the tracker refuse touches and requests of a session.
func (k *tracker) close(session int64) {
	if s := k.sessions[session]; s != nil {
		s.closing = true
	}
}

func (k *tracker) remove(session int64) { delete(k.sessions, session) }

// own notes on which connection the session's requests come from now on.
func (k *tracker) own(session int64, way *bond) {
	if s := k.sessions[session]; s != nil && !s.closing {
		s.owner, s.owned = way, true
	}
}

// check returns an error if a request of the session must not be processed:
// because the session is over, or because the request came late, by a server
// that the session has left since.
func (k *tracker) check(session int64, way *bond) error {
	s := k.sessions[session]
	switch {
	case s == nil || s.closing:
		return znode.CodeSessionExpired
	case !s.owned: // a new leader takes the first way it sees
		s.owner, s.owned = way, true
	case s.owner != way:
		return znode.CodeSessionMoved
	}
	return nil
}

func (k *tracker) ids() []int64 { return slices.Sorted(maps.Keys(k.sessions)) }

// track closes expired sessions on each tick of the tracker.
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

// endSession closes a session whose client has not asked for it.
func (l *leadership) endSession(id int64) *proposal {
	return l.prepare(&request{session: id, op: wire.OpClose})
}
