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
		frames, more, next := w.batch()
		if len(frames) > 0 {
			out := frames[0]
			if len(frames) > 1 {
				out = w.writing[:0]
				for _, f := range frames {
					out = append(out, f...)
				}
				w.writing = out
			}
			if w.write(out) != nil {
				return
			}
			if more {
				select {
				case <-w.life.Done():
					return
				default:
					continue
				}
			}
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
// them as sent before the write begins. more says that calls are left that have room, and next is when to look again.
func (w *Conn) batch() (frames [][]byte, more bool, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.link.SetHalf(w.cfg.Half(w.timeout))
	if now := clock.Now(); !now.Before(w.beatAt) {
		w.beats(now)
	}
	for _, frame := range w.urgent {
		frames = append(frames, w.note(frame, nil))
	}
	w.urgent = nil
	for size := 0; ; {
		e := w.waiting.next()
		if e == nil || !w.room(e) {
			return frames, false, w.beatAt
		}
		if size > 0 && size+len(e.frame) > mostWrite {
			return frames, true, w.beatAt
		}
		w.waiting.take(e)
		binary.BigEndian.PutUint32(e.frame[4:], uint32(w.numberLocked()))
		w.flying, w.load, size = w.flying+1, w.load+len(e.frame), size+len(e.frame)
		frames = append(frames, w.note(e.frame, e))
	}
}

// beats makes the heartbeats that are due urgent.
func (w *Conn) beats(now time.Time) {
	var due []clock.Duty
	due, w.beatAt = w.link.Due(now, w.owns(), w.cfg.Clock.Proven())
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

// note notes when a frame is sent, and what a quorum's answer to it will prove. Each frame has a time of its own.
func (w *Conn) note(frame []byte, e *entry) []byte {
	if xid := codec.Xid(frame); xid != codec.XidAuth { // ids keeps track of these, and the answers to them prove nothing
		w.flight = append(w.flight, sending{w.link.Sends(xid, codec.Op(frame), clock.Now()), e})
	}
	return frame
}
