package session

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// clientEvents is what zk.Conn asks its session and tells it. No call but dial may block.
type clientEvents interface {
	dial() (net.Conn, error)              // the next connection
	ended() bool                          // the client must not dial any more
	setConnected(up bool)                 // a connection has the session, or was lost
	expired()                             // a server has said so
	watchFired(path string, e WatchEvent) // not for the next two
	childrenChanged(path string)          // a child was created or deleted
	created(path string)                  // of a node that did not exist
}

// zkConn is the zk.Conn of a session. It makes the handshake, connects again, passes the server's events on,
// and closes the session. calls.go has the requests. zk.Conn hides the timeout that was negotiated, and asks for
// that shorter one in every later session. So each session gets a zk.Conn of its own.
//
// This file is the only one that calls zk.Conn. docs/adr/0001-zk-conn.md says why, and what a replacement
// would have to do.
type zkConn struct {
	conn *zk.Conn
	gone <-chan zk.Event // closed when the goroutines of conn have ended
}

// connBuffer is the size of the buffer in which zk.Conn makes its requests, in place of 1.5 MB. zk.Conn
// panics if a request does not fit. The longest is the handshake, of less than 100 bytes.
const connBuffer = 4 << 10

func newZKConn(events clientEvents, timeout time.Duration, log *slog.Logger) (*zkConn, error) {
	conn, gone, err := zk.Connect([]string{"zookeeper"}, timeout,
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) { return events.dial() }),
		zk.WithHostProvider(provider{events.ended}),
		zk.WithEventCallback(func(e zk.Event) { passOn(e, events) }),
		zk.WithMaxConnBufferSize(connBuffer),
		zk.WithLogger(zkLogger{log}),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	return &zkConn{conn, gone}, nil
}

// passOn is called by zk.Conn, in order, from one goroutine at a time. It never blocks. The
// channel of events that zk.Conn has as well holds six, and drops what does not fit.
func passOn(e zk.Event, events clientEvents) {
	switch {
	case e.Type == zk.EventNodeDeleted:
		events.watchFired(e.Path, WatchDeleted)
	case e.Type == zk.EventNodeDataChanged:
		events.watchFired(e.Path, WatchChanged)
	case e.Type == zk.EventNodeChildrenChanged:
		events.childrenChanged(e.Path)
	case e.Type == zk.EventNodeCreated:
		events.created(e.Path)
	case e.Type != zk.EventSession:
		events.watchFired(e.Path, WatchBroken)
	case e.State == zk.StateHasSession:
		events.setConnected(true)
	case e.State == zk.StateDisconnected:
		events.setConnected(false)
	case e.State == zk.StateExpired:
		// zk.Conn now wants to open a new session, and to send in it the requests that were
		// queued for this one. A session that has ended gives it no connection for that.
		events.expired()
	}
}

// close asks the server to close the session, if there is a connection.
func (c *zkConn) close() { c.conn.Close() }

// wait returns when all goroutines of zk.Conn have ended.
func (c *zkConn) wait() {
	for range c.gone {
	}
}

// provider is the HostProvider of zk.Conn. The dialer chooses the server, so there is only one.
//
// If Next says retryStart, zk.Conn waits a second without jitter and fails all queued requests.
// So provider says it only once the session has ended. Then it has to, because zk.Conn's dial
// loop looks only there whether it was closed.
type provider struct{ ended func() bool }

var _ zk.HostProvider = provider{}

func (p provider) Init([]string) error  { return nil }
func (p provider) Len() int             { return 1 }
func (p provider) Connected()           {}
func (p provider) Next() (string, bool) { return "zookeeper", p.ended() }

// zkLogger logs what zk.Conn has to say, for debugging.
type zkLogger struct{ log *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	if strings.HasPrefix(format, "Xid < 0") {
		return // the answer to a request of package wire, which zk.Conn does not know
	}
	l.log.Debug("zookeeper: " + fmt.Sprintf(format, args...))
}
