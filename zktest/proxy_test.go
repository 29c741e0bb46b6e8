package zktest_test

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/zktest"
)

// proxied returns a proxy in front of the shared server and a client that has a session through it.
func proxied(t *testing.T) (*zktest.Proxy, *zk.Conn) {
	t.Helper()
	p := zktest.StartProxy(t, sharedServer(t))
	conn, _ := connect(t, p.Addr())
	return p, conn
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
