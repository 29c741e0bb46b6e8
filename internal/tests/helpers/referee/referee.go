// Package referee checks, without asking ZooKeeper, that no more is held at one moment than may be.
package referee

import (
	"fmt"
	"slices"
	"sync"
)

// A Referee compares the holds of a lock that it is told of. Its methods are safe for concurrent use.
type Referee struct {
	Room int // how much can be held at once

	mu    sync.Mutex
	holds []*Hold // that were not given up
}

// A Hold is one grant. It takes a part of the room while Held reports true.
type Hold struct {
	What   string
	Weight int
	Held   func() bool // by the clock at the time of the call; false is for good
}

// Enter is called as soon as a hold is granted, and Leave before it is given up. Enter first asks the other holds, and
// then the new one. All that report held were held at the same time. It returns what is wrong, or "".
func (r *Referee) Enter(h *Hold) (foul string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum, with := h.Weight, []string{h.What}
	for _, other := range r.holds {
		if other.Held() {
			sum += other.Weight
			with = append(with, other.What)
		}
	}
	r.holds = append(r.holds, h)
	if sum > r.Room && h.Held() {
		return fmt.Sprintf("%d of %d are held at once: %q", sum, r.Room, with)
	}
	return ""
}

// Leave is called before a hold is given up.
func (r *Referee) Leave(h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = slices.DeleteFunc(r.holds, func(o *Hold) bool { return o == h })
}
