package zktest_test

import (
	"net"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// proxied returns a proxy in front of the shared server and a client that has
// a session through it.
func proxied(t *testing.T) (*zktest.Proxy, *zk.Conn) {
	t.Helper()
	p := zktest.StartProxy(t, sharedServer(t))
	conn, _ := connect(t, p.Addr())
	return p, conn
}

// direct returns a client of the shared server without a proxy.
func direct(t *testing.T) *zk.Conn {
	t.Helper()
	conn, _ := connect(t, sharedServer(t))
	return conn
}

func TestProxyRecordsRequests(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	path := testserver.Path(t)
	if ids := p.Sessions(); !slices.Equal(ids, []int64{conn.SessionID()}) {
		t.Errorf("sessions %#x, want %#x", ids, conn.SessionID())
	}
	create(t, conn, path, 0)
	if _, err := conn.Sync(path); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Multi(&zk.CheckVersionRequest{Path: path, Version: 0}, &zk.DeleteRequest{Path: path}); err != nil {
		t.Fatal(err)
	}
	want := []zktest.Request{
		{Op: zktest.OpConnect},
		{Op: zktest.OpCreate, Path: path},
		{Op: zktest.OpSync, Path: path},
		{Op: zktest.OpMulti, Path: path},
	}
	got := slices.DeleteFunc(p.Requests(), func(r zktest.Request) bool { return r.Op == zktest.OpPing })
	if len(got) != len(want) {
		t.Fatalf("requests %v, want %v", got, want)
	}
	for i, r := range got {
		if r.Op != want[i].Op || r.Path != want[i].Path || r.Conn != 1 || r.At.IsZero() {
			t.Errorf("request %d is %+v, want %v %q on connection 1", i, r, want[i].Op, want[i].Path)
		}
		if i > 0 && (r.Session != conn.SessionID() || r.Xid == 0) {
			t.Errorf("request %d is %+v, want session %#x and an xid", i, r, conn.SessionID())
		}
	}
	if n := p.Count(zktest.Any(zktest.OpCreate, zktest.OpSync)); n != 2 {
		t.Errorf("%d creates and syncs, want 2", n)
	}
	if n := p.Count(zktest.On(zktest.OpCreate, "/other")); n != 0 {
		t.Errorf("%d creates of another path, want 0", n)
	}
	p.ResetRequests()
	if n := p.Count(zktest.On(zktest.OpCreate, "")); n != 0 {
		t.Errorf("%d creates after a reset, want 0", n)
	}
}

func TestProxyDisconnect(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	session := conn.SessionID()
	p.Disconnect()
	zktest.Eventually(t, testserver.Patience, "a second handshake", func() bool {
		return p.Count(zktest.On(zktest.OpConnect, "")) == 2 && conn.State() == zk.StateHasSession
	})
	if got := conn.SessionID(); got != session {
		t.Errorf("session %#x after reconnecting, want %#x", got, session)
	}
	exists(t, conn, "/")
	if last := p.Requests(); last[len(last)-1].Conn != 2 {
		t.Errorf("connection %d, want 2", last[len(last)-1].Conn)
	}
}

func TestProxyRefuse(t *testing.T) {
	t.Parallel()
	p, conn := proxied(t)
	p.Refuse(true)
	exists(t, conn, "/") // a connection that is there stays
	raw, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if n, err := raw.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes from a connection that should have been closed", n)
	}
	p.Heal()
	connect(t, p.Addr())
}

func TestProxySetTarget(t *testing.T) {
	t.Parallel()
	real := sharedServer(t)
	p := zktest.StartProxy(t, "127.0.0.1:1") // nobody listens there
	conn, _ := dial(t, p.Addr(), testserver.Patience)
	zktest.Eventually(t, testserver.Patience, "a try", func() bool { return conn.State() == zk.StateConnecting })
	p.SetTarget(real)
	zktest.Eventually(t, testserver.Patience, "a session", func() bool { return conn.State() == zk.StateHasSession })
}

func TestProxyClose(t *testing.T) {
	t.Parallel()
	p, _ := proxied(t)
	p.Blackhole(zktest.Both)
	p.HoldReply(zktest.Any())
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		_ = conn.Close()
		t.Error("a closed proxy accepts")
	}
}

func TestOpString(t *testing.T) {
	t.Parallel()
	for op, want := range map[zktest.Op]string{
		zktest.OpCreate2: "create2", zktest.OpClose: "close", zktest.OpConnect: "connect", 77: "Op(77)",
	} {
		if got := op.String(); got != want {
			t.Errorf("Op(%d).String() = %q, want %q", int32(op), got, want)
		}
	}
}
