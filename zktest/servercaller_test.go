package zktest

import (
	"bufio"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/codec"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// A stage is an ensemble in a bubble.
type stage struct {
	*Server
	serverSwitches
	t     *testing.T
	began time.Time
}

// onStage runs a test in a bubble, with an ensemble of three: ticks of 2s, and the last server leads.
func onStage(t *testing.T, f func(*stage), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(newStage(t, Start(t, append([]Option{Servers(3)}, opts...)...)))
	})
}

// newStage returns a stage with a server that has just been started.
func newStage(t *testing.T, srv *Server) *stage {
	return &stage{Server: srv, serverSwitches: serverSwitches{srv}, t: t, began: time.Now()}
}

// pass lets the bubble's time pass.
func (s *stage) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// passTo lets time pass until d after the beginning.
func (s *stage) passTo(d time.Duration) { s.pass(time.Until(s.began.Add(d))) }

// leads fails the test unless this server leads.
func (s *stage) leads(want int) {
	s.t.Helper()
	if got, ok := s.Leader(); !ok || got != want {
		s.t.Errorf("after %v: server %d leads, %v; want %d", time.Since(s.began), got, ok, want)
	}
}

// starts starts a server that was stopped.
func (s *stage) starts(server int) {
	s.t.Helper()
	if err := s.StartServer(server); err != nil {
		s.t.Error(err)
	}
}

// expiry returns when the leader will expire a session, as a time since the beginning.
func (s *stage) expiry(c *caller) time.Duration {
	s.t.Helper()
	at, ok := s.Expiry(c.session)
	if !ok {
		s.t.Errorf("after %v: no leader tracks %s's session", time.Since(s.began), c.name)
	}
	return at.Sub(s.began)
}

// A caller is a client that sends requests and does not wait for answers.
type caller struct {
	s        *stage
	name     string
	conn     net.Conn
	session  int64
	password []byte
	timeout  time.Duration
	xid      int32

	mu     sync.Mutex
	heard  []reply
	seen   int64 // the latest transaction
	closed bool
}

// A reply is a frame that a caller has received.
type reply struct {
	at   time.Duration // since the beginning
	xid  int32
	zxid int64
	err  znode.Code
	body []byte
}

// call connects a client to a server, with the session of another caller or with a new one.
func (s *stage) call(name string, server int, session *caller, timeout time.Duration) *caller {
	s.t.Helper()
	c := s.dials(name, server, session, timeout)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == 0 {
		s.t.Fatalf("after %v: %s has got no session from server %d", time.Since(s.began), name, server)
	}
	return c
}

// dials is call for a client that may get its session later or not at all.
func (s *stage) dials(name string, server int, session *caller, timeout time.Duration) *caller {
	s.t.Helper()
	conn, err := s.DialerTo(server)(context.Background(), "tcp", "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	c := &caller{s: s, name: name, conn: conn}
	hello := codec.Hello{TimeoutMillis: int32(timeout.Milliseconds())}
	if session != nil {
		session.mu.Lock()
		hello.Session, hello.Password, hello.LastZxid = session.session, session.password, session.seen
		session.mu.Unlock()
		c.seen = hello.LastZxid
	}
	go c.listen()
	c.write(hello.Frame())
	return c
}

func (c *caller) write(frame []byte) {
	_, _ = c.conn.Write(frame) // the server may have hung up
}

func (c *caller) listen() {
	in := bufio.NewReader(c.conn)
	for first := true; ; first = false {
		frame, err := readFrame(in)
		c.mu.Lock()
		switch {
		case err != nil:
			c.closed = true
		case first:
			d := znode.Decode(frame)
			d.Int32()
			c.timeout = time.Duration(d.Int32()) * time.Millisecond
			c.session, c.password = d.Int64(), slices.Clone(d.Buffer())
		default:
			d := znode.Decode(frame)
			r := reply{time.Since(c.s.began), d.Int32(), d.Int64(), znode.Code(d.Int32()), d.Rest}
			c.heard = append(c.heard, r)
			if r.zxid > 0 && r.zxid < c.seen {
				c.s.t.Errorf("%s has seen %#x after %#x", c.name, r.zxid, c.seen)
			}
			c.seen = max(c.seen, r.zxid)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ask sends a request and returns its number.
func (c *caller) ask(s step) int32 {
	xid := int32(-2)
	if s.op != OpPing {
		c.xid++
		xid = c.xid
	}
	e := znode.NewFrame()
	e.Int32(xid)
	e.Int32(int32(s.op))
	e.B = append(e.B, s.body(0)...)
	c.write(e.Frame())
	synctest.Wait()
	return xid
}

// answers returns the answers to a request so far. All pings have the same number.
func (c *caller) answers(xid int32) []reply {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.heard), func(r reply) bool { return r.xid != xid })
}

// wants fails the test unless a request has been answered with this code.
func (c *caller) wants(xid int32, want znode.Code) reply {
	c.s.t.Helper()
	all := c.answers(xid)
	if len(all) == 0 {
		c.s.t.Errorf("after %v: %s has no answer to request %d", time.Since(c.s.began), c.name, xid)
		return reply{}
	}
	last := all[len(all)-1]
	if last.err != want {
		c.s.t.Errorf("%s: request %d: %v, want %v", c.name, xid, last.err, want)
	}
	return last
}

// waits fails the test if a request has been answered.
func (c *caller) waits(xid int32) {
	c.s.t.Helper()
	if all := c.answers(xid); len(all) > 0 {
		c.s.t.Errorf("after %v: %s has an answer to request %d: %+v", time.Since(c.s.began), c.name, xid, all)
	}
}

// does sends a request, which must succeed at once.
func (c *caller) does(s step) reply {
	c.s.t.Helper()
	return c.wants(c.ask(s), znode.CodeOK)
}

// connected fails the test unless the client is connected, or is not, as wanted.
func (c *caller) connected(want bool) {
	c.s.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == want {
		c.s.t.Errorf("after %v: %s is connected: %v, want %v", time.Since(c.s.began), c.name, !c.closed, want)
	}
}

// The requests of these tests.
func ping() step { return say(0, OpPing, nil) }
func syncAll() step {
	return say(0, OpSync, func(e *znode.Encoder) { e.String("/") })
}
func plain(path string) step     { return mkdir(0, OpCreate, path, 0, znode.OpenACL) }
func ephemeral(path string) step { return mkdir(0, OpCreate, path, 1, znode.OpenACL) }
func there(path string) step     { return look(0, OpExists, path, false) }

// withTickPhases sets when the session trackers of the servers tick: server i's tracker does so
// phases[i] after each multiple of a tick.
func withTickPhases(phases ...time.Duration) Option {
	return option(func(c *config) error { c.Phases = phases; return nil })
}
