package zktest_test

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/zktest"
)

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
