package sim

import (
	"io"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/zktest"
)

// lane is one direction of a connection, with the frames that have not arrived yet.
type lane struct {
	l    *link
	dir  zktest.Direction
	wake chan struct{}

	mu    sync.Mutex
	queue []packet

	// The fields below belong to the deliverer.
	count  int       // bursts so far
	passed int       // frames so far
	at     time.Time // when the present burst was sent
	last   time.Time // when the last one arrived
}

// packet is a frame on its way, or, with no frame, the end.
type packet struct {
	frame []byte
	at    time.Time

	req   request
	rank  int
	order uint64
}

func newLane(l *link, dir zktest.Direction) *lane {
	return &lane{l: l, dir: dir, wake: make(chan struct{}, 1)}
}

// read takes in the frames, up to the end.
func (n *lane) read(from io.Reader) {
	for {
		frame, err := readFrame(from)
		if err != nil {
			frame = nil
		}
		n.mu.Lock()
		n.queue = append(n.queue, packet{frame: frame, at: time.Now()})
		n.mu.Unlock()
		select {
		case n.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// next returns all frames of one instant, when that instant is over.
func (n *lane) next() []packet {
	for {
		n.mu.Lock()
		if len(n.queue) > 0 {
			break
		}
		n.mu.Unlock()
		<-n.wake
	}
	at := n.queue[0].at
	n.mu.Unlock()
	if !time.Now().After(at) {
		time.Sleep(time.Nanosecond) // virtual time moves on when all goroutines have done what they do now
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	i := 1
	for i < len(n.queue) && n.queue[i].at.Equal(at) {
		i++
	}
	group := n.queue[:i:i]
	n.queue = n.queue[i:]
	return group
}

// ended reports whether the sender has closed the connection.
func (n *lane) ended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.queue) > 0 && n.queue[len(n.queue)-1].frame == nil
}

// burst returns how many of the group arrive at one instant: the first, and those that are
// the same.
func (n *lane) burst(group []packet, same func(a, b packet) bool) int {
	i := 1
	for i < len(group) && group[i].frame != nil && group[0].frame != nil && same(group[0], group[i]) {
		i++
	}
	n.count++
	n.at = group[0].at
	return i
}

// wait returns when the present burst arrives.
func (n *lane) wait() { n.waitFor(n.dir) }

func (n *lane) waitFor(dir zktest.Direction) {
	e := n.l.e
	h := mix(e.world.seed, "delay", e.party, n.l.began, n.l.salt, int(n.dir), n.count)
	due := n.at.Add(e.world.delay(h))
	if !due.After(n.last) {
		due = n.last.Add(1)
	}
	for {
		due = slot(due, e.party, h)
		time.Sleep(time.Until(due))
		e.mu.Lock()
		blocked, changed := e.black&dir != 0, e.changed
		e.mu.Unlock()
		if !blocked {
			n.last = due
			return
		}
		<-changed
		due = time.Now().Add(between(h, time.Millisecond, 20*time.Millisecond))
	}
}
