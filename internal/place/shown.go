package place

import (
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/news"
	"github.com/turnstile-go/turnstile/kinds"
)

// Shown is what the attempts of an acquisition show to those that share it.
type Shown struct {
	Placed news.News              // the first create was answered, or there will be none
	depart atomic.Pointer[func()] // says to the session that the node is about to go; nil before the first create
	view   atomic.Pointer[view]   // of the present wait; nil if there is none
	listed atomic.Pointer[listed] // by the last listing; nil if there was none
}

// listed is what the last listing of an attempt has shown.
type listed struct {
	children *core.Watch // set by the listing; nil if it set none
	crowded  bool        // others wait for our node
}

// Takes says that the acquisition is about to go on with the attempt of another, which has a node.
func (s *Shown) Takes(other *Acquisition) {
	a := other.stands
	depart := func() { a.s.Leaving(a.path) }
	s.depart.Store(&depart)
}

// Depart says to the session that the node is about to go, so that the next acquisition waits for its room.
func (s *Shown) Depart() {
	if depart := s.depart.Load(); depart != nil {
		(*depart)()
	}
}

// Open reports whether a contender that comes now may share the place: nobody else can have come before it, as far as
// the server has told.
func (s *Shown) Open() bool {
	last := s.listed.Load()
	return last == nil || !last.crowded && last.children != nil && last.children.Event() == core.WatchPending
}

// Why returns the reason for which those that share an acquisition have to wait. s may be nil: then nothing is known
// of others. It asks the manager and its connection, which have mutexes of their own.
func (q *Queue) Why(s *Shown, now time.Time) kinds.WaitError {
	if s == nil {
		return q.why(nil, now)
	}
	return q.why(s.view.Load(), now)
}
