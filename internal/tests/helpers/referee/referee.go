// Package referee checks, without asking ZooKeeper, that no more is held at one moment than may be. Tests
// and programs that use locks at random tell it of each hold.
package referee

import (
	"fmt"
	"slices"
	"sync"
)

// A Referee compares the holds that it is told of. Its methods are safe for concurrent use.
type Referee struct {
	mu        sync.Mutex
	holds     map[string][]*Hold // by path, those not given up
	forgiving map[string]bool    // clients whose session is being expired by force
	limits    map[string]*Limits // by path, of semaphores whose limit changes
	grants    int
	fouls     []string
}

// maxFouls is how many fouls are kept. One fails the run.
const maxFouls = 20

// A Place is a lock's path, and how much can be held there at once.
type Place struct {
	Path     string
	Capacity int
}

// A Hold is one grant: it has a weight of the place's capacity while Held reports true.
type Hold struct {
	Place
	Who    string // the client
	What   string
	Weight int
	Held   func() bool // by the clock at the time of the call; false is for good
	View   int64       // of a semaphore: when the listing was asked for that let it in; see [Limits]

	forgiven bool // guarded by Referee.mu
}

// New returns a referee that knows of no holds.
func New() *Referee {
	return &Referee{holds: make(map[string][]*Hold), forgiving: make(map[string]bool), limits: make(map[string]*Limits)}
}

// LimitsOf returns the limits of a place whose limit changes.
func (r *Referee) LimitsOf(p Place) *Limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limits[p.Path] == nil {
		r.limits[p.Path] = newLimits(p.Capacity)
	}
	return r.limits[p.Path]
}

// Enter is called as soon as a hold is granted, and Leave before it is given up. Enter first asks
// the other holds, and then the new one. All that report held were held at the same time.
func (r *Referee) Enter(h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grants++
	h.forgiven = r.forgiving[h.Who]
	sum, view, with := h.Weight, h.View, []string{h.What + " of " + h.Who}
	for _, other := range r.holds[h.Path] {
		if !other.forgiven && other.Held() {
			sum, view = sum+other.Weight, max(view, other.View)
			with = append(with, other.What+" of "+other.Who)
		}
	}
	r.holds[h.Path] = append(r.holds[h.Path], h)
	capacity := h.Capacity
	if l := r.limits[h.Path]; l != nil {
		capacity = l.since(view) // of all these, the last was let in after it
	}
	if sum > capacity && !h.forgiven && h.Held() && len(r.fouls) < maxFouls {
		r.fouls = append(r.fouls, fmt.Sprintf("%s has %d of %d at once: %q", h.Path, sum, capacity, with))
	}
}

// Leave is called before a hold is given up.
func (r *Referee) Leave(h *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := slices.DeleteFunc(r.holds[h.Path], func(o *Hold) bool { return o == h })
	if r.holds[h.Path] = rest; len(rest) == 0 {
		delete(r.holds, h.Path) // there can be any number of paths in a long run
	}
}

// Forgive is called before a client's session is ended by force, as by an operator. The holder hears
// of that only when the server tells it, which is no fault of the locks. It lasts until Trust is
// called, when the session has ended for the client too. Then no hold of that session reports held.
func (r *Referee) Forgive(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgiving[who] = true
	for _, holds := range r.holds {
		for _, h := range holds {
			if h.Who == who {
				h.forgiven = true
			}
		}
	}
}

// Trust ends [Referee.Forgive].
func (r *Referee) Trust(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.forgiving, who)
}

// Result returns the number of holds, the fouls, and the holds that were not given up.
func (r *Referee) Result() (grants int, fouls []string, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, holds := range r.holds {
		left += len(holds)
	}
	return r.grants, slices.Clone(r.fouls), left
}
