package zktest

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/wire"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

var errHungUp = errors.New("zktest: the server has closed the connection")

// A peer is the in-process server's end of one client's connection. The link in
// front of it, where faults happen, uses it as its upstream.
type peer struct {
	st      *state
	at      *member // the server it is connected to
	ordinal int64
	addr    string // of the client
	out     *queue
	closing sync.Once
	closed  chan struct{} // the link has closed it
	hungUp  chan struct{} // the server has

	// What follows is the run loop's.
	gone    bool     // hungUp is closed
	joining bool     // between the two frames of the handshake
	ready   bool     // and after it
	early   [][]byte // what came while joining; nil: the end
	session int64
	timeout time.Duration
	seen    int64    // the latest transaction that the client knew when it connected
	old     bool     // a client before 3.4
	view    *replica // nil until ready
	ids     []znode.Identity

	since          time.Time
	received, sent int64
	last           lastRequest
}

// lastRequest is for the four-letter word cons.
type lastRequest struct {
	op   int32
	xid  int32
	zxid int64
	at   time.Time
}

var _ upstream = (*peer)(nil)

func newPeer(at *member, ordinal int64, addr string) *peer {
	return &peer{
		st:      at.st,
		at:      at,
		ordinal: ordinal,
		addr:    addr,
		out:     newQueue(),
		closed:  make(chan struct{}),
		hungUp:  make(chan struct{}),
		ids:     []znode.Identity{{Scheme: "ip", ID: addr}},
		since:   time.Now(),
	}
}

// input is a frame from a client, or without one the end of them.
type input struct {
	from  *peer
	frame []byte
}

// Write hands the run loop a frame.
func (p *peer) Write(frame []byte) (int, error) {
	select {
	case p.st.inbox <- input{p, frame}:
		return len(frame), nil
	case <-p.hungUp:
		return 0, errHungUp
	case <-p.closed:
		return 0, net.ErrClosed
	case <-p.st.done:
		return 0, errServerClosed
	}
}

// CloseWrite has the run loop drop the connection, once it is through with the
// frames before.
func (p *peer) CloseWrite() error {
	_, err := p.Write(nil)
	return err
}

// Close drops the connection now; the run loop knows of it when Close returns.
func (p *peer) Close() error {
	p.closing.Do(func() {
		close(p.closed)
		select {
		case p.st.inbox <- input{from: p}:
		case <-p.hungUp:
		case <-p.st.done:
		}
	})
	return nil
}

// ReadFrame returns the next frame for the client, once there is one.
func (p *peer) ReadFrame() ([]byte, error) {
	it, ok := p.out.pop(p.closed)
	if !ok || it.frame == nil {
		return nil, io.EOF
	}
	return it.frame, nil
}

// receive processes a frame, or the end of the client's frames.
func (p *peer) receive(frame []byte) {
	switch {
	case p.gone:
	case p.joining:
		p.early = append(p.early, frame)
	case frame == nil:
		p.st.hangUp(p)
	case !p.ready:
		p.at.connect(p, frame)
	default:
		p.at.request(p, frame)
	}
}

// send never waits: the run loop must not hang on a client that does not read.
func (p *peer) send(frame []byte) {
	if !p.gone {
		p.sent++
		p.out.put(item{frame: frame})
	}
}

// reply answers a request with the state as this client sees it.
func (p *peer) reply(xid int32, err znode.Code, body []byte) {
	p.replyAt(p.view.tree.Zxid, xid, err, body)
}

func (p *peer) replyAt(zxid int64, xid int32, err znode.Code, body []byte) {
	p.last.zxid = zxid
	p.send(znode.ReplyFrame(xid, zxid, err, body))
}

// connectedState is what watch events say of the connection.
const connectedState = 3

// notify tells of an event, unless the client may not read the node.
func (p *peer) notify(event znode.Event) {
	if !znode.Permitted(event.ACL, znode.PermRead, p.ids) {
		return
	}
	e := znode.NewFrame()
	e.Int32(wire.XidEvent)
	e.Int64(-1) // zxid
	e.Int32(int32(znode.CodeOK))
	e.Int32(int32(event.Kind))
	e.Int32(connectedState)
	e.String(event.Path)
	p.send(e.Frame())
}
