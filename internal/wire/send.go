package wire

import (
	"bytes"
	"math"
	"slices"
)

// Write sends one frame. zk.Conn writes each frame whole.
//
// Write never fails. If it did, zk.Conn would answer the request that it could not write, and
// then answer it once more with all requests in flight. So after a failed write, Write closes the
// socket and reports success. Every failure reaches zk.Conn once, through its reader, as a closed
// connection.
func (w *Conn) Write(b []byte) (int, error) {
	w.sendAll(func() [][]byte { return w.outgoing(b) })
	return len(b), nil
}

// sendAll sends the frames that f returns, and the calls that wait. It calls f with w.mu held. If a write
// fails, it closes the connection.
func (w *Conn) sendAll(f func() [][]byte) {
	select {
	case w.writing <- struct{}{}:
	case <-w.closed:
		return
	}
	defer func() { <-w.writing }()
	w.mu.Lock()
	out := w.withCallsLocked(f)
	w.noteLocked(out)
	w.mu.Unlock()
	if len(out) == 0 {
		return
	}
	w.since.Store(int64(w.lastSent.Sub(w.made))) // only the goroutine with the token writes lastSent
	defer w.since.Store(0)
	all := out[0]
	if len(out) > 1 {
		all = bytes.Join(out, nil)
	}
	if _, err := w.Conn.Write(all); err != nil {
		_ = w.ended(err)
		w.Close()
	}
}

// withCallsLocked returns the frames of f, behind the calls that came earlier. If the calls have to wait for f,
// they follow.
func (w *Conn) withCallsLocked(f func() [][]byte) [][]byte {
	if w.openLocked() {
		return append(w.calls.take(w.xidLocked), f()...)
	}
	out := f()
	if w.openLocked() {
		out = append(out, w.calls.take(w.xidLocked)...)
	}
	return out
}

// openLocked reports whether calls can be sent: the server has greeted, and has been sent the identities and
// setWatches.
func (w *Conn) openLocked() bool {
	return !w.greeted.IsZero() && len(w.urgent) == 0 && !w.holding
}

// outgoing returns the frames to send now that zk.Conn sends b. The caller holds w.mu.
//
// After a reconnect, setWatches tells the server which watches zk.Conn had, and up to which
// transaction it has seen everything. Replies to queued requests would advance that transaction. The
// server would then leave out the events in between. So outgoing holds requests back until setWatches
// is on its way.
func (w *Conn) outgoing(b []byte) [][]byte {
	if w.hello.IsZero() {
		w.told = w.cfg.Seen.zxid.Load()
		return [][]byte{withZxid(b, zxidInHello, w.told)}
	}
	op := opOf(b)
	if op == OpSetWatches {
		b = withZxid(b, zxidInSetWatches, w.told)
	}
	if !w.holding {
		if op == OpPing {
			return nil // see beat.go
		}
		return [][]byte{b}
	}
	switch op {
	case OpSetWatches:
		out := append([][]byte{b}, w.held...)
		w.holding, w.held = false, nil
		return out
	case OpPing:
		// zk.Conn sends setWatches at once after the handshake, and a ping after a third of a
		// timeout. So setWatches does not come any more.
		out := append(w.held, b)
		w.holding, w.held = false, nil
		return out
	}
	w.held = append(w.held, slices.Clone(b))
	return nil
}

// noteLocked notes when the frames are sent, and what a quorum's answer to them will prove.
func (w *Conn) noteLocked(out [][]byte) {
	if len(out) == 0 {
		return
	}
	w.lastSent = Now()
	if w.hello.IsZero() {
		w.hello = w.lastSent
		return
	}
	w.trail.half = w.cfg.Half(w.timeout)
	for _, frame := range out {
		xid, op := xidOf(frame), opOf(frame)
		if xid == XidAuth {
			continue // identities keeps track of these, and the answers to them prove nothing
		}
		s := sending{xid: xid, op: op, at: Now()} // each has a time of its own: see flight.answered
		if shows(op, CodeOK) == evidenceQuorum {
			s.proof = w.trail.proof(s.at)
		}
		w.flight.add(s)
	}
}

// xidLocked returns a number for a request of our own. After the last number comes the first again. The request
// that had it was answered long ago.
func (w *Conn) xidLocked() int32 {
	if w.lastXid == math.MinInt32 {
		w.lastXid = firstXid
	}
	w.lastXid--
	return w.lastXid
}
