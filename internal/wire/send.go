package wire

import (
	"bytes"
	"io"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// The goroutine that writes. What it writes at once counts as sent when the write begins, in the order of the frames.

// sends sends heartbeats, and the calls that wait, until the connection has ended.
func (w *Conn) sends() {
	timer := time.NewTimer(clock.Aside)
	defer timer.Stop()
	w.send() // the identities
	for {
		select {
		case <-w.closed:
			return
		case <-w.posted:
			select { // the heartbeats that are due go ahead of these calls
			case <-timer.C:
			case <-w.answered:
			default:
				w.send()
				continue
			}
		case <-timer.C:
		case <-w.answered:
		}
		wait := w.beats()
		w.send()
		timer.Reset(wait)
	}
}

// beats puts the heartbeats that are due ahead of all that waits, and returns how long to wait for the next.
func (w *Conn) beats() time.Duration {
	owns := w.cfg.Events.Owns()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.link.SetHalf(w.cfg.Half(w.timeout))
	now := clock.Now()
	due, next := w.link.Due(now, owns, w.cfg.Clock.Proven())
	for _, d := range due {
		switch d {
		case clock.Ping:
			w.urgent = append(w.urgent, codec.PingFrame())
		case clock.Sync:
			xid := w.out.Number()
			w.link.Began(xid)
			w.urgent = append(w.urgent, codec.SyncFrame(xid))
		case clock.Agree:
			w.urgent = append(w.urgent, codec.AgreeFrame(w.out.Number()))
		}
	}
	return next.Sub(now)
}

// send sends what is urgent, and calls that wait and have room in the window.
func (w *Conn) send() {
	w.mu.Lock()
	now := clock.Now()
	oldest := now
	if first, ok := w.flight.oldest(); ok {
		oldest = first.At
	}
	out := append(w.urgent, w.out.Take(now, oldest)...)
	w.urgent = nil
	w.noteLocked(out)
	w.mu.Unlock()
	w.out.EndGivenUp()
	if len(out) == 0 {
		return
	}
	all := out[0]
	if len(out) > 1 {
		all = bytes.Join(out, nil)
	}
	if w.write(all) == nil && w.out.CanLeave() { // they did not fit into this write
		w.poke()
	}
}

// write writes to the network. If it fails, it has ended the connection.
func (w *Conn) write(b []byte) error {
	w.since.Store(int64(clock.Now().Sub(w.made)))
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

// noteLocked notes when the frames are sent, and what a quorum's answer to them will prove.
func (w *Conn) noteLocked(out [][]byte) {
	w.link.SetHalf(w.cfg.Half(w.timeout))
	for _, frame := range out {
		if xid := codec.Xid(frame); xid != codec.XidAuth { // identities keeps track of these, and the answers to them prove nothing
			w.flight.Push(w.link.Sends(xid, codec.Op(frame), clock.Now())) // each has a time of its own: see flight.answered
		}
	}
}
