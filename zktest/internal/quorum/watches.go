package quorum

import (
	"maps"
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// watchModes are the modes of the watches that a client has on one path: how long they last, and what they
// watch.
type watchModes int

const (
	oneShot    watchModes = 1 << iota
	persistent            // addWatch with mode 0
	recursive             // addWatch with mode 1: watches everything below as well

	anyMode = oneShot | persistent | recursive
)

// A watchTable holds watches by path and by client. There is one for data and one for children.
type watchTable struct {
	several   bool // a client can have watches of several modes on one path
	byPath    map[string]map[*Peer]watchModes
	byPeer    map[*Peer]map[string]struct{}
	recursive int // the number of watches of that mode
}

func newWatchTable(several bool) *watchTable {
	return &watchTable{
		several: several,
		byPath:  make(map[string]map[*Peer]watchModes),
		byPeer:  make(map[*Peer]map[string]struct{}),
	}
}

// add sets a watch. It replaces the client's earlier one on the path, unless there can be several.
func (w *watchTable) add(path string, p *Peer, mode watchModes) {
	if w.several {
		mode |= w.byPath[path][p]
	}
	w.set(path, p, mode)
}

// remove removes the client's watches of some modes on a path. It returns false if there are none.
func (w *watchTable) remove(path string, p *Peer, modes watchModes) bool {
	had := w.byPath[path][p]
	if had&modes == 0 {
		return false
	}
	w.set(path, p, had&^modes)
	return true
}

// set makes these the modes of the client's watches on a path.
func (w *watchTable) set(path string, p *Peer, modes watchModes) {
	had := w.byPath[path][p]
	w.recursive += int(modes&recursive-had&recursive) / int(recursive)
	if modes == 0 {
		w.forget(path, p)
		return
	}
	if w.byPath[path] == nil {
		w.byPath[path] = make(map[*Peer]watchModes)
	}
	w.byPath[path][p] = modes
	if w.byPeer[p] == nil {
		w.byPeer[p] = make(map[string]struct{})
	}
	w.byPeer[p][path] = struct{}{}
}

func (w *watchTable) forget(path string, p *Peer) {
	delete(w.byPath[path], p)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byPeer[p], path)
	if len(w.byPeer[p]) == 0 {
		delete(w.byPeer, p)
	}
}

// has reports whether the client has a watch of one of the modes on a path.
func (w *watchTable) has(path string, p *Peer, modes watchModes) bool {
	return w.byPath[path][p]&modes != 0
}

func (w *watchTable) drop(p *Peer) {
	for path := range maps.Clone(w.byPeer[p]) {
		w.set(path, p, 0)
	}
}

// trigger returns the clients that get an event, and removes the one-shot watches among those
// triggered.
func (w *watchTable) trigger(kind znode.EventKind, path string) []*Peer {
	var hear []*Peer
	for p, modes := range w.byPath[path] {
		if modes == recursive && kind == znode.ChildrenChanged {
			continue
		}
		hear = append(hear, p)
		w.remove(path, p, oneShot)
	}
	if w.recursive > 0 && kind != znode.ChildrenChanged {
		for above := path; above != "/" && above != ""; {
			above = znode.WatchPath(above[:strings.LastIndexByte(above, '/')])
			for p, modes := range w.byPath[above] {
				if modes&recursive != 0 && !slices.Contains(hear, p) {
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
