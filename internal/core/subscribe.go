package core

import (
	"sync"

	"github.com/turnstile-go/turnstile/hooks"
)

// subscribers pass on state changes. Each subscriber has a queue and a goroutine of its own. So a
// slow subscriber delays no other, and no change is dropped.
type subscribers struct {
	mu  sync.Mutex
	all map[*subscriber]struct{}
}

type subscriber struct {
	f func(hooks.Change)

	mu    sync.Mutex
	queue []hooks.Change
	over  bool
	wake  chan struct{} // room for one
}

// add begins to call f. first, if not nil, is the first change that f gets.
func (ss *subscribers) add(f func(hooks.Change), first *hooks.Change) (cancel func()) {
	s := &subscriber{f: f, wake: make(chan struct{}, 1)}
	if first != nil {
		s.queue = append(s.queue, *first)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.all == nil {
		ss.all = make(map[*subscriber]struct{})
	}
	ss.all[s] = struct{}{}
	go s.run()
	return func() {
		ss.mu.Lock()
		delete(ss.all, s)
		ss.mu.Unlock()
		s.stop(true)
	}
}

func (ss *subscribers) publish(c hooks.Change) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for s := range ss.all {
		s.put(c)
	}
}

// finish ends every subscriber once it has got all changes that were published.
func (ss *subscribers) finish() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for s := range ss.all {
		s.stop(false)
	}
	clear(ss.all)
}

func (s *subscriber) put(c hooks.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.queue = append(s.queue, c)
		s.poke()
	}
}

// stop ends the subscriber: at once if now is set, and otherwise after the changes in its queue.
func (s *subscriber) stop(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if now {
		s.queue = nil
	}
	s.poke()
}

// run calls f. If f ends the goroutine, another one goes on.
func (s *subscriber) run() {
	done := false
	defer func() {
		if !done {
			go s.run()
		}
	}()
	for {
		c, ok, over := s.next()
		switch {
		case ok:
			s.f(c)
		case over:
			done = true
			return
		default:
			<-s.wake
		}
	}
}

// next removes the next change from the queue, if there is one. over says that no more will come.
func (s *subscriber) next() (c hooks.Change, ok, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return hooks.Change{}, false, s.over
	}
	c, s.queue = s.queue[0], s.queue[1:]
	return c, true, false
}

func (s *subscriber) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
