package main

import (
	"fmt"
	"slices"
	"sync"
)

// referee checks, without asking ZooKeeper, that no two holds that exclude each other report held at
// one moment.
type referee struct {
	mu        sync.Mutex
	holds     map[string][]*hold // by path, those not given up
	forgiving map[string]bool    // clients whose session is being expired by force
	limits    map[string]*limits // by path, of semaphores whose limit changes
	grants    int
	fouls     []string
}

// maxFouls is how many fouls are kept. One fails the run.
const maxFouls = 20

// hold is one grant: it has a weight of the place's capacity while held reports true.
type hold struct {
	place
	who    string // the client
	what   string
	weight int
	held   func() bool // by the clock at the time of the call; false is for good
	view   int64       // of a semaphore: when the listing was asked for that let it in; see limits

	forgiven bool // guarded by referee.mu
}

func newReferee() *referee {
	return &referee{holds: make(map[string][]*hold), forgiving: make(map[string]bool), limits: make(map[string]*limits)}
}

// limitsOf returns the limits of a place whose limit changes.
func (r *referee) limitsOf(p place) *limits {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limits[p.path] == nil {
		r.limits[p.path] = newLimits(p.capacity)
	}
	return r.limits[p.path]
}

// enter is called as soon as a hold is granted, and leave before it is given up. enter first asks
// the other holds, and then the new one. All that report held were held at the same time.
func (r *referee) enter(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grants++
	h.forgiven = r.forgiving[h.who]
	sum, view, with := h.weight, h.view, []string{h.what + " of " + h.who}
	for _, other := range r.holds[h.path] {
		if !other.forgiven && other.held() {
			sum, view = sum+other.weight, max(view, other.view)
			with = append(with, other.what+" of "+other.who)
		}
	}
	r.holds[h.path] = append(r.holds[h.path], h)
	capacity := h.capacity
	if l := r.limits[h.path]; l != nil {
		capacity = l.since(view) // of all these, the last was let in after it
	}
	if sum > capacity && !h.forgiven && h.held() && len(r.fouls) < maxFouls {
		r.fouls = append(r.fouls, fmt.Sprintf("%s has %d of %d at once: %q", h.path, sum, capacity, with))
	}
}

func (r *referee) leave(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds[h.path] = slices.DeleteFunc(r.holds[h.path], func(o *hold) bool { return o == h })
}

// forgive is called before a client's session is ended by force, as by an operator. The holder hears
// of that only when the server tells it, which is no fault of the locks. It lasts until trust is
// called, when the session has ended for the client too. Then no hold of that session reports held.
func (r *referee) forgive(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgiving[who] = true
	for _, holds := range r.holds {
		for _, h := range holds {
			if h.who == who {
				h.forgiven = true
			}
		}
	}
}

func (r *referee) trust(who string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.forgiving, who)
}

// result returns the number of holds, the fouls, and the holds that were not given up.
func (r *referee) result() (grants int, fouls []string, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, holds := range r.holds {
		left += len(holds)
	}
	return r.grants, slices.Clone(r.fouls), left
}
