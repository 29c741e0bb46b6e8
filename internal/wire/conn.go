// Package wire is one connection of a session: the handshake, one goroutine that writes, and the calls that wait or
// are in flight. Watches and retries are the session's, which serves a connection like this:
//
//	conn := wire.New(socket, config)
//	greeting, sent, err := conn.Greet()
//	if err == nil {
//		err = s.greeted(greeting, sent)
//	}
//	if err == nil {
//		err = conn.Open()
//	}
//	for err == nil {
//		var news wire.News
//		if news, err = conn.Next(); err == nil {
//			s.take(news) // what the news proves first, and then news.End()
//		}
//	}
//	why := conn.Close(err)
//	// the watches break
//	conn.Forsake()
package wire

import (
	"bufio"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/clock"
	"github.com/turnstile-go/turnstile/internal/codec"
)

// Config is what a [Conn] needs to know.
type Config struct {
	Hello      codec.Hello
	Seen       *atomic.Int64 // last transaction seen; keeps away servers that lag behind
	Owned      *atomic.Int64 // nodes that the session owns, or may own
	Identities []codec.Identity
	SASL       *SASL
	Host       string
	Limit      time.Duration
	Half       func(timeout time.Duration) time.Duration // half a tick or more, which never grows; called under a lock
	Clock      *clock.Clock
}

// Conn is one connection of a session. Greet, Open, Next and Close are for one goroutine, in that order. All other
// methods are safe for concurrent use.
type Conn struct {
	net      net.Conn
	cfg      Config
	in       *bufio.Reader    // the reader's, as the next five are
	body     []byte           // of short frames
	ids      []codec.Identity // not answered yet
	due      bool
	proof    proof
	patience *time.Timer

	wake    chan struct{}
	life    context.Context
	end     context.CancelCauseFunc
	writer  sync.WaitGroup
	writing []byte

	mu      sync.Mutex
	sent    time.Time
	greeted time.Time
	open    bool
	timeout time.Duration
	link    clock.Link
	beatAt  time.Time
	waiting waiting
	flight  []sending
	flying  int // calls in flight, and load: their bytes
	load    int
	number  int32
	over    bool
	heardAt time.Time
	bytesAt time.Time
}

type sending struct {
	clock.Sending
	*entry
}

// New makes a connection on a socket. Call Greet next, or Cut.
func New(c net.Conn, cfg Config) *Conn {
	w := &Conn{net: c, cfg: cfg, ids: cfg.Identities, wake: make(chan struct{}, 1)}
	w.life, w.end = context.WithCancelCause(context.Background())
	w.in = bufio.NewReaderSize(socket{w}, readBuffer)
	return w
}

// socket notes when bytes come, even in the middle of a long answer.
type socket struct{ *Conn }

