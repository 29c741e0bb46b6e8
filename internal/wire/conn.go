// Package wire is the connection under zk.Conn, and the one place that knows ZooKeeper's
// protocol by its numbers: kinds of request, error codes, framing and encoding.
//
// A [Conn] lies between zk.Conn and the network, one per connection. It
//
//   - keeps from zk.Conn what zk.Conn cannot handle: a frame that is not what it should be
//     closes the connection, and zk.Conn makes another (frame.go, reply.go, flight.go),
//   - presents the identities of the session (identity.go),
//   - notes when each frame was sent and answered, and tells the session's [Clock] what that
//     proves (lease.go has the derivation),
//   - sends heartbeats of its own (beat.go).
//
// Package zktest takes the numbers and the encoding from here as well.
package wire

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Events is what a [Conn] tells its session, from the goroutines of zk.Conn, and asks it. The
// calls must not block.
type Events interface {
	// Greeted is called with the answer to a handshake that was sent at the given time. An
	// error breaks the connection off before zk.Conn sees the answer. Session 0 says that
	// the session has expired.
	Greeted(g Greeting, sent time.Time) error
	// Accepted is called when the server has taken all identities.
	Accepted()
	// Refused is called when the server has refused an identity, with its scheme.
	Refused(scheme string)
	// Answered is called when a request that went through the leader was answered.
	Answered(a Answer)
	// Expired is called when the server says that the session is.
	Expired()
	// Closed is called when the server has confirmed closeSession.
	Closed()
	// Broken is called when the connection is given up for what the server sent on it, or
	// for its silence.
	Broken(why error)
	// WatchesArmed reports whether zk.Conn will send setWatches after a handshake.
	WatchesArmed() bool
	// WatchesRefused is called when the server has refused setWatches.
	WatchesRefused()
	// Owns reports whether the session has nodes, or may have.
	Owns() bool
	// Go runs a function in a goroutine of the session, if that has not ended.
	Go(f func())
}

// Answer is what the answer to a request through the leader proves.
type Answer struct {
	Sent time.Time // when the request was sent
	Zxid int64     // the transaction that the answer names
	// Quorum says that a quorum agreed. The leader had touched the session at Touched or
	// later.
	Quorum  bool
	Touched time.Time
	// Since is how long this connection had been greeted.
	Since time.Duration
}

// Config is what a [Conn] needs to know.
type Config struct {
	Events         Events
	Clock          *Clock
	Identities     []Identity
	HandshakeLimit time.Duration                             // for the server's greeting, from the making of the Conn on
	Half           func(timeout time.Duration) time.Duration // half a tick, as far as known: h in lease.go
}

// Conn is one connection. It implements [net.Conn] for zk.Conn, which reads with one
// goroutine and writes whole frames with another.
type Conn struct {
	net.Conn
	cfg     Config
	patient *time.Timer // closes a connection without a greeting

	// buf holds what was read and not yet passed on; only the reader uses it. zk.Conn
	// reads a frame's length and its body apart, which would be two system calls.
	buf     [4 << 10]byte
	pending []byte // of buf

	// writing has a token while frames are noted and written, so that their order is the same. It is
	// not a mutex: a goroutine that waits for a mutex stops the time of testing/synctest.
	writing chan struct{}

	mu        sync.Mutex
	in        frames
	hello     time.Time // when the handshake was sent
	greeted   time.Time // when the greeting came; zero before
	timeout   time.Duration
	flight    flight
	trail     trail
	holding   bool // requests wait for setWatches
	held      [][]byte
	urgent    [][]byte // to be sent behind the greeting, before zk.Conn has seen it
	ids       identities
	beat      beat
	lastXid   int32 // of our own requests
	lastHeard time.Time
	lastSent  time.Time
	slowUntil time.Time // answers have taken long lately

	answered chan struct{} // poked when one of our own requests was answered
	closed   chan struct{}
	once     sync.Once
	silent   atomic.Bool // the server did not greet in time
	made     time.Time
	since    atomic.Int64 // when the write under way began, after made; 0: none is
}

