// Package wire is one connection of a session.
//
// A [Conn] begins with the handshake and ends with its socket. One goroutine reads and one writes
// ([Conn.Serve]). A Conn
//
//   - asks for the session, and tells the server the last transaction that the session has seen,
//   - presents the identities of the session (identity.go),
//   - sends the session's requests (call.go), bounds those in flight (window.go), and decides which of the
//     others leaves next (outbox.go),
//   - ends at the first frame that no server sends (reader.go, flight.go),
//   - notes when each frame was sent and answered, and tells the session what that proves (package clock),
//   - sends heartbeats (send.go).
package wire

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// Config is what a [Conn] needs to know.
type Config struct {
	Events Events
	Clock  *clock.Clock
	// Seen is the last transaction (zxid) of which the session has an answer, or 0. It is told to the server in the
	// handshake, which keeps a server away that lags behind. All connections of a session share it.
	Seen           *atomic.Int64
	Refusals       *Refusals     // this too
	Window         *atomic.Int32 // of calls, for tests: see *core.Manager.SetWindow; nil means 0
	Batches        *atomic.Int64 // counts the multis of several callers; all connections of a session share it
	Identities     []codec.Identity
	HandshakeLimit time.Duration                             // for the server's greeting, counted from Serve
	Half           func(timeout time.Duration) time.Duration // half a tick, or more: see package clock
}

// Conn is one connection of a session. All methods but Serve may be called by any number of goroutines at once.
type Conn struct {
	conn net.Conn
	cfg  Config
	in   *bufio.Reader // only the reader uses it
	body []byte        // of the present frame; only the reader uses it
	ids  identities    // only the reader uses it

	calls    calls
	posted   chan struct{} // poked when a call, or closeSession, waits
	answered chan struct{} // poked when the sync of a round was answered

	mu        sync.Mutex // guards what follows, up to lastBytes
	greeted   time.Time  // when the greeting came; zero before
	timeout   time.Duration
	flight    flight
	link      clock.Link
	urgent    [][]byte  // goes ahead of all that waits
	lastXid   int32     // of the requests that Conn sends itself
	lastHeard time.Time // when a frame began to come
	lastBytes time.Time // when any bytes came

	closed chan struct{}
	once   sync.Once
	why    atomic.Pointer[error] // see Err
	hungUp atomic.Bool           // the network or the server has ended the connection, and not this side
	made   time.Time
	since  atomic.Int64 // when the running write began, counted from made; 0: there is none
}

// ErrSilent means that no greeting came in time. It is a timeout, like those of package net.
var ErrSilent error = silence{}

type silence struct{}

func (silence) Error() string { return "no answer to the handshake" }
func (silence) Timeout() bool { return true }

// readBuffer is how much is read at a time, of frames that are shorter. Longer ones are read at once.
const readBuffer = 4 << 10

// New makes a connection of a session on a socket that has just been opened. Call Serve next, or Cut.
func New(c net.Conn, cfg Config) *Conn {
	w := &Conn{
		conn:     c,
		cfg:      cfg,
		ids:      identities{list: cfg.Identities},
		lastXid:  firstXid,
		made:     clock.Now().Add(-1),
		answered: make(chan struct{}, 1),
		posted:   make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	w.in = bufio.NewReaderSize((*socket)(w), readBuffer)
	w.calls.fixed, w.calls.batches = cfg.Window, cfg.Batches
	return w
}

// firstXid is where the numbers of a connection's own requests begin to count down. The numbers of calls that
// servers count begin at 1 and count up. Numbers just below zero have meanings of their own.
const firstXid = -1000

// Err returns why the connection has ended, or nil if it has not.
func (w *Conn) Err() error {
	if why := w.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Cut ends the connection for a reason, which Err returns from then on. The first reason stays, because the others
// follow from it. With TLS that can take its time.
func (w *Conn) Cut(why error) {
	w.why.CompareAndSwap(nil, &why)
	w.once.Do(func() { close(w.closed) })
	_ = w.conn.Close()
}

// lose ends the connection for an error of the network. If this side has closed the connection, the error only follows
// from that.
func (w *Conn) lose(err error) {
	select {
	case <-w.closed:
	default:
		w.hungUp.Store(true)
	}
	w.Cut(err)
}

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
		if heard.Before(oldest.At) {
			heard = oldest.At
		}
		return now.Sub(heard)
	}
	return since(w.lastBytes), since(w.lastHeard)
}

// ErrReplaced is the error for a connection on which another session answers.
var ErrReplaced = errors.New("the server answered with another session")

// Replaced returns an ErrReplaced that names the other session.
func Replaced(session int64) error { return fmt.Errorf("%w: 0x%x", ErrReplaced, uint64(session)) }
