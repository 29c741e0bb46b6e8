package zktest

import "time"

// A Direction of the traffic through a [Proxy].
type Direction int

// The directions; Both is the two together.
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

// Blackhole makes the network disappear in the given direction, in addition to
// what has disappeared already, until [Proxy.Heal].
//
// It is a partition, as TCP sees one. Connections stay open. What is sent into
// it does not arrive, and neither does the news that the other side has closed
// the connection or died. On Heal, what was sent arrives late and in order, then
// the news, as TCP's retransmission has it; up to 8 MiB are kept for each
// connection, past which its sender is no longer read from. A new connection is
// accepted, but nothing of it reaches the server in either direction before
// Heal, and nothing ever if the client has closed it by then.
//
// A frame that is just being written when Blackhole is called still arrives.
func (p *Proxy) Blackhole(d Direction) {
	p.made()
	p.change(func() { p.black |= d & Both })
}

// Heal ends what [Proxy.Blackhole] and [Proxy.Refuse] began. A delay stays, and
// so do faults.
func (p *Proxy) Heal() {
	p.made()
	p.change(func() {
		p.black = 0
		p.refuse = false
	})
}

// Delay makes every frame, in each direction, arrive d later than it would. The
// delay is a network's: frames keep their distance, and throughput is the same.
// It applies to frames on their way, too; 0 ends it. A round trip takes 2*d.
func (p *Proxy) Delay(d time.Duration) {
	p.made()
	p.change(func() { p.delay = d })
}

// Refuse sets whether new connections are closed as soon as they are made.
// Those there are stay.
func (p *Proxy) Refuse(refuse bool) {
	p.made()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// change makes a change that waiting frames must hear of.
func (p *Proxy) change(apply func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	apply()
	close(p.changed)
	p.changed = make(chan struct{})
}

// wait waits until a frame that arrived at the given time may leave in
// direction d. It returns false when done is closed first.
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

// pause waits for a change or, if nothing is blocked, for the time it is due;
// it may return early. It returns false when done is closed first.
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