// ErrSilent says that no greeting came in time.
var ErrSilent = errors.New("no answer to the handshake")

// New wraps a connection that has just been made.
func New(c net.Conn, cfg Config) *Conn {
	w := &Conn{
		Conn:     c,
		cfg:      cfg,
		ids:      identities{list: cfg.Identities},
		lastXid:  firstXid,
		made:     Now().Add(-1),
		writing:  make(chan struct{}, 1),
		answered: make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	w.patient = time.AfterFunc(cfg.HandshakeLimit, func() {
		w.silent.Store(true)
		w.close()
	})
	return w
}

// firstXid is where our own requests begin to count down. zk.Conn's count up from 1, and
// zk.Conn passes over answers with negative numbers.
const firstXid = -1000

// Close closes the connection. With TLS that can take its time.
func (w *Conn) Close() error {
	w.patient.Stop()
	return w.close()
}

func (w *Conn) close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// Deadlines are not used: not every dialer's connections have them, and zk.Conn's are ten
// receive timeouts for the head of the greeting and none for its body. A connection without a
// greeting is closed by a timer, a silent one by the session: see [Conn.Silence].

func (w *Conn) SetDeadline(time.Time) error      { return nil }
func (w *Conn) SetReadDeadline(time.Time) error  { return nil }
func (w *Conn) SetWriteDeadline(time.Time) error { return nil }

// Write sends one frame: zk.Conn writes each whole.
//
// It never fails: zk.Conn answers a request that it could not write, and then, with all
// that were under way, once more. So a failed write closes the socket and reports success:
// every failure surfaces once, to the reader, as a closed connection.
func (w *Conn) Write(b []byte) (int, error) {
	w.sendAll(func() [][]byte { return w.outgoing(b) })
	return len(b), nil
}

// sendAll sends the frames that f returns, which is called with w.mu held. It closes the
// connection where it fails.
func (w *Conn) sendAll(f func() [][]byte) {
	select {
	case w.writing <- struct{}{}:
	case <-w.closed:
		return
	}
	defer func() { <-w.writing }()
	w.mu.Lock()
	out := f()
	w.noteLocked(out)
	w.mu.Unlock()
	if len(out) == 0 {
		return
	}
	w.since.Store(int64(w.lastSent.Sub(w.made))) // only the goroutine with the token writes lastSent
	defer w.since.Store(0)
	for _, frame := range out {
		if _, err := w.Conn.Write(frame); err != nil {
			w.Close()
			return
		}
	}
}

// outgoing returns the frames to send now that zk.Conn sends b. The caller holds w.mu.
//
// After a reconnect zk.Conn tells the server which watches it had, and up to which
// transaction it has seen everything. It reads that number while replies to queued
// requests already move it on, so that the server leaves out what happened between.
// Hence requests are held back until setWatches is on its way.
func (w *Conn) outgoing(b []byte) [][]byte {
	if !w.holding {
		if opOf(b) == OpPing && w.beat.busy {
			return nil
		}
		return [][]byte{b}
	}
	switch opOf(b) {
	case OpSetWatches:
		out := append([][]byte{b}, w.held...)
		w.holding, w.held = false, nil
		return out
	case OpPing:
		// A ping is due a third of a timeout after the handshake, setWatches at
		// once: whatever is still to come, it is not setWatches.
		out := append(w.held, b)
		w.holding, w.held = false, nil
		return out
	}
	w.held = append(w.held, slices.Clone(b))
	return nil
}

// noteLocked keeps the send time of what is about to be sent, and what a quorum's answer to
// it will prove.
func (w *Conn) noteLocked(out [][]byte) {
	if len(out) == 0 {
		return
	}
	now := Now()
	w.lastSent = now
	if w.hello.IsZero() {
		w.hello = now
		return
	}
	w.trail.half = w.cfg.Half(w.timeout)
	for _, frame := range out {
		xid, op := xidOf(frame), opOf(frame)
		if xid == XidAuth {
			continue // identities has its own order, and its answers touch nothing
		}
		s := sending{xid: xid, op: op, at: now}
		if shows(op, CodeOK) == evidenceQuorum {
			s.proof = w.trail.proof(now)
		}
		w.flight.add(s)
	}
}

// Read passes on what the server sent, after the session has been told of it.
func (w *Conn) Read(b []byte) (int, error) {
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
func (w *Conn) receive(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	bad := w.in.feed(b[:n], w.incoming)
	urgent := len(w.urgent) > 0
	w.mu.Unlock()
	if urgent {
		// From the reader's side, but in nobody's way: zk.Conn begins to write when it has
		// read the greeting, which this is the end of.
		w.sendAll(w.takeUrgent)
	}
	if bad == nil && err != nil && w.silent.Load() {
		err = ErrSilent
		w.cfg.Events.Broken(err)
	}
	if bad != nil {
		w.cfg.Events.Broken(bad)
		w.Close()
		return 0, bad
	}
	return n, err
}

// takeUrgent is called with w.mu held.
func (w *Conn) takeUrgent() [][]byte {
	out := w.urgent
	w.urgent = nil
	return out
}

// incoming takes the head of one frame from the server, and returns what its body has to
// hold. The caller holds w.mu.
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
	case XidAuth: // zk.Conn passes over it
		return nil, w.ids.answer(code, w.cfg.Events)
	}
	sent, err := w.flight.answered(xid, code)
	if err != nil {
		return nil, err
	}
	w.learn(sent, code, zxidOf(head), now)
	switch {
	case code == CodeSessionExpired:
		w.cfg.Events.Expired()
	case code != CodeOK: // zk.Conn looks no further, and takes watches for set again that are not
		if sent.op == OpSetWatches {
			w.cfg.Events.WatchesRefused()
		}
	case sent.op == OpClose:
		w.cfg.Events.Closed()
	default:
		return bodyOf(sent.op), nil
	}
	return nil, nil
}

