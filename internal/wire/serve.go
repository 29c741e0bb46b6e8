package wire

import (
	"net"
	"sync"
	"time"
)

// Serve asks for the session, and serves it until the connection ends. It returns why. Both goroutines of the
// connection have ended by then, and no event follows. The calls without an answer stay for [Conn.Forsake]. Cut
// makes Serve return. Serve is called once.
func (w *Conn) Serve(h Hello) error {
	var writer sync.WaitGroup
	if err := w.greet(h); err != nil {
		w.Cut(err)
	} else {
		writer.Go(w.sends)
		w.Cut(w.reads())
	}
	writer.Wait()
	return w.Err()
}

// Greeted reports whether the server has greeted.
func (w *Conn) Greeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.greeted.IsZero()
}

// greet makes the handshake. A server gets so much time and not more. Deadlines would do the same, and not every
// dialer's connections have them.
func (w *Conn) greet(h Hello) error {
	patience := time.AfterFunc(w.cfg.HandshakeLimit, func() { w.Cut(ErrSilent) })
	defer patience.Stop()
	h.LastZxid = w.cfg.Seen.Last()
	sent := Now()
	w.mu.Lock()
	w.hello, w.lastSent = sent, sent
	w.mu.Unlock()
	if err := w.write(sent, h.Frame()); err != nil {
		return err
	}
	frame, err := w.frame()
	if err != nil {
		return err
	}
	g, err := parseGreeting(frame)
	if err != nil {
		return err
	}
	patience.Stop()
	now := Now()
	if g.Session == 0 {
		w.begin(now, 0)
		w.cfg.Events.Expired()
		return ErrNoSession
	}
	w.begin(now, g.Timeout())
	if err := w.cfg.Events.Greeted(g, sent); err != nil {
		return err
	}
	return nil
}

// begin takes note of the greeting. Nothing else is sent before.
func (w *Conn) begin(now time.Time, timeout time.Duration) {
	owns := w.cfg.Events.Owns()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.greeted, w.timeout = now, timeout
	w.calls.begin(timeout)
	w.trail.begin(w.hello, now, timeout)
	w.urgent = w.ids.frames()
	if w.beat.begin(now, timeout, owns) {
		w.urgent = append(w.urgent, agreeFrame(w.xidLocked()))
	}
}

// reads takes one frame after the other, until the connection ends.
func (w *Conn) reads() error {
	for {
		frame, err := w.frame()
		if err == nil {
			err = w.take(frame)
		}
		if err != nil {
			return err
		}
		if w.calls.canLeave() {
			w.poke()
		}
	}
}

// take takes one frame. Events and answers reach the session in the order of the stream. Only what was decoded is
// believed, by callers and by the clock: a malformed answer proves nothing, and its transaction could be any number.
func (w *Conn) take(frame []byte) error {
	d := Decoder{Rest: frame}
	xid, zxid, code := d.Int32(), d.Int64(), d.Int32()
	switch xid {
	case XidEvent:
		kind, path, err := decodeEvent(&d)
		if err == nil {
			w.cfg.Events.Fired(kind, path)
		}
		return err
	case XidAuth:
		return w.ids.answer(code, w.cfg.Events)
	}
	w.mu.Lock()
	sent, err := w.flight.answered(xid, code)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	one := w.calls.find(xid)
	r := Reply{Code: code}
	if code == CodeOK {
		if r.Answer, err = decodeAnswer(sent.op, &d); err == nil {
			err = one.check(&r.Answer)
		}
		if err != nil {
			return badAnswer(sent.op, err)
		}
	}
	if one.number > 0 {
		w.cfg.Seen.answered(zxid)
	}
	w.learn(sent, code, zxid, Now())
	w.calls.answered(Now(), xid, len(frame)-replyHeader)
	w.cfg.Refusals.answered(one.size)
	switch {
	case code == CodeSessionExpired:
		w.cfg.Events.Expired()
	case code == CodeOK && sent.op == OpClose:
		w.cfg.Events.Closed()
		return net.ErrClosed
	}
	one.done(r)
	return nil
}

// learn takes what an answer shows.
func (w *Conn) learn(sent sending, code int32, zxid int64, now time.Time) {
	w.mu.Lock()
	if now.Sub(sent.at) > w.timeout/slowPerTimeout {
		w.slowUntil = now.Add(w.timeout)
	}
	e := w.trail.takes(sent, code, now)
	agrees := w.beat.answered(sent.xid, e != evidenceNone, now)
	greeted := w.greeted
	w.mu.Unlock()
	if e != evidenceNone {
		w.cfg.Events.Answered(Answered{
			Sent: sent.at, Zxid: zxid, Quorum: e == evidenceQuorum, Touched: sent.proof, Since: now.Sub(greeted),
		})
	}
	if agrees {
		select {
		case w.answered <- struct{}{}:
		default:
		}
	}
}
