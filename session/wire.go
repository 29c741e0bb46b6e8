package session

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// wireEvents is what a wire tells its session, from the goroutines of zk.Conn. The
// calls must not block.
type wireEvents interface {
	// greeted is called with the answer to a handshake that was sent at the given
	// time. An error breaks the connection off before zk.Conn sees the answer.
	greeted(g greeting, sent time.Time) error
	// confirmed is called when a request sent then was answered, with what that proves.
	confirmed(sent time.Time, p proof)
	// expired is called when the server says that the session is.
	expired()
	// sessionClosed is called when the server has confirmed closeSession.
	sessionClosed()
	// broken is called when the connection is given up for what the server sent on it.
	broken(why error)
	// watchesArmed reports whether zk.Conn will send setWatches after a handshake.
	watchesArmed() bool
	// watchesRefused is called when the server has refused setWatches.
	watchesRefused()
}

// wire lies between zk.Conn and the network: one per connection. It sees every
// frame, and keeps from zk.Conn what zk.Conn cannot handle: a frame that is not what it
// should be closes the connection, and zk.Conn makes another.
type wire struct {
	net.Conn
	events wireEvents

	handshakeLimit time.Duration // longest silence before the server's greeting
	silenceLimit   func() time.Duration

	// buf holds what was read and not yet passed on; only the reader uses it. zk.Conn
	// reads a frame's length and its body apart, which would be two system calls.
	buf     [4 << 10]byte
	pending []byte // of buf

	readUntil  time.Time // the deadline set; only the reader uses it
	writeUntil time.Time // only the writer does

	mu      sync.Mutex
	in      frames
	hello   time.Time // when the handshake was sent
	greeted bool      // the server's greeting has come
	due     due
	holding bool // requests wait for setWatches
	held    [][]byte

	identities identities // set before the first use
	present    bool       // they are to be sent
}

func newWire(c net.Conn, events wireEvents, handshake time.Duration, silence func() time.Duration) *wire {
	return &wire{
		Conn:           c,
		events:         events,
		handshakeLimit: handshake,
		silenceLimit:   silence,
	}
}

// The deadlines of zk.Conn are ten receive timeouts for the head of the greeting
// and none for its body; the wire sets its own.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// limit is how long the other side may be silent. Heartbeats see to it that a live
// server never is for long.
func (w *wire) limit() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.greeted {
		return w.handshakeLimit
	}
	return w.silenceLimit()
}

// Write sends one frame: zk.Conn writes each whole.
//
// It never fails: zk.Conn answers a request that it could not write, and then, with all
// that were under way, once more. So a failed write closes the socket and reports success:
// every failure surfaces once, to the reader, as a closed connection.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	out := w.outgoing(b)
	for _, frame := range out {
		w.note(frame, time.Now())
	}
	w.mu.Unlock()
	w.sendAll(out)
	return len(b), nil
}

// sendAll closes the connection where it fails.
func (w *wire) sendAll(out [][]byte) {
	for _, frame := range out {
		if err := w.send(frame); err != nil {
			w.Conn.Close()
			return
		}
	}
}

func (w *wire) send(frame []byte) error {
	if until, ok := extend(w.writeUntil, time.Now(), w.limit()); ok {
		if err := w.Conn.SetWriteDeadline(until); err != nil {
			return err
		}
		w.writeUntil = until
	}
	_, err := w.Conn.Write(frame)
	return err
}

// outgoing returns the frames to send now that zk.Conn sends b. The caller holds
// w.mu.
//
// After a reconnect zk.Conn tells the server which watches it had, and up to which
// transaction it has seen everything. It reads that number while replies to queued
// requests already move it on, so that the server leaves out what happened between.
// Hence requests are held back until setWatches is on its way.
func (w *wire) outgoing(b []byte) [][]byte {
	if !w.holding {
		return [][]byte{b}
	}
	switch opOf(b) {
	case opSetWatches:
		out := append([][]byte{b}, w.held...)
		w.holding, w.held = false, nil
		return out
	case opPing:
		// A ping is due a third of a timeout after the handshake, setWatches at
		// once: whatever is still to come, it is not setWatches.
		out := append(w.held, b)
		w.holding, w.held = false, nil
		return out
	}
	w.held = append(w.held, slices.Clone(b))
	return nil
}

// note keeps the send time of what is about to be sent. The caller holds w.mu.
func (w *wire) note(frame []byte, now time.Time) {
	if w.hello.IsZero() {
		w.hello = now
		return
	}
	if xid := xidOf(frame); xid != xidPing {
		w.due.add(sending{xid, opOf(frame), now})
	}
}

func xidOf(frame []byte) int32 { return int32(binary.BigEndian.Uint32(frame[4:])) }
func opOf(frame []byte) int32  { return int32(binary.BigEndian.Uint32(frame[8:])) }

// Read passes on what the server sent, after the session has been told of it.
func (w *wire) Read(b []byte) (int, error) {
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
	return n, nil // an error that came with bytes comes again without
}

// receive reads from the network and tells the session what came.
func (w *wire) receive(b []byte) (int, error) {
	if until, ok := extend(w.readUntil, time.Now(), w.limit()); ok {
		if err := w.Conn.SetReadDeadline(until); err != nil {
			return 0, err
		}
		w.readUntil = until
	}
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	bad := w.in.feed(b[:n], w.incoming)
	present := w.present
	w.present = false
	w.mu.Unlock()
	if present {
		// From the reader's side, but in nobody's way: zk.Conn begins to write when it
		// has read the greeting, which this is the end of.
		w.sendAll(w.identities.frames())
	}
	if bad != nil {
		w.events.broken(bad)
		w.Conn.Close()
		return 0, bad
	}
	return n, err
}

// extend returns a deadline at most limit from now, and whether it has to be set. One that
// has lost no more than an eighth of that stands: not every frame sets it again.
func extend(until, now time.Time, limit time.Duration) (time.Time, bool) {
	left := until.Sub(now)
	if left > limit-limit/8 && left <= limit {
		return until, false
	}
	return now.Add(limit), true
}

// incoming takes the head of one frame from the server, and returns what its body has to
// hold. The caller holds w.mu.
func (w *wire) incoming(head []byte) ([]field, error) {
	if !w.greeted {
		return nil, w.greet(head)
	}
	xid, code := replyOf(head)
	switch xid {
	case xidPing:
		return nil, nil
	case xidEvent:
		return eventBody, nil
	case xidAuth: // zk.Conn passes over it
		return nil, w.identities.answer(code)
	}
	sent, err := w.due.answered(xid)
	if err != nil {
		return nil, err
	}
	if p := proves(sent.op); p != proofNone && agreed(code) {
		w.events.confirmed(sent.at, p)
	}
	switch {
	case code == codeSessionExpired:
		w.events.expired()
	case code != 0: // zk.Conn looks no further, and takes watches for set again that are not
		if sent.op == opSetWatches {
			w.events.watchesRefused()
		}
	case sent.op == opClose:
		w.events.sessionClosed()
	default:
		return bodyOf(sent.op), nil
	}
	return nil, nil
}

// greet takes the server's greeting. The caller holds w.mu.
func (w *wire) greet(head []byte) error {
	g, err := parseGreeting(head)
	if err != nil {
		return err
	}
	w.greeted = true
	if g.session == 0 {
		w.events.expired()
		return nil // zk.Conn is to see it too
	}
	w.holding = w.events.watchesArmed()
	w.present = len(w.identities.list) > 0
	return w.events.greeted(g, w.hello)
}

// errReplaced breaks off a connection on which another session answers.
var errReplaced = errors.New("the server answered with another session")
