// Package news has something that happens once, and that goroutines may wait for.
package news

import "sync"

// News is something that happens once, and that goroutines may wait for. It has a channel only while some
// of them do: most locks are held and released without one, and a channel takes 96 bytes. The zero value
// has not happened. All methods may be called by several goroutines at once.
type News struct {
	mu   sync.Mutex
	told bool
	done chan struct{} // nil until somebody waits, and again once it has happened
}

// happened is closed.
var happened = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// Tell says that it has happened. Further calls do nothing.
func (n *News) Tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.done != nil {
		close(n.done)
	}
	n.told, n.done = true, nil
}

// Has reports whether it has happened. The caller may then read all that was written before Tell.
func (n *News) Has() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told
}

// Wait returns a channel that is closed once it has happened.
func (n *News) Wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.told:
		return happened
	case n.done == nil:
		n.done = make(chan struct{})
	}
	return n.done
}
