//go:build linux

package nemesis

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"sync"
)

// desk hears what workers say on their standard output, an event a line, and keeps it. It knows of each
// seat, which is a contender of one worker for one lock, how it is.
type desk struct {
	entered chan int // tells a listener which worker will keep a lock for a while
	names   []string // of the locks
	hands   []int    // of each lock, in each worker

	mu     sync.Mutex // guards what follows
	book   []event
	seats  []seat
	last   int // the worker that was seen under the first lock last
	counts map[lifeID]counts
}

type seat struct {
	target, worker, hand int
	turn                 int   // the last that was seen under the lock
	served               int64 // when that was
	rested               bool
}

func newDesk(subjects []subject) *desk {
	d := &desk{entered: make(chan int), counts: make(map[lifeID]counts)}
	for i, g := range subjects {
		d.names, d.hands = append(d.names, g.name), append(d.hands, g.hands)
		for n := range workers * g.hands {
			d.seats = append(d.seats, seat{target: i, worker: n / g.hands, hand: n % g.hands})
		}
	}
	return d
}

// listen hears a worker until its end. A kill can cut its last line short.
func (d *desk) listen(said io.Reader) {
	for in := bufio.NewReader(said); ; {
		line, err := in.ReadBytes('\n')
		var e event
		if err != nil || json.Unmarshal(line, &e) != nil {
			return
		}
		d.hear(e)
	}
}

func (d *desk) hear(e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.book = append(d.book, e)
	if e.Hand < 0 {
		return // it is about a part of a hold of several locks
	}
	target := max(0, slices.Index(d.names, e.Lock)) // a rival has one only
	n := e.Worker*d.hands[target] + e.Hand
	for _, hands := range d.hands[:target] {
		n += workers * hands
	}
	s := &d.seats[n]
	switch e.What {
	case eventLook:
		if e.Held && e.Turn != s.turn {
			s.turn, s.served = e.Turn, e.To
			if target == 0 {
				d.last = e.Worker
			}
		}
	case eventLong:
		select {
		case d.entered <- e.Worker:
		default:
		}
	case eventRest:
		s.rested = true
	case eventCount:
		d.counts[e.id().lifeID] = *e.Counts
	}
}

// do calls f with the lock.
func (d *desk) do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// servedSince returns, for each target, when the last of its seats was served since a time, or -1 if one has not been.
func (d *desk) servedSince(from int64) []int64 {
	last := slices.Repeat([]int64{from}, len(d.names))
	for _, s := range d.seatsWhere(func(seat) bool { return true }) {
		if s.served <= from {
			last[s.target] = -1
		} else if last[s.target] >= 0 {
			last[s.target] = max(last[s.target], s.served)
		}
	}
	return last
}

// seatsWhere returns the seats for which f is true.
func (d *desk) seatsWhere(f func(seat) bool) (found []seat) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.seats {
		if f(s) {
			found = append(found, s)
		}
	}
	return found
}

// restless counts the seats of each target that have not come to rest.
func (d *desk) restless() []int {
	n := make([]int, len(d.names))
	for _, s := range d.seatsWhere(func(s seat) bool { return !s.rested }) {
		n[s.target]++
	}
	return n
}
