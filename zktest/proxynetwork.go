package zktest

import "time"

// A Direction is a direction of the traffic through a [Proxy].
type Direction int

// The directions. Both is the two of them together.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// String returns the direction's name.
func (d Direction) String() string {
	switch d {
	case ToServer:
		return "to server"
	case ToClient:
		return "to client"
	case Both:
		return "both"
	default:
		return "neither"
	}
}

// Blackhole makes the network disappear in the given direction until [Proxy.Heal], in addition to a
// direction that has disappeared already.
//
// It behaves like a partition with TCP. Connections stay open. What one side sends does not arrive,
// and the other side does not learn that a connection was closed. On Heal all of that arrives late
// and in order, as with TCP's retransmission. The proxy keeps up to 8 MiB for each connection and
// direction, and then stops reading from the sender. A new connection is accepted, but is not made
// to the server before Heal, and never if the client has closed it by then.
//
// A frame that is being written when Blackhole is called still arrives.
func (p *Proxy) Blackhole(d Direction) {
	p.made()
	p.change(func() { p.black |= d & Both })
}

// Heal ends [Proxy.Blackhole] and [Proxy.Refuse]. It does not end [Proxy.Delay], and armed faults stay armed.
func (p *Proxy) Heal() {
	p.made()
	p.change(func() {
		p.black = 0
		p.refuse = false
	})
}

// Delay makes every frame arrive d later, in both directions, so that a round trip takes 2*d longer.
// As in a network, the time between frames and the throughput stay the same. The delay applies to
// frames on their way, too. A delay of 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.made()
	p.change(func() { p.delay = d })
}

// Refuse sets whether the proxy closes new connections as soon as they are made. Existing connections stay.
func (p *Proxy) Refuse(refuse bool) {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// change applies a change, and wakes the goroutines that hold frames back.
func (p *Proxy) change(apply func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	apply()
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait waits until a frame that arrived at the given time may be passed on in direction d. It returns
// false if done is closed first.
func (p *Proxy) wait(done <-chan struct{}, d Direction, arrived time.Time) bool {
	for {
		p.mu.Lock()
		blocked, due, changed := p.black&d != 0, arrived.Add(p.delay), p.changed
		p.mu.Unlock()
		if !blocked && !time.Now().Before(due) {
			return true
		}
		if !p.pause(done, changed, blocked, due) {
			return false
		}
	}
}

// pause waits for a change or, unless the direction is blocked, until the frame is due. It may return
// early. It returns false if done is closed first.
func (p *Proxy) pause(done, changed <-chan struct{}, blocked bool, due time.Time) bool {
	var timeout <-chan time.Time
	if !blocked {
		left := time.Until(due)
		if p.naps {
			if left <= napAtMost {
				nap(left)
				return true
			}
			left -= napAtMost
		}
		timer := time.NewTimer(left)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-timeout:
		return true
	case <-changed:
		return true
	case <-done:
		return false
	}
}
