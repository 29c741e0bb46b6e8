package zktest

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Fault is something that goes wrong once. It is armed when it is made, and strikes the first
// request that matches, on any connection. If several faults of the same kind match a request, the
// oldest one strikes. Its methods panic if the Fault was not made by a Proxy or Server.
type Fault struct {
	kind     faultKind
	match    Match
	struck   atomic.Bool
	hit      chan struct{} // closed once it has struck
	released chan struct{} // closed by Release
	release  sync.Once
	forget   func() // removes it from the proxy's list
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

// CutBefore makes a fault that closes the connection on both sides instead of passing the matching
// request on. The server never sees the request. It gets everything before it.
func (p *Proxy) CutBefore(m Match) *Fault { return p.made().arm(cutBefore, m) }

// CutAfterCommit makes a fault that passes the matching request on, waits for the reply, and closes the connection on
// both sides instead of delivering the reply. A reply that says that the request failed counts as well.
func (p *Proxy) CutAfterCommit(m Match) *Fault { return p.made().arm(cutAfterCommit, m) }

// HoldRequest makes a fault that holds back the matching request until [Fault.Release], and everything
// that the client sends after it on that connection, including its end.
func (p *Proxy) HoldRequest(m Match) *Fault { return p.made().arm(holdRequest, m) }

// HoldReply makes a fault that holds back the reply to the matching request until [Fault.Release], and
// everything that the server sends after it on that connection, including its end.
func (p *Proxy) HoldReply(m Match) *Fault { return p.made().arm(holdReply, m) }

// Hit returns a channel that is closed once the fault has struck: once the connection is closed, or
// the request or reply is held.
func (f *Fault) Hit() <-chan struct{} { return f.made().hit }

// Release passes on everything that the fault holds back, in the order in which it arrived. A fault
// that has not struck yet never will. Release does not wait. It may be called more than once.
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
	// Make a new list, because strike reads the old one without the lock.
	p.faults = slices.DeleteFunc(slices.Clone(p.faults), func(other *Fault) bool { return other == f })
}

// strike returns the fault of this kind that strikes the request, or nil. The caller closes its hit
// channel once it has done what the fault says.
func (p *Proxy) strike(kind faultKind, r Request) *Fault {
	p.mu.Lock()
	faults := p.faults
	p.mu.Unlock()
	for _, f := range faults {
		// The match is the caller's code, which must not run with the lock held.
		if f.kind != kind || !f.match(r) || !f.claim() {
			continue
		}
		p.forget(f)
		return f
	}
	return nil
}

// claim makes the fault strike. It returns false if it has struck or was released before.
func (f *Fault) claim() bool {
	select {
	case <-f.released:
		return false
	default:
		return f.struck.CompareAndSwap(false, true)
	}
}
