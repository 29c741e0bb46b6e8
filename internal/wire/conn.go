// Package wire is the connection under zk.Conn, and the only package that knows ZooKeeper's
// protocol by its numbers: kinds of request, error codes, framing and encoding.
//
// A [Conn] lies between zk.Conn and the network. Each connection has one. It
//
//   - protects zk.Conn from what it cannot handle: it closes a connection on which a malformed
//     frame comes, and zk.Conn opens another (frame.go, reply.go, flight.go),
//   - tells servers the session's last transaction id (seen.go),
//   - presents the identities of the session (identity.go),
//   - notes when each frame was sent and answered, and tells the session's [Clock] what that
//     proves (lease.go has the derivation),
//   - sends heartbeats of its own (beat.go), and the session's requests (call.go), of which it bounds those
//     in flight (window.go).
//
// Package zktest uses the numbers and the encoding too.
package wire

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a [Conn] needs to know.
type Config struct {
	Events         Events
	Clock          *Clock
	Seen           *Seen         // all connections of a session share it
	Refusals       *Refusals     // this too
	Window         *atomic.Int32 // of calls, for tests: see plumbing.Manager.SetWindow; nil means 0
	Identities     []Identity
	HandshakeLimit time.Duration                             // for the server's greeting, counted from New
	Half           func(timeout time.Duration) time.Duration // half a tick, or more: h in lease.go
}

// Conn is one connection. It implements [net.Conn] for zk.Conn, which reads with one goroutine
// and writes whole frames with another.
type Conn struct {
	net.Conn
	cfg     Config
	patient *time.Timer // closes a connection without a greeting

	// buf holds bytes that were read and not yet passed on. Only the reader uses it. zk.Conn reads
	// a frame's length and its body separately, which would be two system calls.
	buf     [4 << 10]byte
	pending []byte // of buf
	passed  int64  // how many bytes zk.Conn has got

	calls  calls
	posted chan struct{} // poked when a call waits

	// writing holds a token while frames are noted and written, so that both happen in the same
	// order. It is not a mutex, because a goroutine that waits for a mutex stops the time of
	// testing/synctest.
	writing chan struct{}

	mu        sync.Mutex // guards what follows, up to slowUntil
	in        frames
	reply     reply     // whose body is on its way
	hello     time.Time // when the handshake was sent
	greeted   time.Time // when the greeting came; zero before
	timeout   time.Duration
	flight    flight
	trail     trail
	urgent    [][]byte // sent when the greeting comes, before zk.Conn has seen it
	ids       identities
	beat      beat
	lastXid   int32     // of the requests that Conn sends itself
	lastHeard time.Time // when the head of a frame came
	lastBytes time.Time // when any bytes came
	lastSent  time.Time
	slowUntil time.Time // until then answers count as slow

	answered chan struct{} // poked when the sync of a round was answered
	closed   chan struct{}
	once     sync.Once
	why      atomic.Pointer[error] // see Err
	hungUp   atomic.Bool           // the network or the server has ended the connection, and not this side
	made     time.Time
	since    atomic.Int64 // when the running write began, counted from made; 0: there is none
}

// ErrSilent means that no greeting came in time.
var ErrSilent = errors.New("no answer to the handshake")

// New wraps a connection that has just been opened.
func New(c net.Conn, cfg Config) *Conn {
	w := &Conn{
		Conn:     c,
		cfg:      cfg,
		ids:      identities{list: cfg.Identities},
		lastXid:  firstXid,
		made:     Now().Add(-1),
		writing:  make(chan struct{}, 1),
		answered: make(chan struct{}, 1),
		posted:   make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	w.calls.fixed = cfg.Window
	w.patient = time.AfterFunc(cfg.HandshakeLimit, func() {
		w.because(ErrSilent)
		_ = w.close()
	})
	return w
}

// firstXid is where the numbers of our own requests begin to count down. The numbers of zk.Conn
// count up from 1, and zk.Conn ignores answers with negative numbers.
const firstXid = -1000

// Err returns why the connection has ended. It returns nil if the connection has not ended, or was
// closed without a reason.
func (w *Conn) Err() error {
	if why := w.why.Load(); why != nil {
		return *why
	}
	return nil
}

// because notes why the connection ends. The first reason stays, because the others follow from it.
func (w *Conn) because(why error) { w.why.CompareAndSwap(nil, &why) }

// Cut closes the connection for a reason, which Err returns from then on.
func (w *Conn) Cut(why error) {
	w.because(why)
	w.Close()
}

// Close closes the connection. With TLS that can take its time.
func (w *Conn) Close() error {
	w.patient.Stop()
	return w.close()
}

func (w *Conn) close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// The deadlines of zk.Conn are ignored. Not every dialer's connections support them. For the head
// of the greeting zk.Conn sets ten receive timeouts, and for its body none. Instead, a timer
// closes a connection without a greeting, and the session closes a silent one: see [Conn.Silence].

func (w *Conn) SetDeadline(time.Time) error      { return nil }
func (w *Conn) SetReadDeadline(time.Time) error  { return nil }
func (w *Conn) SetWriteDeadline(time.Time) error { return nil }

// Stalled reports whether the network takes no more bytes: whether a write has been running for
// longer than a write that only waits its turn.
func (w *Conn) Stalled(now time.Time) bool {
	since := w.since.Load()
	return since != 0 && now.Sub(w.made)-time.Duration(since) > stall
}

const stall = 20 * time.Millisecond

// Silence returns for how long a request has been in flight while no byte came, and while no frame began. They differ
// while a long answer is on its way. It returns 0 if nothing is in flight or there was no greeting yet.
func (w *Conn) Silence(now time.Time) (noBytes, noFrame time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest, ok := w.flight.oldest()
	if !ok || w.greeted.IsZero() {
		return 0, 0
	}
	since := func(heard time.Time) time.Duration {
		if heard.Before(oldest.at) {
			heard = oldest.at
		}
		return now.Sub(heard)
	}
	return since(w.lastBytes), since(w.lastHeard)
}

// ErrReplaced is the error for a connection on which another session answers.
var ErrReplaced = errors.New("the server answered with another session")

// Replaced returns an ErrReplaced that names the other session.
func Replaced(session int64) error { return fmt.Errorf("%w: 0x%x", ErrReplaced, uint64(session)) }
