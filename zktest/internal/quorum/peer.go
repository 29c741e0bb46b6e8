package quorum

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/internal/digestmd5"
	"github.com/turnstile-go/turnstile/zktest/internal/fifo"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

var errHungUp = errors.New("zktest: the server has closed the connection")

// A Peer is a server's end of one client's connection. Its exported methods are for the client's end,
// and are safe for concurrent use.
type Peer struct {
	st      *State
	at      *Member // the server it is connected to
	ordinal int64
	out     *fifo.Queue[[]byte] // without a limit, because the run loop must not wait for a client; nil: the end
	closing sync.Once
	closed  chan struct{} // closed by Close
	hungUp  chan struct{} // closed when the server closes the connection

	// The fields below belong to the run loop.
	gone    bool     // hungUp is closed
	joining bool     // between the two frames of the handshake
	ready   bool     // after the handshake
	early   [][]byte // frames that arrived while joining; nil: the end
	session int64
	timeout time.Duration
	seen    int64    // the latest transaction that the client had seen when it connected
	old     bool     // a client before 3.4
	view    *replica // the replica that the client reads; nil until ready
	ids     []znode.Identity
	sasl    *digestmd5.Server // nil: the client has not begun an exchange
}

// An input is a frame from a client. Without a frame it is the end of the connection.
type input struct {
	from  *Peer
	frame []byte
}

// Write hands a frame to the run loop.
func (p *Peer) Write(frame []byte) (int, error) {
	select {
	case p.st.inbox <- input{p, frame}:
		return len(frame), nil
	case <-p.hungUp:
		return 0, errHungUp
	case <-p.closed:
		return 0, net.ErrClosed
	case <-p.st.done:
		return 0, ErrClosed
	}
}

// CloseWrite has the run loop close the connection after it has processed the frames written before.
func (p *Peer) CloseWrite() error {
	_, err := p.Write(nil)
	return err
}

// Close closes the connection. The run loop knows that when Close returns.
func (p *Peer) Close() error {
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

// ReadFrame waits for the next frame for the client. It returns io.EOF at the end.
func (p *Peer) ReadFrame() ([]byte, error) {
	frame, ok := p.out.Pop(p.closed)
	if !ok || frame == nil {
		return nil, io.EOF
	}
	return frame, nil
}

// receive processes a frame, or the end of the client's frames.
func (p *Peer) receive(frame []byte) {
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

// send queues a frame for the client. It never waits, because the run loop must not depend on a client
// that does not read.
func (p *Peer) send(frame []byte) {
	if !p.gone {
		p.out.Push(frame, len(frame), nil)
	}
}

// reply answers a request. The answer has the number of the latest transaction that the client sees.
func (p *Peer) reply(xid int32, err znode.Code, body []byte) {
	p.replyAt(p.view.tree.Zxid, xid, err, body)
}

func (p *Peer) replyAt(zxid int64, xid int32, err znode.Code, body []byte) {
	p.send(znode.ReplyFrame(xid, zxid, err, body))
}

// connectedState is the state of the connection in every watch event.
const connectedState = 3

// noZxid is the number of the transaction in an event that none has caused, and in all events of some releases.
const noZxid = -1

// notify sends the client a watch event, unless the client may not read the node. zxid is the transaction
// that has caused the event.
func (p *Peer) notify(event znode.Event, zxid int64) {
	if !znode.Permitted(event.ACL, znode.PermRead, p.ids) {
		return
	}
	if !p.st.conf.Release.EventsHaveZxid {
		zxid = noZxid
	}
	e := znode.NewFrame()
	e.Int32(codec.XidEvent)
	e.Int64(zxid)
	e.Int32(int32(znode.CodeOK))
	e.Int32(int32(event.Kind))
	e.Int32(connectedState)
	e.String(event.Path)
	p.send(e.Frame())
}
