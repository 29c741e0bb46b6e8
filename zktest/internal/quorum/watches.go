package quorum

import (
	"maps"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// watchMode says how long a watch lasts, and what it watches.
type watchMode int

const (
	oneShot    watchMode = iota
	persistent           // addWatch with mode 0
	recursive            // addWatch with mode 1: watches everything below as well
)

// A watchTable holds watches by path and by client. There is one for data and one for children.
type watchTable struct {
	byPath    map[string]map[*Peer]watchMode
	byPeer    map[*Peer]map[string]struct{}
	recursive int // the number of watches of that mode
}

func newWatchTable() *watchTable {
	return &watchTable{
		byPath: make(map[string]map[*Peer]watchMode),
		byPeer: make(map[*Peer]map[string]struct{}),
	}
}

// add sets a watch. A client has one watch on a path: a later one replaces an earlier one of any
// mode.
func (w *watchTable) add(path string, p *Peer, mode watchMode) {
	w.remove(path, p)
	if w.byPath[path] == nil {
		w.byPath[path] = make(map[*Peer]watchMode)
	}
	w.byPath[path][p] = mode
	if w.byPeer[p] == nil {
		w.byPeer[p] = make(map[string]struct{})
	}
	w.byPeer[p][path] = struct{}{}
	if mode == recursive {
		w.recursive++
	}
}

// remove removes a watch. It returns false if there is none.
func (w *watchTable) remove(path string, p *Peer) bool {
	mode, ok := w.byPath[path][p]
	if !ok {
		return false
	}
	if mode == recursive {
		w.recursive--
	}
	delete(w.byPath[path], p)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byPeer[p], path)
	if len(w.byPeer[p]) == 0 {
		delete(w.byPeer, p)
	}
	return true
}

func (w *watchTable) has(path string, p *Peer) bool {
	_, ok := w.byPath[path][p]
	return ok
}

func (w *watchTable) drop(p *Peer) {
	for path := range maps.Clone(w.byPeer[p]) {
		w.remove(path, p)
	}
}

// trigger returns the clients that get an event, and removes the one-shot watches among those
// triggered.
func (w *watchTable) trigger(kind znode.EventKind, path string) []*Peer {
	var hear []*Peer
	for p, mode := range w.byPath[path] {
		if mode == recursive && kind == znode.ChildrenChanged {
			continue
		}
		hear = append(hear, p)
		if mode == oneShot {
			w.remove(path, p)
		}
	}
	if w.recursive > 0 && kind != znode.ChildrenChanged {
		for above := path; above != "/" && above != ""; {
			above = znode.WatchPath(above[:strings.LastIndexByte(above, '/')])
			for p, mode := range w.byPath[above] {
				if mode == recursive && !slices.Contains(hear, p) {
					hear = append(hear, p)
				}
			}
		}
	}
	// The order of a map is random, but a run must have the same outcome each time.
	slices.SortFunc(hear, func(a, b *Peer) int { return int(a.ordinal - b.ordinal) })
	return hear
}

func (w *watchTable) count() int {
	n := 0
	for _, watchers := range w.byPath {
		n += len(watchers)
	}
	return n
}