func (s socket) Read(b []byte) (int, error) {
	for range emptyReads {
		n, err := s.net.Read(b)
		if n > 0 {
			s.mu.Lock()
			s.bytesAt = clock.Now()
			s.mu.Unlock()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// ErrNoSession means that the server does not know the session that was asked for.
var ErrNoSession = errors.New("the server has no such session")

// Greet asks for the session, and returns the server's answer, and when the request was sent. The error matches
// ErrNoSession if the session has expired. A timer bounds the handshake: a connection may have no deadlines.
func (w *Conn) Greet() (g codec.Greeting, sent time.Time, err error) {
	began := time.Now()
	if w.proof, err = w.cfg.SASL.begin(w.life, w.cfg.Host, w.cfg.Limit/2); err != nil {
		return g, sent, err
	}
	w.patience = time.AfterFunc(w.cfg.Limit-time.Since(began), func() { w.Cut(os.ErrDeadlineExceeded) })
	hello := w.cfg.Hello
	hello.LastZxid = w.cfg.Seen.Load()
	sent = clock.Now()
	if err := w.write(hello.Frame()); err != nil {
		return g, sent, err
	}
	frame, err := w.frame()
	if err != nil {
		return g, sent, err
	}
	g, err = codec.ParseGreeting(frame)
	w.mu.Lock()
	w.sent, w.greeted, w.timeout = sent, clock.Now(), g.Timeout()
	if asked := hello.TimeoutMillis; hello.Session != 0 && asked < g.TimeoutMillis { // the lease counts by the shortest grant
		w.timeout = time.Duration(asked) * time.Millisecond
	}
	w.mu.Unlock()
	if err == nil && g.Session == 0 {
		err = ErrNoSession
	}
	return g, sent, err
}

// Open proves by SASL who the client is, and presents the identities. From then on calls leave. A refusal by the
// server or the mechanism is a [SASLError].
func (w *Conn) Open() error {
	if err := w.proof.run(w.life, w.nextNumber, w.write, w.frame); err != nil {
		return err
	}
	if !w.patience.Stop() {
		return os.ErrDeadlineExceeded
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.beatAt = true, w.greeted.Add(clock.Aside)
	for _, id := range w.ids {
		w.waiting.addOwn(id.Frame())
	}
	if w.link.Begin(w.sent, w.greeted, w.timeout, w.cfg.Half(w.timeout), w.owns()) {
		w.waiting.addOwn(codec.AgreeFrame(w.numberLocked(), "/"))
	}
	w.writer.Go(w.writes)
	return nil
}

// Close ends the connection, waits until nothing more is written, and returns the first reason for the end.
func (w *Conn) Close(why error) error {
	if w.patience != nil {
		w.patience.Stop()
	}
	w.Cut(why)
	w.writer.Wait()
	return w.Err()
}

func (w *Conn) owns() bool { return w.cfg.Owned.Load() > 0 }

// numberLocked returns the next number of a request. Servers count only positive ones, towards a limit of their
// operator's.
func (w *Conn) numberLocked() int32 {
	w.number = w.number%math.MaxInt32 + 1
	return w.number
}

func (w *Conn) nextNumber() int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.numberLocked()
}

// CloseSession asks the server to close the session. Calls that wait are not sent any more.
func (w *Conn) CloseSession() {
	w.mu.Lock()
	if w.open {
		w.waiting.addOwn(codec.CloseFrame(w.numberLocked()))
	}
	w.mu.Unlock()
	w.stop()
	w.poke()
}

// Forsake ends the calls without an answer: those that were sent, in order, and then those that wait. Close must have
// returned.
func (w *Conn) Forsake() {
	w.mu.Lock()
	flight := w.flight
	w.flight, w.over = nil, true
	w.mu.Unlock()
	longest := -1
	for i, f := range flight {
		if n := len(f.frame); n >= longCall && (longest < 0 || n > len(flight[longest].frame)) {
			longest = i
		}
	}
	for i, f := range flight {
		why := net.ErrClosed
		if i == longest {
			why = fmt.Errorf("%w, with a request of %d bytes: %w", why, len(f.frame), ErrLongest)
		}
		ending{f.calls, Reply{Err: why}}.End()
	}
	w.stop()
}

func (w *Conn) stop() {
	w.mu.Lock()
	w.over = true
	var all []*Call
	for _, waits := range []*list.List{&w.waiting.deletes, &w.waiting.others} {
		for waits.Len() > 0 {
			e := waits.Front().Value.(*entry)
			w.waiting.take(e)
			all = append(all, e.calls...)
		}
	}
	w.mu.Unlock()
	ending{all, Reply{Err: ErrNotSent}}.End()
}

// Err returns why the connection has ended.
func (w *Conn) Err() error { return context.Cause(w.life) }

// Cut ends the connection. The first reason stays. With TLS, Cut can block for a moment.
func (w *Conn) Cut(why error) {
	w.end(why)
	_ = w.net.Close()
}

func (w *Conn) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Silence returns for how long a request has been in flight while no byte came, and while no frame began.
func (w *Conn) Silence(now time.Time) (noBytes, noFrame time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.flight) == 0 {
		return 0, 0
	}
	since := func(heard time.Time) time.Duration {
		if oldest := w.flight[0].At; heard.Before(oldest) {
			heard = oldest
		}
		return now.Sub(heard)
	}
	return since(w.bytesAt), since(w.heardAt)
}

func Replaced(session int64) error {
	return fmt.Errorf("the server answered with another session: 0x%x", uint64(session))
}

func (w *Conn) write(b []byte) error {
	n, err := w.net.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.Cut(err)
	}
	return err
}
