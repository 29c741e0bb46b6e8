package quorum

import (
	"slices"
	"strings"

	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// watchModes are the modes of the watches that a client has on one path: how long they last, and what they watch.
type watchModes int

const (
	oneShot    watchModes = 1 << iota
	persistent            // addWatch with mode 0
	recursive             // addWatch with mode 1: watches everything below as well

	anyMode = oneShot | persistent | recursive
)

// A watchTable holds watches by path and by client. There is one for data and one for children.
type watchTable struct {
	several bool // a client can have watches of several modes on one path
	byPath  map[string]map[*Peer]watchModes
}

func newWatchTable(several bool) *watchTable {
	return &watchTable{several: several, byPath: make(map[string]map[*Peer]watchModes)}
}

// add sets a watch. It replaces the client's earlier one on the path, unless there can be several.
func (w *watchTable) add(path string, p *Peer, mode watchModes) {
	if w.byPath[path] == nil {
		w.byPath[path] = make(map[*Peer]watchModes)
	}
	if w.several {
		mode |= w.byPath[path][p]
	}
	w.byPath[path][p] = mode
}

// remove removes the client's watches of some modes on a path. It returns false if there are none.
func (w *watchTable) remove(path string, p *Peer, modes watchModes) bool {
	had := w.byPath[path][p]
	if had&modes == 0 {
		return false
	}
	if left := had &^ modes; left != 0 {
		w.byPath[path][p] = left
		return true
	}
	delete(w.byPath[path], p)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	return true
}

func (w *watchTable) drop(p *Peer) {
	for path := range w.byPath {
		w.remove(path, p, anyMode)
	}
}

// trigger returns the clients that get an event, and removes the one-shot watches among those triggered.
func (w *watchTable) trigger(kind znode.EventKind, path string) []*Peer {
	var hear []*Peer
	for p, modes := range w.byPath[path] {
		if modes == recursive && kind == znode.ChildrenChanged {
			continue
		}
		hear = append(hear, p)
		w.remove(path, p, oneShot)
	}
	if kind != znode.ChildrenChanged {
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
