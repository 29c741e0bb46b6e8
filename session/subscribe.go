package session

import (
	"sync"
	"sync/atomic"
)

// lane runs functions in order, in a goroutine that lives as long as there are some. It is for functions of the program,
// which may block. One that ends its goroutine does not end the lane.
type lane struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

func (l *lane) add(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, f)
	if !l.running {
		l.running = true
		go l.run()
	}
}

func (l *lane) run() {
	over := false
	defer func() {
		if !over { // by runtime.Goexit
			go l.run()
		}
	}()
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.running, over = false, true
			l.queue = nil
			l.mu.Unlock()
			return
		}
		f := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.mu.Unlock()
		f()
	}
}

// waiting returns how many functions have not begun.
func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// subscribers pass on state changes. Each has a lane of its own, so a slow one delays no other.
type subscribers struct {
	mu  sync.Mutex
	all map[*subscriber]struct{}
}

type subscriber struct {
	f    func(Change)
	lane lane
	over atomic.Bool
}

func (s *subscriber) put(c Change) {
	s.lane.add(func() {
		if !s.over.Load() {
			s.f(c)
		}
	})
}

// add begins to call f. first, if not nil, is the first change that f gets.
func (ss *subscribers) add(f func(Change), first *Change) (cancel func()) {
	s := &subscriber{f: f}
	if first != nil {
		s.put(*first)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.all == nil {
		ss.all = make(map[*subscriber]struct{})
	}
	if first == nil || first.To != Closed { // otherwise no more will come
		ss.all[s] = struct{}{}
	}
	return func() {
		s.over.Store(true)
		ss.mu.Lock()
		defer ss.mu.Unlock()
		delete(ss.all, s)
	}
}

func (ss *subscribers) publish(c Change) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for s := range ss.all {
		s.put(c)
	}
	if c.To == Closed { // the last change
		clear(ss.all)
	}
}
