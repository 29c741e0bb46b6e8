package wire

import (
	"bytes"
	"math"
)

// Write sends one frame. zk.Conn writes each frame whole.
//
// Write never fails. After a failed write it closes the socket and reports success, so every failure reaches
// zk.Conn once, through its reader, as a closed connection.
func (w *Conn) Write(b []byte) (int, error) {
	w.sendAll(nil, func() [][]byte { return w.outgoing(b) })
	return len(b), nil
}

// sendAll sends the frames that ahead returns, calls that wait and have room in the window, and the frames that
// behind returns. Both functions may be nil, and are called with w.mu held. If a write fails, sendAll closes the
// connection.
func (w *Conn) sendAll(ahead, behind func() [][]byte) {
	select {
	case w.writing <- struct{}{}:
	case <-w.closed:
		return
	}
	defer func() { <-w.writing }()
	w.mu.Lock()
	var out [][]byte
	open := w.openLocked()
	if ahead != nil {
		out = ahead()
	}
	if open {
		now := Now()
		oldest := sending{at: now}
		if first, ok := w.flight.oldest(); ok {
			oldest = first
		}
		out = append(out, w.calls.take(now, oldest.at, w.xidLocked)...)
	}
	if behind != nil {
		out = append(out, behind()...)
	}
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
	if w.calls.canLeave() { // they did not fit into this write, or had to wait for these frames
		w.poke()
	}
}

// openLocked reports whether calls can be sent: the server has greeted, and has been sent the identities.
func (w *Conn) openLocked() bool { return !w.greeted.IsZero() && len(w.urgent) == 0 }

// outgoing returns the frames to send now that zk.Conn sends b: the handshake, or closeSession. Pings are
// sent at other times: see beat.go. The caller holds w.mu.
func (w *Conn) outgoing(b []byte) [][]byte {
	switch {
	case w.hello.IsZero():
		return [][]byte{w.cfg.Seen.fill(b)}
	case opOf(b) == OpPing:
		return nil
	}
	return [][]byte{b}
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
