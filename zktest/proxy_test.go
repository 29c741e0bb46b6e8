package zktest_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

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
	_, err := conn.Sync(path)
	must(t, err)
	_, err = conn.Multi(&zk.CheckVersionRequest{Path: path, Version: 0}, &zk.DeleteRequest{Path: path})
	must(t, err)
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

// metric returns a number of a server.
func metric(t *testing.T, srv *zktest.Server, name string) int {
	t.Helper()
	synctest.Wait()
	all, err := srv.Metrics()
	must(t, err)
	n, err := strconv.Atoi(all[name])
	must(t, err)
	return n
}

// A partition to the server hides what a client sends, and that it has closed its connection. The server gets both, in order,
// when the partition is over.
func TestBlackholeToServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn := piped(t, srv)
		nodes := metric(t, srv, "zk_znode_count")
		srv.Blackhole(zktest.ToServer)
		created := createAsync(conn, "/f")
		synctest.Wait()
		conn.Close()
		<-created
		if n := metric(t, srv, "zk_znode_count"); n != nodes || metric(t, srv, "zk_num_alive_connections") != 1 {
			t.Errorf("%d nodes more, or the connection is closed", n-nodes)
		}
		srv.Heal()
		if n := metric(t, srv, "zk_znode_count"); n != nodes+1 || metric(t, srv, "zk_num_alive_connections") != 0 {
			t.Errorf("%d nodes more, or the connection is open", n-nodes)
		}
	})
}

// A partition to the client hides what the server sends, and that it has closed the connection. The client gets both, in order.
func TestBlackholeToClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		conn := piped(t, srv)
		nodes := metric(t, srv, "zk_znode_count")
		srv.Blackhole(zktest.ToClient)
		created := createAsync(conn, "/f")
		if n := metric(t, srv, "zk_znode_count"); n != nodes+1 || len(created) > 0 {
			t.Errorf("%d nodes more, %d answers", n-nodes, len(created))
		}
		srv.StopServer(0)
		if synctest.Wait(); conn.State() != zk.StateHasSession {
			t.Error("the client knows that the server has stopped")
		}
		srv.Heal()
		must(t, <-created)
		if synctest.Wait(); conn.State() == zk.StateHasSession {
			t.Error("the client does not know that the server has stopped")
		}
		must(t, srv.StartServer(0))
	})
}

// The server never sees a client that gives up while the network is down.
func TestBlackholeHidesNewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Blackhole(zktest.ToServer)
		gone, err := srv.Dialer()(t.Context(), "pipe", "")
		must(t, err)
		go func() { _, _ = gone.Write([]byte{0, 0, 0, 4, 0, 0, 0, 1}) }()
		stays := make(chan *zk.Conn)
		go func() { stays <- piped(t, srv) }()
		if synctest.Wait(); len(srv.Requests()) != 2 || metric(t, srv, "zk_num_alive_connections") != 0 {
			t.Errorf("requests %v", srv.Requests())
		}
		must(t, gone.Close())
		synctest.Wait()
		srv.Heal()
		<-stays
		if n := len(srv.Sessions()); n != 1 || metric(t, srv, "zk_num_alive_connections") != 1 {
			t.Errorf("%d sessions", n)
		}
	})
}
