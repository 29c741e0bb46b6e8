package core

import (
	"sync"
	"sync/atomic"

	"github.com/turnstile-go/turnstile/hooks"
	"github.com/turnstile-go/turnstile/internal/line"
)

// subscribers pass on state changes. Each subscriber has a queue of its own. So a slow subscriber delays no other, and
// no change is dropped.
type subscribers struct {
	mu  sync.Mutex
	all map[*subscriber]struct{}
}

type subscriber struct {
	f         func(hooks.Change)
	changes   line.Errands
	cancelled atomic.Bool
}

// add begins to call f. first, if not nil, is the first change that f gets.
func (ss *subscribers) add(f func(hooks.Change), first *hooks.Change) (cancel func()) {
	s := &subscriber{f: f}
	if first != nil {
		s.put(*first)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.all == nil {
		ss.all = make(map[*subscriber]struct{})
	}
	if first == nil || first.To != hooks.Closed { // otherwise no more will come
		ss.all[s] = struct{}{}
	}
	return func() {
		s.cancelled.Store(true)
		ss.mu.Lock()
		defer ss.mu.Unlock()
		delete(ss.all, s)
	}
}

func (ss *subscribers) publish(c hooks.Change) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for s := range ss.all {
		s.put(c)
	}
	if c.To == hooks.Closed { // the last change
		clear(ss.all)
	}
}

func (s *subscriber) put(c hooks.Change) {
	s.changes.Add(func() {
		if !s.cancelled.Load() {
			s.f(c)
		}
	})
}
