package quorum

import (
	"fmt"
	"sync"

	"github.com/turnstile-go/turnstile/internal/codec"
)

// Servers have limits that clients meet in odd ways. The length of a request is checked where frames are read, outside of
// this package. The other limits are here.

// logOverhead is what the end of a session has in a log besides its paths: the header of the transaction, the number of
// paths, and the digest of the tree.
const logOverhead = 32 + 4 + 12

// loggedLength returns the length of the end of a session in a log: it lists the paths of the session's ephemeral nodes.
// Other transactions are hardly longer than their requests, and 0 is returned for them.
func (t *txn) loggedLength() int {
	if t.op != codec.OpClose {
		return 0
	}
	n := logOverhead
	for _, c := range t.changes {
		n += 4 + len(c.Path)
	}
	return n
}

// unreadable returns an error if servers can write a transaction to a log, but neither read it back nor receive it.
func (c *Config) unreadable(t *txn) error {
	n := t.loggedLength()
	if n <= c.MaxRead {
		return nil
	}
	return fmt.Errorf("the end of session %#x has %d bytes, with the paths of %d ephemeral nodes, and servers read at most %d "+
		"(jute.maxbuffer and its extra size). ZooKeeper says: Unreasonable length = %d", t.session, n, len(t.changes), c.MaxRead, n)
}

// spoil notes that the server has written a transaction to its log that it cannot read back. A server alone goes on until
// it is stopped. A leader goes on until it notices that the others have left it.
func (m *Member) spoil(err error) {
	if m.spoiled == nil {
		m.spoiled = fmt.Errorf("zktest: server %d cannot read its log: %w", m.index, err)
	}
}

// Failure returns why the server cannot start again, and cannot serve again if it has stopped serving. It returns nil
// if it can.
func (m *Member) Failure() error { return m.spoiled }

// outstandingLimit is how many requests a server may have in process before it stops to read. Like ZooKeeper's, the
// servers of an ensemble share the limit, as if one of them had no clients.
func (c *Config) outstandingLimit() int {
	if c.Servers > 2 {
		return c.Outstanding / (c.Servers - 1)
	}
	return c.Outstanding
}

// overloaded reports whether the server has too many requests in process.
func (m *Member) overloaded() bool { return m.inProcess > m.st.conf.outstandingLimit() }

// counts reports whether a request or its answer counts for the limit. Those with ZooKeeper's own numbers do not.
func counts(xid int32) bool { return xid > 0 }

// noteRequest counts a request that was read. If the server has too many in process, it reads no more of this client.
func (p *Peer) noteRequest(xid int32) {
	if !counts(xid) {
		return
	}
	p.outstanding++
	if p.at.overloaded() && !p.deaf {
		p.deaf = true
		p.reading.shut()
	}
}

// noteAnswer counts an answer. The server reads on once the client has no more requests outstanding, or the server no
// longer has too many in process. That is checked only here.
func (p *Peer) noteAnswer(xid int32) {
	if !counts(xid) {
		return
	}
	p.outstanding--
	if !p.deaf || p.outstanding > 0 && p.at.overloaded() {
		return
	}
	p.deaf = false
	// The present event comes first: it may be in the middle of the answers to a session.
	p.at.later(0, &p.at.overdue.inputs, p.readOn)
}

// readOn processes what has arrived while the server did not read.
func (p *Peer) readOn() {
	for !p.deaf && !p.gone && len(p.unread) > 0 {
		frame := p.unread[0]
		p.unread = p.unread[1:]
		p.take(frame)
	}
	if !p.deaf {
		p.reading.open()
	}
}

// A valve stops the goroutine that writes a client's frames while the server does not read them.
type valve struct {
	mu     sync.Mutex
	closed chan struct{} // nil: it is open; closed, and set to nil, when it opens
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed == nil {
		v.closed = make(chan struct{})
	}
}

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed != nil {
		close(v.closed)
		v.closed = nil
	}
}

// opened returns a channel that is closed when the valve opens, or nil if it is open.
func (v *valve) opened() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}
