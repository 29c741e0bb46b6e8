//go:build linux

package nemesis

import (
	"encoding/json"
	"io"
	"sync"
)

// desk hears what workers say on their standard output, an event a line, and keeps it. It knows of each seat when that was
// served.
type desk struct {
	entered chan int             // tells a listener which worker will keep a lock for a while
	rests   [workers]chan counts // the last that a worker said at rest
	first   string               // lock

	mu    sync.Mutex // guards what follows
	book  []event
	seats map[seat]served
	last  int // the worker that was seen under the first lock last
}

// seat is a contender of a worker for a lock.
type seat struct {
	lock         string
	worker, hand int
}

// served is the last turn in which a seat was seen under the lock, and since when.
type served struct {
	turn int
	at   int64
}

func newDesk(subjects []subject) *desk {
	d := &desk{entered: make(chan int), first: subjects[0].name, seats: make(map[seat]served)}
	for i := range workers {
		d.rests[i] = make(chan counts, 1)
		for _, g := range subjects {
			for hand := range g.hands {
				d.seats[seat{g.name, i, hand}] = served{}
			}
		}
	}
	return d
}

// listen hears a worker until its end. A kill can cut its last line short.
func (d *desk) listen(said io.Reader) {
	for in := json.NewDecoder(said); ; {
		var e event
		if in.Decode(&e) != nil {
			return
		}
		d.hear(e)
	}
}

func (d *desk) hear(e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.book = append(d.book, e)
	at := seat{e.Lock, e.Worker, e.Hand}
	switch {
	case e.What == eventLook && e.Held && e.Turn != d.seats[at].turn:
		d.seats[at] = served{e.Turn, e.To}
		if e.Lock == d.first {
			d.last = e.Worker
		}
	case e.What == eventLong:
		select {
		case d.entered <- e.Worker:
		default:
		}
	case e.What == eventRest:
		select {
		case <-d.rests[e.Worker]:
		default:
		}
		d.rests[e.Worker] <- *e.Counts
	}
}

// do calls f with the lock.
func (d *desk) do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// since returns which seats have not been served since a time, and when the last of the others was.
func (d *desk) since(from int64) (late []seat, last int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last = from
	for at, s := range d.seats {
		if s.at <= from {
			late = append(late, at)
		}
		last = max(last, s.at)
	}
	return late, last
}
