package peerlink

import (
	"io"
	"slices"
	"sync"
)

// pingWatchers are the functions that are called for the pings on one link.
type pingWatchers struct {
	mu   sync.Mutex
	list []*pingWatcher // never changed in place
}

type pingWatcher struct {
	f func(answer bool, touched []int64)
}

func (ws *pingWatchers) add(f func(answer bool, touched []int64)) (remove func()) {
	w := &pingWatcher{f}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = append(slices.Clip(ws.list), w)
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.list = slices.DeleteFunc(slices.Clone(ws.list), func(o *pingWatcher) bool { return o == w })
	}
}

// observe returns the relay for one direction of the link. A follower opens the connection to
// its leader, so pings in the direction of the target are answers.
func (ws *pingWatchers) observe(answer bool) relay {
	return func(to io.Writer, from io.Reader) error {
		return passPackets(to, from, func(data []byte) {
			ws.mu.Lock()
			list := ws.list
			ws.mu.Unlock()
			for _, w := range list {
				w.f(answer, touched(data))
			}
		})
	}
}
