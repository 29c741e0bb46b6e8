package wire

import (
	"encoding/binary"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

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
		timer.Reset(max(time.Microsecond, next.Sub(clock.Now()))) // see .ci/race: no timer is due at once
		select {
		case <-w.life.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// batch returns what to write now: heartbeats that are due, and calls that have room. It notes them as sent before
// the write begins. more: some with room remain. next is when to look again.
func (w *Conn) batch() (out []byte, more bool, next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := clock.Now(); !now.Before(w.beatAt) {
		w.beatLocked(now)
	}
	out = w.writing[:0]
	for e := w.nextLocked(); e != nil; e = w.nextLocked() {
		if more = len(out) > 0 && len(out)+len(e.frame) > mostWrite; more {
			break
		}
		w.waiting.take(e)
		if len(e.calls) > 0 {
			binary.BigEndian.PutUint32(e.frame[4:], uint32(w.numberLocked()))
			w.flying, w.load = w.flying+1, w.load+len(e.frame)
		}
		if xid := codec.Xid(e.frame); xid != codec.XidAuth { // identities prove nothing
			w.flight = append(w.flight, sending{w.link.Sends(xid, codec.Op(e.frame), clock.Now()), e}) // each has a time of its own
		}
		out = append(out, e.frame...)
	}
	if w.writing = out; cap(out) > 2*mostWrite { // the memory of a long call is not kept
		w.writing = nil
	}
	return out, more, w.beatAt
}

func (w *Conn) beatLocked(now time.Time) {
	var due []clock.Duty
	due, w.beatAt = w.link.Due(now, w.cfg.Half(w.timeout), w.owns(), w.cfg.Clock.Proven())
	for _, d := range due {
		switch d {
		case clock.Ping:
			w.waiting.addOwn(codec.PingFrame())
		case clock.Sync:
			xid := w.numberLocked()
			w.link.Began(xid)
			w.waiting.addOwn(codec.SyncFrame(xid))
		case clock.Agree:
			w.waiting.addOwn(codec.AgreeFrame(w.numberLocked(), "/"))
		}
	}
}
