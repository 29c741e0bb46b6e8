package session

import (
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// beatsPerTimeout is how many heartbeats a session sends in one timeout when it
	// sends nothing else. A leader learns from its followers, twice a tick, which
	// sessions they have heard of since; so this, and half a tick, is how far behind
	// the last answer a session's life on the leader can be, which the margin covers.
	beatsPerTimeout = 10
	// provenPerTimeout is how old, in parts of a timeout, the last proof by a quorum
	// may be before a heartbeat asks for the next, while the session owns nodes. That
	// costs the ensemble a write.
	provenPerTimeout = 4
	// stuckPerTimeout is how long, in parts of a timeout, a heartbeat may be without
	// an answer before the connection is given up: the server is cut off from its
	// leader, though it may answer reads. Another may not be.
	stuckPerTimeout = 3
)

// heartbeat keeps the lease clock going while the session lives, and ends the
// session when the clock has run out.
func (s *Session) heartbeat() {
	var beat beat
	timer := time.NewTimer(s.Timeout() / beatsPerTimeout)
	defer timer.Stop()
	for s.Err() == nil {
		again := false // connected again: what has been proven was so a while ago
		select {
		case <-timer.C:
		case <-s.reconnected:
			again = true
		case <-s.life.Done():
			return
		}
		now, timeout := time.Now(), s.Timeout()
		switch {
		case !s.isConnected():
			beat = nil
		case beat.underWay():
			if beat.since(now) > timeout/stuckPerTimeout {
				s.cut()
			}
		default:
			beat = s.sendBeat(now, timeout, again)
		}
		timer.Reset(max(0, min(timeout/beatsPerTimeout, s.clock.remaining(now))))
	}
}

// sendBeat sends the heartbeat that is due: a multi that changes nothing, which goes
// through a quorum whatever rights we have, or a sync, which goes to the leader and on its
// way keeps the session alive.
func (s *Session) sendBeat(now time.Time, timeout time.Duration, again bool) beat {
	b := &beatUnderWay{at: now, done: make(chan struct{})}
	send := func() { _, _ = s.conn.Sync(s.outward("/")) }
	if (again || s.nodes.any()) && now.Sub(s.clock.last()) >= timeout/provenPerTimeout {
		send = func() { _, _ = s.conn.Multi(&zk.CheckVersionRequest{Path: s.outward("/"), Version: -1}) }
	}
	s.background(func() {
		defer close(b.done)
		send() // its answer is seen on the wire
	})
	return b
}

// beat is the last heartbeat; nil before the first.
type beat = *beatUnderWay

type beatUnderWay struct {
	at   time.Time
	done chan struct{}
}

func (b *beatUnderWay) underWay() bool {
	if b == nil {
		return false
	}
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

func (b *beatUnderWay) since(now time.Time) time.Duration { return now.Sub(b.at) }
