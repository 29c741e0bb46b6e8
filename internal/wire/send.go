package wire

import (
	"bytes"
	"io"
	"math"
	"time"
)

// The goroutine that writes. What it writes at once counts as sent when the write begins, in the order of the frames.

// sends sends heartbeats, and the calls that wait, until the connection has ended.
func (w *Conn) sends() {
	timer := time.NewTimer(aside)
	defer timer.Stop()
	w.send(nil) // the identities
	for {
		select {
		case <-w.closed:
			return
		case <-w.posted:
			select { // the heartbeats that are due go ahead of these calls
			case <-timer.C:
			case <-w.answered:
			default:
				w.send(nil)
				continue
			}
		case <-timer.C:
		case <-w.answered:
		}
		owns := w.cfg.Events.Owns()
		var wait time.Duration
		w.send(func() [][]byte {
			now := Now()
			out := w.duties(now, owns)
			wait = w.beat.next(now).Sub(now)
			return out
		})
		timer.Reset(wait)
	}
}

// send sends what is urgent, the frames that beats returns, and calls that wait and have room in the window. beats may
// be nil, and is called with w.mu held.
func (w *Conn) send(beats func() [][]byte) {
	w.mu.Lock()
	out := w.urgent
	w.urgent = nil
	if beats != nil {
		out = append(out, beats()...)
	}
	now := Now()
	oldest := sending{at: now}
	if first, ok := w.flight.oldest(); ok {
		oldest = first
	}
	out = append(out, w.calls.take(now, oldest.at, w.xidLocked)...)
	sent := w.noteLocked(out)
	w.mu.Unlock()
	w.calls.endGivenUp()
	if len(out) == 0 {
		return
	}
	all := out[0]
	if len(out) > 1 {
		all = bytes.Join(out, nil)
	}
	if w.write(sent, all) == nil && w.calls.canLeave() { // they did not fit into this write
		w.poke()
	}
}

// write writes to the network. If it fails, it has ended the connection.
func (w *Conn) write(now time.Time, b []byte) error {
	w.since.Store(int64(now.Sub(w.made)))
	defer w.since.Store(0)
	n, err := w.conn.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.lose(err)
	}
	return err
}

// noteLocked notes when the frames are sent, and what a quorum's answer to them will prove. It returns when.
func (w *Conn) noteLocked(out [][]byte) time.Time {
	if len(out) == 0 {
		return w.lastSent
	}
	w.lastSent = Now()
	w.trail.half = slowHalf(w.cfg.Half(w.timeout))
	for _, frame := range out {
		xid, op := xidOf(frame), opOf(frame)
		if xid == XidAuth {
			continue // identities keeps track of these, and the answers to them prove nothing
		}
		w.flight.add(w.trail.sends(xid, op, Now())) // each has a time of its own: see flight.answered
	}
	return w.lastSent
}

// xidLocked returns a number for a request of the connection itself. After the last number comes the first again. The
// request that had it was answered long ago.
func (w *Conn) xidLocked() int32 {
	if w.lastXid == math.MinInt32 {
		w.lastXid = firstXid
	}
	w.lastXid--
	return w.lastXid
}
