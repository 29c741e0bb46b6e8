package zktest

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/fifo"
)

// maxQueued is the number of bytes that one direction of a connection holds back. Beyond that the proxy stops reading,
// as with a full TCP window.
const maxQueued = 8 << 20

// An item is a frame on its way. Without a frame it is the end of the stream.
type item struct {
	frame []byte
	req   Request   // the request, if the frame is a client's
	at    time.Time // when it arrived
}

// An upstream is a link's connection to the server. Each Write is one frame.
type upstream interface {
	ReadFrame() ([]byte, error)
	Write(frame []byte) (int, error)
	CloseWrite() error // says that no more frames follow those written
	Close() error      // ends a ReadFrame or Write in progress
}

// tcpUpstream is the connection to a server over TCP.
type tcpUpstream struct {
	*net.TCPConn
	in *bufio.Reader
}

func (u tcpUpstream) ReadFrame() ([]byte, error) { return readFrame(u.in) }

// A link is a client's connection together with a connection to the server. Each direction has a goroutine that reads
// frames into a queue, and one that writes them out. So a delay does not reduce the throughput.
type link struct {
	p        *Proxy
	ordinal  int64
	client   net.Conn
	in       *bufio.Reader // of client
	at       int           // the server that the client has connected to
	toServer *fifo.Queue[item]
	toClient *fifo.Queue[item]

	ctx    context.Context // ends when the link is cut
	cancel context.CancelFunc
	done   <-chan struct{} // of ctx

	mu      sync.Mutex          // guards the fields below
	server  upstream            // nil until dialed
	pending map[int32][]Request // passed on and not answered, by xid, oldest first

	session int64 // guarded by p.mu
}

func newLink(p *Proxy, ordinal int64, client net.Conn, at int) *link {
	ctx, cancel := context.WithCancel(context.Background())
	return &link{
		p:        p,
		ordinal:  ordinal,
		client:   client,
		in:       bufio.NewReader(client),
		at:       at,
		toServer: fifo.New[item](maxQueued),
		toClient: fifo.New[item](maxQueued),
		ctx:      ctx,
		cancel:   cancel,
		done:     ctx.Done(),
		pending:  make(map[int32][]Request),
	}
}

// run serves the link until both directions have ended or it is cut.
func (l *link) run() {
	if l.p.word != nil && l.p.word(l) {
		l.cut()
		return
	}
	var readers, writers sync.WaitGroup
	readers.Go(l.readClient)
	if server := l.dial(); server != nil {
		readers.Go(func() { l.readServer(server) })
		writers.Go(func() { l.writeServer(server) })
		writers.Go(l.writeClient)
	}
	writers.Wait()
	l.cut()
	readers.Wait()
}

// cut closes both connections at once. Queued frames are lost.
func (l *link) cut() {
	l.cancel()
	_ = l.client.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// dial connects to the server once no blackhole prevents that. It returns nil if it cannot connect, or if the client
// has closed its connection in the meantime.
func (l *link) dial() upstream {
	if !l.p.wait(l.done, Both, time.Time{}) {
		return nil
	}
	if last, ok := l.toServer.Last(); ok && last.frame == nil {
		return nil
	}
	server, err := l.p.dial(l.ctx, l)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil { // cut may not have seen this connection
		_ = server.Close()
		return nil
	}
	l.server = server
	return server
}

// readClient queues the client's frames, up to the end of the connection.
func (l *link) readClient() {
	parse := parseConnect
	for {
		frame, err := codec.ReadFrame(l.in, l.p.limit)
		if err != nil {
			l.toServer.Push(item{at: time.Now()}, 0, l.done)
			return
		}
		it := item{frame: frame, req: parse(frame), at: time.Now()}
		it.req.Conn, it.req.At = l.ordinal, it.at
		l.p.record(l, &it.req)
		if !l.toServer.Push(it, len(frame), l.done) {
			return
		}
		parse = parseRequest
	}
}

// readServer queues the server's frames, up to the end of the connection.
func (l *link) readServer(server upstream) {
	first := true
	for {
		frame, err := server.ReadFrame()
		if err != nil {
			l.toClient.Push(item{at: time.Now()}, 0, l.done)
			return
		}
		if first {
			l.p.connected(l, frame)
		}
		if !l.toClient.Push(item{frame: frame, at: time.Now()}, len(frame), l.done) {
			return
		}
		first = false
	}
}

// writeServer passes requests on, and applies faults to them.
func (l *link) writeServer(server upstream) {
	for {
		it, ok := l.toServer.Pop(l.done)
		if !ok || !l.p.wait(l.done, ToServer, it.at) {
			return
		}
		if it.frame == nil {
			_ = server.CloseWrite()
			return
		}
		if !l.hold(holdRequest, it.req, ToServer) || l.strikeCut(cutBefore, it.req) {
			return
		}
		l.expectReply(it.req)
		if _, err := server.Write(it.frame); err != nil {
			return // readServer notices it too, and the client is told
		}
	}
}

// writeClient passes replies on, and applies faults to them.
func (l *link) writeClient() {
	first := true
	for {
		it, ok := l.toClient.Pop(l.done)
		if !ok || !l.p.wait(l.done, ToClient, it.at) {
			return
		}
		if it.frame == nil {
			if tcp, ok := l.client.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			} else { // a pipe cannot close one direction
				_ = l.client.Close()
			}
			return
		}
		if req, ok := l.answered(it.frame, first); ok {
			if !l.hold(holdReply, req, ToClient) || l.strikeCut(cutAfterCommit, req) {
				return
			}
		}
		first = false
		if _, err := l.client.Write(it.frame); err != nil {
			return
		}
	}
}

// hold waits until a fault that holds the request is released, if there is such a fault. It returns false if the link
// is cut first.
func (l *link) hold(kind faultKind, r Request, d Direction) bool {
	f := l.p.strike(kind, r)
	if f == nil {
		return true
	}
	close(f.hit)
	select {
	case <-f.released:
		return l.p.wait(l.done, d, time.Time{}) // a blackhole may have begun meanwhile
	case <-l.done:
		return false
	}
}

// strikeCut cuts the link if there is a fault that cuts it at this request, and reports whether it has.
func (l *link) strikeCut(kind faultKind, r Request) bool {
	f := l.p.strike(kind, r)
	if f == nil {
		return false
	}
	l.cut()
	close(f.hit)
	return true
}

// expectReply remembers a request until its reply arrives.
func (l *link) expectReply(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[r.Xid] = append(l.pending[r.Xid], r)
}

// answered returns the request that a frame from the server answers. A watch event counts as a request. It returns
// false if there is none.
func (l *link) answered(frame []byte, first bool) (Request, bool) {
	reply := Request{} // the handshake has no xid, and is remembered with 0
	if !first {
		reply = parseReply(frame)
	}
	if !first && reply.Xid == codec.XidEvent {
		l.p.mu.Lock()
		defer l.p.mu.Unlock()
		reply.Op, reply.Conn, reply.Session, reply.At = OpNotification, l.ordinal, l.session, time.Now()
		return reply, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.pending[reply.Xid]
	if len(waiting) == 0 {
		return Request{}, false
	}
	if len(waiting) == 1 {
		delete(l.pending, reply.Xid)
	} else {
		l.pending[reply.Xid] = waiting[1:]
	}
	return waiting[0], true
}
