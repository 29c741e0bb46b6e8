package wire

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// Serve asks for the session, and serves it until the connection ends. It returns why. Both goroutines of the
// connection have ended by then, and no event follows. The calls without an answer stay for [Conn.Forsake]. Cut
// makes Serve return. Serve is called once.
func (w *Conn) Serve(h codec.Hello) error {
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

// Greeted reports whether the handshake is over.
func (w *Conn) Greeted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.greeted.IsZero()
}

// greet makes the handshake, with SASL. A server gets so much time and not more. Deadlines would do the same, and not every
// dialer's connections have them.
func (w *Conn) greet(h codec.Hello) error {
	began := time.Now()
	p, err := w.cfg.SASL.begin(w.cfg.HandshakeLimit / 2)
	if err != nil {
		return err
	}
	patience := time.AfterFunc(w.cfg.HandshakeLimit-time.Since(began), func() { w.Cut(os.ErrDeadlineExceeded) })
	defer patience.Stop()
	h.LastZxid = w.cfg.Seen.Load()
	sent := clock.Now()
	if err := w.write(h.Frame()); err != nil {
		return err
	}
	frame, err := w.frame()
	if err != nil {
		return err
	}
	g, err := codec.ParseGreeting(frame)
	if err != nil {
		return err
	}
	now := clock.Now()
	if g.Session == 0 {
		w.begin(sent, now, 0)
		w.cfg.Events.Expired()
		return ErrNoSession
	}
	if err := w.cfg.Events.Greeted(g, sent); err != nil {
		return err
	}
	if err := w.prove(p); err != nil {
		return err
	}
	patience.Stop()
	w.begin(sent, now, g.Timeout())
	w.cfg.Events.Ready()
	return nil
}

// begin takes note of the greeting, when the handshake is over. Nothing else is sent before.
func (w *Conn) begin(hello, now time.Time, timeout time.Duration) {
	owns := w.cfg.Events.Owns()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.greeted, w.timeout = now, timeout
	w.out.Begin(timeout)
	for _, id := range w.ids {
		w.urgent = append(w.urgent, id.Frame())
	}
	if w.link.Begin(hello, now, timeout, owns) {
		w.urgent = append(w.urgent, codec.AgreeFrame(w.out.Number()))
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
		if w.out.CanLeave() {
			w.poke()
		}
	}
}

// take takes one frame. Events and answers reach the session in the order of the stream. Only what was decoded is
// believed, by callers and by the clock: a malformed answer proves nothing, and its transaction could be any number.
func (w *Conn) take(frame []byte) error {
	d := codec.Decoder{Rest: frame}
	xid, zxid, code := d.Int32(), d.Int64(), d.Int32()
	switch xid {
	case codec.XidEvent:
		kind, path, err := codec.DecodeEvent(&d)
		if err == nil {
			w.cfg.Events.Fired(kind, path)
		}
		return err
	case codec.XidAuth:
		return w.ids.answer(code, w.cfg.Events)
	}
	w.mu.Lock()
	sent, err := w.flight.answered(xid, code)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	one, isCall := w.out.Find(xid)
	r := outbox.Reply{Code: code}
	if code == codec.CodeOK {
		if r.Answer, err = codec.DecodeAnswer(sent.Op, &d); err == nil && one.Check != nil {
			err = one.Check(&r.Answer)
		}
		if err != nil {
			return fmt.Errorf("%w: the answer to %s: %w", codec.ErrBadFrame, codec.OpName(sent.Op), err)
		}
	}
	if isCall && zxid > 0 { // what the answers to heartbeats show nobody has seen
		w.cfg.Seen.Store(zxid)
	}
	w.learn(sent, code, zxid, clock.Now())
	w.out.Answered(clock.Now(), xid, len(frame)-codec.ReplyHeader)
	switch {
	case code == codec.CodeSessionExpired:
		w.cfg.Events.Expired()
	case code == codec.CodeOK && sent.Op == codec.OpClose:
		w.cfg.Events.Closed()
		return net.ErrClosed
	}
	if isCall {
		one.Done(r)
	}
	return nil
}

// learn takes what an answer shows.
func (w *Conn) learn(sent clock.Sending, code int32, zxid int64, now time.Time) {
	w.mu.Lock()
	a, byLeader, agrees := w.link.Takes(sent, code, now)
	greeted := w.greeted
	w.mu.Unlock()
	if byLeader {
		w.cfg.Events.Answered(a, zxid, now.Sub(greeted))
	}
	if agrees {
		select {
		case w.answered <- struct{}{}:
		default:
		}
	}
}
