package simulation

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
)

type dialed = net.Conn

// way is the holder's way to its server: every frame takes a while, and each direction can be
// closed. Frames that are sent into a closed direction arrive when it is opened.
type way struct {
	delay time.Duration

	mu      sync.Mutex
	dialTo  func(context.Context, string, string) (dialed, error)
	shut    [2]bool // to the server, to the client
	changed chan struct{}
	conns   map[net.Conn]struct{}

	carriers sync.WaitGroup
}

func newWay(dial func(context.Context, string, string) (dialed, error), delay time.Duration) *way {
	return &way{delay: delay, dialTo: dial, changed: make(chan struct{}), conns: make(map[net.Conn]struct{})}
}

func (w *way) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// to sends further connections to another server.
func (w *way) to(dial func(context.Context, string, string) (dialed, error)) {
	w.change(func() { w.dialTo = dial })
}

func (w *way) close(toServer, toClient bool) {
	w.change(func() { w.shut = [2]bool{toServer, toClient} })
}
func (w *way) open() { w.close(false, false) }

// cut closes all connections.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
}

// end cuts all connections, and returns when no frame is under way.
func (w *way) end() {
	w.open()
	w.cut()
	w.carriers.Wait()
}

func (w *way) dial(ctx context.Context, network, addr string) (dialed, error) {
	w.mu.Lock()
	dial := w.dialTo
	w.mu.Unlock()
	server, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, inner := net.Pipe()
	w.mu.Lock()
	w.conns[inner] = struct{}{}
	w.mu.Unlock()
	w.carriers.Go(func() { w.carry(0, inner, server) })
	w.carriers.Go(func() { w.carry(1, server, inner) })
	return client, nil
}

// late is a frame and when it was sent; without a frame, the end.
type late struct {
	frame []byte
	at    time.Time
}

// carry passes frames on, until either end closes.
func (w *way) carry(dir int, from, to net.Conn) {
	frames := make(chan late, 10_000)
	go func() {
		defer close(frames)
		for {
			frame, err := wire.ReadFrame(from, wire.MaxFrame)
			if err != nil {
				return
			}
			frames <- late{frame, time.Now()}
		}
	}()
	for f := range frames {
		time.Sleep(time.Until(f.at.Add(w.delay)))
		w.pass(dir)
		if _, err := to.Write(f.frame); err != nil {
			break
		}
	}
	from.Close()
	to.Close()
	for range frames { // until the reader has seen that
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, from)
	delete(w.conns, to)
}

// pass waits until the direction is open.
func (w *way) pass(dir int) {
	for {
		w.mu.Lock()
		shut, changed := w.shut[dir], w.changed
		w.mu.Unlock()
		if !shut {
			return
		}
		<-changed
	}
}
