package queue

import "sync"

// news is something that happens once, and that goroutines may wait for. It makes a channel only if one of
// them does: most locks are held and released without it. The zero value has not happened.
type news struct {
	mu   sync.Mutex
	told bool
	done chan struct{} // nil until somebody waits
}

// tell says that it has happened. Further calls do nothing.
func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.told && n.done != nil {
		close(n.done)
	}
	n.told = true
}

// has reports whether it has happened. The caller may then read all that was written before tell.
func (n *news) has() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told
}

// wait returns a channel that is closed once it has happened.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.done == nil {
		n.done = make(chan struct{})
		if n.told {
			close(n.done)
		}
	}
	return n.done
}