// learn takes what an answer shows. The caller holds w.mu.
func (w *Conn) learn(sent sending, code int32, zxid int64, now time.Time) {
	if now.Sub(sent.at) > w.timeout/slowPerTimeout {
		w.slowUntil = now.Add(w.timeout)
	}
	w.trail.frames.add(sent.at, now)
	e := shows(sent.op, code)
	if w.beat.answered(sent.xid, e != evidenceNone, now) {
		select {
		case w.answered <- struct{}{}:
		default:
		}
	}
	if e == evidenceNone {
		return
	}
	w.trail.through.add(sent.at, now)
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
		return nil // zk.Conn is to see it too
	}
	if err := w.cfg.Events.Greeted(g, w.hello); err != nil {
		return err
	}
	w.timeout = g.Timeout()
	w.trail.begin(w.hello, now, w.timeout)
	w.holding = w.cfg.Events.WatchesArmed()
	w.urgent = w.ids.frames()
	if w.beat.begin(now, w.timeout, w.cfg.Events.Owns()) {
		w.urgent = append(w.urgent, agreeFrame(w.xidLocked()))
	}
	w.cfg.Events.Go(w.beats)
	return nil
}

// xidLocked returns a number for a request of ours.
func (w *Conn) xidLocked() int32 {
	w.lastXid--
	return w.lastXid
}

// Stalled reports whether the network takes no more bytes: a write has been under way for
// longer than any takes that only has to wait its turn.
func (w *Conn) Stalled(now time.Time) bool {
	since := w.since.Load()
	return since != 0 && now.Sub(w.made)-time.Duration(since) > stall
}

const stall = 20 * time.Millisecond

// Silence returns for how long something has been in flight while nothing was heard; 0
// where nothing is in flight or there was no greeting yet.
func (w *Conn) Silence(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest, ok := w.flight.oldest()
	if !ok || w.greeted.IsZero() {
		return 0
	}
	from := oldest.at
	if w.lastHeard.After(from) {
		from = w.lastHeard
	}
	return now.Sub(from)
}

// ErrReplaced breaks off a connection on which another session answers.
var ErrReplaced = errors.New("the server answered with another session")

// Replaced says which session answered.
func Replaced(session int64) error { return fmt.Errorf("%w: 0x%x", ErrReplaced, uint64(session)) }
