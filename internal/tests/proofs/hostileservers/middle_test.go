package hostileservers

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest"
)

// middle is the man in the middle: the victim's way to the server.
type middle struct {
	dialS func(ctx context.Context, network, addr string) (net.Conn, error)

	links sync.WaitGroup // all that runs

	mu       sync.Mutex
	script   []step
	lie      *lie        // told for as long as it is there
	made     []string    // names of the victim's nodes
	waited   int         // frames the present step would have fitted, and let pass
	struck   []step      // those done
	sessions []int64     // that the server really gave to the victim
	requests []time.Time // when each request of the victim came
	fullAt   int         // at how many of them to call enough; 0: never
	enough   func()
}

// most returns how many requests came in the busiest second.
func (m *middle) most() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	most, from := 0, 0
	for i, at := range m.requests {
		for at.Sub(m.requests[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// calm ends the attack.
func (m *middle) calm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script, m.lie = nil, nil
}

func (m *middle) done() []step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.struck)
}

// gave reports whether the server gave that session to the victim.
func (m *middle) gave(session int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.sessions, session)
}

func (m *middle) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	server, err := m.dialS(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, inner := net.Pipe()
	l := &link{middle: m, client: inner, server: server, asked: make(map[int32]request)}
	m.links.Go(l.up)
	m.links.Go(l.down)
	return client, nil
}

// link is one connection of the victim.
type link struct {
	*middle
	client, server net.Conn

	askedMu sync.Mutex
	asked   map[int32]request

	again atomic.Bool // the handshake was for a session that there was

	past [][]byte // frames from the server; only down uses it
	kept []byte   // one that is to change places with the next
}

func (l *link) cut() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// up forwards the victim's frames.
func (l *link) up() {
	defer l.cut()
	for first := true; ; first = false {
		frame, err := codec.ReadFrame(slowly{l.client}, math.MaxInt32)
		if err != nil {
			return
		}
		if first && len(frame) >= 28 {
			l.again.Store(binary.BigEndian.Uint64(frame[20:]) != 0)
		} else if len(frame) >= 12 {
			r := requestOf(frame)
			l.askedMu.Lock()
			l.asked[r.xid] = r
			l.askedMu.Unlock()
			l.note()
			frame = l.divert(r, frame)
		}
		if _, err := l.server.Write(frame); err != nil {
			return
		}
	}
}

// tellLie begins a lie. enough is called when the victim sends more requests than it should.
func (m *middle) tellLie(l *lie, enough func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lie = l
	m.enough, m.fullAt = enough, len(m.requests)+lieRequests+1
}

// count returns how many requests there were.
func (m *middle) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// note counts a request.
func (m *middle) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, time.Now())
	if len(m.requests) == m.fullAt {
		m.enough()
	}
}

// down forwards the server's frames, as the attack changes them.
func (l *link) down() {
	defer l.cut()
	for first := true; ; first = false {
		frame, err := codec.ReadFrame(l.server, math.MaxInt32)
		if err != nil {
			return
		}
		if first && len(frame) >= 20 {
			l.mu.Lock()
			l.sessions = append(l.sessions, int64(binary.BigEndian.Uint64(frame[12:])))
			l.mu.Unlock()
		}
		out, more := l.strike(frame, l.kindOf(frame, first))
		if l.past = append(l.past, frame); len(l.past) > 100 {
			l.past = l.past[50:]
		}
		for _, p := range out {
			if _, err := l.client.Write(p); err != nil {
				return
			}
		}
		if !more {
			return
		}
	}
}

// strike returns the replacement of a frame, and whether the connection goes on after it.
func (l *link) strike(frame []byte, k frameKind) (out [][]byte, more bool) {
	out = l.tell(frame, k)
	if kept := l.kept; kept != nil {
		l.kept = nil
		out = append(out, kept)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.script) == 0 {
		return out, true
	}
	s := l.script[0]
	if !s.fits(k, l.again.Load()) {
		return out, true
	}
	if l.waited < s.after {
		l.waited++
		return out, true
	}
	l.script, l.waited = l.script[1:], 0
	l.struck = append(l.struck, s)
	return s.do(l, out)
}

// frameKind is the kind of a frame from the server.
type frameKind byte

const (
	anyFrame frameKind = iota
	aGreeting
	aCreated
	aListing
	aNode // the answer to a get
	anEvent
	another
	frameKinds // how many there are
)

func (l *link) kindOf(frame []byte, first bool) frameKind {
	if first {
		return aGreeting
	}
	if len(frame) < 20 {
		return another
	}
	xid := int32(word(frame, 4))
	if xid == -1 {
		return anEvent
	}
	l.askedMu.Lock()
	op := l.asked[xid].op
	l.askedMu.Unlock()
	switch op {
	case zktest.OpCreate:
		return aCreated
	case zktest.OpGetChildren2:
		return aListing
	case zktest.OpGetData:
		return aNode
	}
	return another
}

// slowly takes time for each frame, so that no two requests are sent at one instant and their answers
// have an order.
type slowly struct{ io.Reader }

func (s slowly) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	time.Sleep(time.Microsecond)
	return n, err
}

func word(b []byte, at int) uint32         { return binary.BigEndian.Uint32(b[at:]) }
func setWord(b []byte, at int, n uint32)   { binary.BigEndian.PutUint32(b[at:], n) }
func setLong(b []byte, at int, n int64)    { binary.BigEndian.PutUint64(b[at:], uint64(n)) }
func resized(b []byte) []byte              { setWord(b, 0, uint32(len(b)-4)); return b }
func appendText(b []byte, s string) []byte { return append(words(b, uint32(len(s))), s...) }
func words(b []byte, ns ...uint32) []byte {
	for _, n := range ns {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}
