package wire

import (
	"errors"
	"time"
)

// Read passes on what the server sent, after the session has been told of it. The answers to calls count
// when zk.Conn reads on behind them: see call.go.
func (w *Conn) Read(b []byte) (int, error) {
	w.calls.deliver(w.passed)
	n, err := w.read(b)
	w.passed += int64(n)
	return n, err
}

func (w *Conn) read(b []byte) (int, error) {
	if len(w.pending) > 0 {
		n := copy(b, w.pending)
		w.pending = w.pending[n:]
		return n, nil
	}
	into := b
	if len(b) < len(w.buf) {
		into = w.buf[:]
	}
	n, err := w.receive(into)
	if n == 0 {
		return 0, err
	}
	if len(b) < len(w.buf) {
		w.pending = w.buf[:n]
		n = copy(b, w.pending)
		w.pending = w.pending[n:]
	}
	return n, nil // an error that came with the bytes comes again in the next call
}

// receive reads from the network and tells the session what came.
func (w *Conn) receive(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	if n > 0 {
		w.lastBytes = Now()
	}
	bad := w.in.feed(b[:n], w.incoming, w.whole)
	if bad != nil {
		bad = w.explainLocked(bad)
	}
	urgent, greeted := len(w.urgent) > 0, !w.greeted.IsZero()
	w.mu.Unlock()
	if urgent {
		// The reader may write here, since this is little: the calls that wait go later.
		w.sendAll(w.takeUrgent, nil)
	}
	if w.calls.canLeave() {
		w.poke()
	}
	if bad != nil {
		w.Cut(bad)
		w.cfg.Events.Broken(bad)
		return 0, bad
	}
	if err != nil {
		if why := w.ended(err); why != nil && !greeted {
			w.cfg.Events.Broken(why)
			return n, why
		}
		// Not only because zk.Conn would close it now: zk.Conn waits for a write first, which takes until the
		// session is short of time if the peer takes no more bytes.
		_ = w.close()
	}
	return n, err
}

// explainLocked returns why a malformed frame ends the connection. If it is an answer that is too long for this client,
// it ends the call. A server answers in order, so it is the answer to the oldest request in flight, if that is a read.
func (w *Conn) explainLocked(bad error) error {
	var n badLength
	if !errors.As(bad, &n) || n <= MaxFrame {
		return bad
	}
	oldest, ok := w.flight.oldest()
	if !ok || oldest.op != OpGetChildren2 && oldest.op != OpGetData {
		return bad
	}
	why := longAnswer(n)
	w.calls.answer(Now(), oldest.xid, w.in.at, Reply{Err: why})
	return why
}

// ended takes an error of the network, and returns why the connection has ended. If it was closed
// on this side, the network's error only follows from that.
func (w *Conn) ended(err error) error {
	select {
	case <-w.closed:
	default:
		w.hungUp.Store(true)
		w.because(err)
	}
	return w.Err()
}

// takeUrgent returns the urgent frames. The caller holds w.mu.
func (w *Conn) takeUrgent() [][]byte {
	out := w.urgent
	w.urgent = nil
	return out
}

// incoming takes the head of one frame from the server, and returns what its body must consist
// of. The caller holds w.mu.
func (w *Conn) incoming(head []byte) ([]field, error) {
	now := Now()
	w.lastHeard = now
	if w.greeted.IsZero() {
		return nil, w.greet(head, now)
	}
	xid, code := replyOf(head)
	switch xid {
	case XidEvent:
		return eventBody, nil
	case XidAuth: // zk.Conn ignores it
		return nil, w.ids.answer(code, w.cfg.Events)
	}
	sent, err := w.flight.answered(xid, code)
	if err != nil {
		return nil, err
	}
	called := w.calls.has(xid)
	w.reply = reply{sent, code, zxidOf(head), called}
	w.in.keep = called && code == CodeOK
	if code != CodeOK {
		return nil, nil
	}
	return bodyOf(sent.op), nil
}

// reply is the answer to a request.
type reply struct {
	sent   sending
	code   int32
	zxid   int64
	called bool // by Call
}

// whole is called at the end of a well-formed frame. Only now do we believe what its head said: a
// malformed answer proves nothing, and its transaction could be any number. The caller holds w.mu.
func (w *Conn) whole() {
	r, body := w.reply, w.in.taken()
	w.reply = reply{}
	if r.sent.at.IsZero() {
		return // no answer to a request
	}
	if r.called || r.sent.xid >= 0 {
		w.cfg.Seen.answered(r.zxid)
	}
	w.learn(r.sent, r.code, r.zxid, Now())
	if r.called {
		size := w.calls.answer(Now(), r.sent.xid, w.in.at, Reply{Code: r.code, Body: Decoder{Rest: body}})
		w.cfg.Refusals.answered(size)
	}
	switch {
	case r.code == CodeSessionExpired:
		w.cfg.Events.Expired()
	case r.code == CodeOK && r.sent.op == OpClose:
		w.cfg.Events.Closed()
	}
}

// learn takes what an answer shows. The caller holds w.mu.
func (w *Conn) learn(sent sending, code int32, zxid int64, now time.Time) {
	if now.Sub(sent.at) > w.timeout/slowPerTimeout {
		w.slowUntil = now.Add(w.timeout)
	}
	e := shows(sent.op, code)
	w.trail.answered(sent.at, now, e != evidenceNone)
	if w.beat.answered(sent.xid, e != evidenceNone, now) {
		select {
		case w.answered <- struct{}{}:
		default:
		}
	}
	if e == evidenceNone {
		return
	}
	w.cfg.Events.Answered(Answer{
		Sent: sent.at, Zxid: zxid, Quorum: e == evidenceQuorum, Touched: sent.proof, Since: now.Sub(w.greeted),
	})
}

// greet takes the server's greeting. The caller holds w.mu.
func (w *Conn) greet(head []byte, now time.Time) error {
	g, err := parseGreeting(head)
	if err != nil {
		return err
	}
	w.patient.Stop()
	w.greeted = now
	if g.Session == 0 {
		w.cfg.Events.Expired()
		return nil // zk.Conn must see it too
	}
	if err := w.cfg.Events.Greeted(g, w.hello); err != nil {
		return err
	}
	w.timeout = g.Timeout()
	w.calls.begin(w.timeout)
	w.trail.begin(w.hello, now, w.timeout)
	w.urgent = w.ids.frames()
	if w.beat.begin(now, w.timeout, w.cfg.Events.Owns()) {
		w.urgent = append(w.urgent, agreeFrame(w.xidLocked()))
	}
	w.cfg.Events.Go(w.sends)
	return nil
}
