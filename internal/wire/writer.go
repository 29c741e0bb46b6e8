package wire

import (
	"encoding/binary"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// writes sends heartbeats, and the calls that wait, until the connection has ended.
func (w *Conn) writes() {
	timer := time.NewTimer(clock.Aside)
	defer timer.Stop()
	for {
		out, more, next := w.batch()
		if len(out) > 0 && w.write(out) != nil {
			return
		}
		if more && w.life.Err() == nil {
			continue
		}
		timer.Reset(max(time.Microsecond, next.Sub(clock.Now()))) // no timer is due at once: see .ci/race
		select {
		case <-w.life.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// batch returns what to write now: what is urgent, the heartbeats that are due, and the calls that have room. It notes
// them as sent before the write begins. more says that calls with room remain, and next is when to look again.
func (w *Conn) batch() (out []byte, more bool, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := clock.Now(); !now.Before(w.beatAt) {
		w.beatLocked(now)
	}
	out = w.writing[:0]
	for _, frame := range w.urgent {
		out = w.sendLocked(out, frame, nil)
	}
	w.urgent = nil
	for ahead := len(out); ; {
		e := w.waiting.next()
		if e == nil || !w.roomLocked(e) {
			break
		}
		if size := len(out) - ahead; size > 0 && size+len(e.frame) > mostWrite {
			more = true
			break
		}
		w.waiting.take(e)
		binary.BigEndian.PutUint32(e.frame[4:], uint32(w.numberLocked()))
		w.flying, w.load = w.flying+1, w.load+len(e.frame)
		out = w.sendLocked(out, e.frame, e)
	}
	if w.writing = out; cap(out) > 2*mostWrite { // the memory of a long call is not kept
		w.writing = nil
	}
	return out, more, w.beatAt
}

// beatLocked makes the heartbeats that are due urgent.
func (w *Conn) beatLocked(now time.Time) {
	var due []clock.Duty
	due, w.beatAt = w.link.Due(now, w.cfg.Half(w.timeout), w.owns(), w.cfg.Clock.Proven())
	for _, d := range due {
		switch d {
		case clock.Ping:
			w.urgent = append(w.urgent, codec.PingFrame())
		case clock.Sync:
			xid := w.numberLocked()
			w.link.Began(xid)
			w.urgent = append(w.urgent, codec.SyncFrame(xid))
		case clock.Agree:
			w.urgent = append(w.urgent, codec.AgreeFrame(w.numberLocked()))
		}
	}
}

// sendLocked appends a frame to what is written, and notes when it is sent and what a quorum's answer to it will prove.
// Each frame has a time of its own.
func (w *Conn) sendLocked(out, frame []byte, e *entry) []byte {
	if xid := codec.Xid(frame); xid != codec.XidAuth { // ids keeps track of these, and the answers to them prove nothing
		w.flight = append(w.flight, sending{w.link.Sends(xid, codec.Op(frame), clock.Now()), e})
	}
	return append(out, frame...)
}
