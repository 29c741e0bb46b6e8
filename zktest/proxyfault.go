package zktest

import (
	"sync"
	"sync/atomic"
)

// A Fault is something that goes wrong once. It is armed when made, and strikes
// the first request that matches, on whichever connection; of several that
// match the same request and do the same, the oldest strikes. Its methods panic if no
// Proxy or Server has made it.
type Fault struct {
	kind     faultKind
	match    Match
	struck   atomic.Bool
	hit      chan struct{} // closed once it has struck
	released chan struct{} // closed by Release
	release  sync.Once
	forget   func() // takes it off the proxy's list
}

type faultKind int

const (
	cutBefore faultKind = iota
	cutAfterCommit
	holdRequest
	holdReply
)

// made returns f. It panics if f is nil or a zero value.
func (f *Fault) made() *Fault {
	if f == nil || f.hit == nil {
		panic("zktest: Fault not made by a Proxy or Server")
	}
	return f
}

// CutBefore makes a fault that closes the connection, on both sides, in place
// of passing the matching request on. The server never sees the request; what
// came before it is delivered.
func (p *Proxy) CutBefore(m Match) *Fault { return p.made().arm(cutBefore, m) }

// CutAfterCommit makes a fault that passes the matching request on, waits for
// the reply, and closes the connection, on both sides, in place of delivering
// it. Any reply will do, one that says the request failed as well; [Request]
// has no result to match on.
func (p *Proxy) CutAfterCommit(m Match) *Fault { return p.made().arm(cutAfterCommit, m) }

// HoldRequest makes a fault that keeps the matching request from the server,
// and with it everything after it in that direction of that connection, the
// client's closing it included, until [Fault.Release].
func (p *Proxy) HoldRequest(m Match) *Fault { return p.made().arm(holdRequest, m) }

// HoldReply makes a fault that keeps the reply to the matching request from the
// client, and with it everything after it in that direction of that connection,
// the server's closing it included, until [Fault.Release].
func (p *Proxy) HoldReply(m Match) *Fault { return p.made().arm(holdReply, m) }

// Hit returns a channel that is closed once the fault has struck: once the
// connection is closed, or once there is something to hold and it is held.
func (f *Fault) Hit() <-chan struct{} { return f.made().hit }

// Release lets go of what is held, in the order it arrived; a fault that has
// not struck yet never will. It does not wait and may be called repeatedly.
func (f *Fault) Release() {
	f.made()
	f.release.Do(func() { close(f.released) })
	f.forget()
}

func (p *Proxy) arm(kind faultKind, m Match) *Fault {
	if m == nil {
		panic("zktest: nil Match")
	}
	f := &Fault{
		kind:     kind,
		match:    m,
		hit:      make(chan struct{}),
		released: make(chan struct{}),
	}
	f.forget = func() { p.forget(f) }
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

func (p *Proxy) forget(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.faults {
		if other == f {
			// A new list: strike reads the old one without the lock.
			p.faults = append(p.faults[:i:i], p.faults[i+1:]...)
			return
		}
	}
}

// strike returns the fault of that kind which the request meets, or nil. The
// caller closes its hit channel when it has done what the fault says.
func (p *Proxy) strike(kind faultKind, r Request) *Fault {
	p.mu.Lock()
	faults := p.faults
	p.mu.Unlock()
	for _, f := range faults {
		// The match is the user's: it runs without the lock.
		if f.kind != kind || !f.match(r) || !f.claim() {
			continue
		}
		p.forget(f)
		return f
	}
	return nil
}

// claim takes the fault, unless it has struck or was released.
func (f *Fault) claim() bool {
	select {
	case <-f.released:
		return false
	default:
		return f.struck.CompareAndSwap(false, true)
	}
}
