// Package wire is one connection of a session.
//
// A [Conn] begins with the handshake and ends with its socket. One goroutine reads and one writes
// ([Conn.Serve]). A Conn
//
//   - asks for the session, and tells the server the last transaction that the session has seen,
//   - proves who the client is by SASL, before anything else is sent (sasl.go),
//   - presents the identities of the session (identity.go),
//   - sends the session's requests, as package outbox lets them out,
//   - ends at the first frame that no server sends (reader.go, flight.go),
//   - notes when each frame was sent and answered, and tells the session what that proves (package clock),
//   - sends heartbeats (send.go).
package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/outbox"
)

// Config is what a [Conn] needs to know.
type Config struct {
	Events Events
	Clock  *clock.Clock
	// Seen is the last transaction (zxid) of which the session has an answer, or 0. It is told to the server in the
	// handshake, which keeps a server away that lags behind. All connections of a session share it.
	Seen           *atomic.Int64
	Outbox         outbox.Config
	Identities     []codec.Identity
	SASL           *SASL                                     // nil: none
	HandshakeLimit time.Duration                             // for the server's greeting and SASL, counted from Serve
	Half           func(timeout time.Duration) time.Duration // half a tick, or more: see package clock
}

// Conn is one connection of a session. All methods but Serve may be called by any number of goroutines at once.
type Conn struct {
	conn net.Conn
	cfg  Config
	in   *bufio.Reader // only the reader uses it
	body []byte        // of the present frame; only the reader uses it
	ids  identities    // whose answers are due; only the reader uses it

	out      *outbox.Outbox
	posted   chan struct{} // poked when a call, or closeSession, waits
	answered chan struct{} // poked when the sync of a round was answered

	mu        sync.Mutex // guards what follows, up to lastBytes
	greeted   time.Time  // when the greeting came; zero before
	timeout   time.Duration
	flight    flight
	link      clock.Link
	urgent    [][]byte  // goes ahead of all that waits
	lastHeard time.Time // when a frame began to come
	lastBytes time.Time // when any bytes came

	closed chan struct{}
	once   sync.Once
	why    atomic.Pointer[error] // see Err
	hungUp atomic.Bool           // the network or the server has ended the connection, and not this side
	made   time.Time
	since  atomic.Int64 // when the running write began, counted from made; 0: there is none
}

// readBuffer is how much is read at a time, of frames that are shorter. Longer ones are read at once.
const readBuffer = 4 << 10

// New makes a connection of a session on a socket that has just been opened. Call Serve next, or Cut.
func New(c net.Conn, cfg Config) *Conn {
	w := &Conn{
		conn:     c,
		cfg:      cfg,
		ids:      cfg.Identities,
		out:      outbox.New(cfg.Outbox),
		made:     clock.Now().Add(-1),
		answered: make(chan struct{}, 1),
		posted:   make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	w.in = bufio.NewReaderSize((*socket)(w), readBuffer)
	return w
}

// socket is what a Conn reads from. It notes when bytes come, also in the middle of a long answer.
type socket Conn

func (s *socket) Read(b []byte) (int, error) {
	for range emptyReads {
		n, err := s.conn.Read(b)
		if n > 0 {
			s.mu.Lock()
			s.lastBytes = clock.Now()
			s.mu.Unlock()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// emptyReads is after how many reads in a row without bytes and without an error a connection is given up, as in package
// bufio. Not every dialer's connections follow the rules.
const emptyReads = 100

// Call sends a request when the outbox lets it out. It does not block. A request that comes before the greeting waits
// for it. Requests leave in the order in which they come, as long as none has to wait for room.
func (w *Conn) Call(c outbox.Call) {
	if !w.out.Post(c) {
		c.Done(outbox.Reply{Err: outbox.ErrNotSent})
		return
	}
	w.poke()
}

// CloseSession asks the server to close the session. What waits is not sent any more. Events.Closed tells the answer, after
// which the server ends the connection.
func (w *Conn) CloseSession() {
	w.mu.Lock()
	if !w.greeted.IsZero() {
		w.urgent = append(w.urgent, codec.CloseFrame(w.out.Number()))
	}
	w.mu.Unlock()
	w.out.Stop()
	w.poke()
}

// poke wakes the goroutine that writes.
func (w *Conn) poke() {
	select {
	case w.posted <- struct{}{}:
	default:
	}
}

// Forsake ends the calls that have no answer. Further calls fail at once. It must be called when Serve has returned, or
// will not be called.
func (w *Conn) Forsake() { w.out.Forsake(w.hungUp.Load()) }

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
