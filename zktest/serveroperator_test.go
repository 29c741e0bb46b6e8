package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/zktest/internal/fourletter"
	"github.com/turnstile-go/turnstile/zktest/internal/quorum"
	"github.com/turnstile-go/turnstile/zktest/internal/znode"
)

// The leader carries out what an operator asks for.
func TestOperatorOfEnsemble(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 40*time.Second)
		c.does(plain("/d"))
		c.does(mkdir(0, OpCreateContainer, "/c", 4, znode.OpenACL))
		c.does(plain("/c/x"))
		c.does(remove(0, "/c/x", -1))
		if n := s.ReapContainers(); n != 1 {
			t.Errorf("%d containers reaped", n)
		}
		c.wants(c.ask(there("/c")), znode.CodeNoNode)
		if err := s.SetSequence("/", 41); err != nil {
			t.Error(err)
		}
		c.does(mkdir(0, OpCreate, "/s-", 2, znode.OpenACL))
		c.does(there("/s-0000000041"))

		s.SetCommitDelay(time.Second)
		began := time.Now()
		if err := s.DeleteNode("/d"); err != nil || time.Since(began) != time.Second {
			t.Errorf("deleted after %v: %v", time.Since(began), err)
		}
		c.wants(c.ask(there("/d")), znode.CodeNoNode)
		began = time.Now()
		if err := s.Expire(s.t.Context(), c.session); err != nil || time.Since(began) != time.Second {
			t.Errorf("expired after %v: %v", time.Since(began), err)
		}
		c.connected(false)
		s.SetCommitDelay(0)

		// Without a leader, deleting fails and expiring waits.
		c = s.call("second", 0, nil, 40*time.Second)
		c.does(ephemeral("/e"))
		s.StopServer(2)
		if err := s.DeleteNode("/e"); !errors.Is(err, quorum.ErrNoLeader) {
			t.Errorf("delete without a leader: %v", err)
		}
		if n := s.ReapContainers(); n != 0 {
			t.Errorf("%d containers reaped without a leader", n)
		}
		began = time.Now()
		if err := s.Expire(s.t.Context(), c.session); err != nil || time.Since(began) != 200*time.Millisecond {
			t.Errorf("expired after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		s.StopServer(0)
		s.pass(20 * time.Second)
		if err := s.Expire(ctx, c.session); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("expire without a leader: %v", err)
		}
	})
}

// If the leader cannot commit, an operator's change returns when that leader gives up.
func TestOperatorOfDeposedLeader(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 2, nil, 40*time.Second)
		c.does(plain("/d"))
		s.CutLink(2, 0)
		s.CutLink(2, 1)
		if err := s.DeleteNode("/d"); !errors.Is(err, quorum.ErrNoLeader) {
			t.Errorf("deleted by a leader that is cut off: %v", err)
		}
		s.pass(time.Second)
		if err := s.Expire(s.t.Context(), c.session); err != nil {
			t.Error(err)
		}
		s.call("other", 1, nil, 40*time.Second).does(there("/d"))
	})
}

// A leader whose pinging thread stands still loses its followers without noticing.
func TestHeldPings(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 2, nil, 40*time.Second)
		s.holdPings(true)
		s.pass(10200 * time.Millisecond)
		s.leads(1)
		for range 20 {
			s.pass(5 * time.Second)
			c.does(ping())
			c.does(syncAll())
		}
		s.leads(1)
		s.holdPings(false)
		s.pass(2 * tickOnStage)
		c.connected(false)
		s.leads(1)
		s.call("again", 2, nil, 40*time.Second).does(plain("/n"))
	})
}

// A leader closes the connection to a follower that does not acknowledge proposals, even if the follower
// answers pings.
func TestSlowDisk(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 40*time.Second)
		s.SetCommitDelay(time.Minute)
		xid := c.ask(plain("/n"))
		s.pass(9 * time.Second)
		c.connected(true)
		s.pass(3 * time.Second)
		c.connected(false)
		c.waits(xid)
		s.SetCommitDelay(0)
		s.pass(2 * time.Minute)
		s.call("again", 0, nil, 40*time.Second).does(plain("/m"))
	})
}

// A session that lags is never ahead of the server that it is connected to.
func TestLagInEnsemble(t *testing.T) {
	onStage(t, func(s *stage) {
		slow, fast := s.call("slow", 0, nil, 40*time.Second), s.call("fast", 1, nil, 40*time.Second)
		if err := s.Lag(slow.session, 1); err != nil {
			t.Fatal(err)
		}
		fast.does(plain("/1"))
		slow.wants(slow.ask(there("/1")), znode.CodeNoNode)
		fast.does(plain("/2"))
		slow.does(there("/1"))
		slow.wants(slow.ask(there("/2")), znode.CodeNoNode)
		s.CutLink(2, 0)
		for i := 3; i < 9; i++ {
			fast.does(plain(fmt.Sprint("/", i)))
		}
		slow.wants(slow.ask(there("/2")), znode.CodeNoNode)
		s.HealLinks()
		synctest.Wait()
		slow.does(there("/7"))
		slow.wants(slow.ask(there("/8")), znode.CodeNoNode)
		slow.does(syncAll())
		slow.does(there("/8"))
		slow.does(plain("/own"))
		slow.does(there("/own"))
		fast.does(plain("/9"))
		slow = s.call("moved", 1, slow, 40*time.Second)
		slow.wants(slow.ask(there("/9")), znode.CodeNoNode)
		fast.does(plain("/10"))
		slow.does(there("/9"))
		if err := s.Lag(slow.session, 0); err != nil {
			t.Error(err)
		}
		slow.does(there("/10"))
	})
}

// A session can be made to lag while its server has not yet heard of committed transactions.
func TestLagOnSlowLink(t *testing.T) {
	onStage(t, func(s *stage) {
		slow, fast := s.call("slow", 0, nil, 40*time.Second), s.call("fast", 1, nil, 40*time.Second)
		s.DelayLink(2, 0, time.Second)
		fast.does(plain("/1"))
		fast.does(plain("/1/2"))
		if err := s.Lag(slow.session, 1); err != nil {
			t.Fatal(err)
		}
		fast.does(plain("/3"))
		slow.wants(slow.ask(there("/1")), znode.CodeNoNode)
		s.pass(time.Second)
		slow.does(there("/1/2"))
		slow.wants(slow.ask(there("/3")), znode.CodeNoNode)
		fast.does(plain("/4"))
		s.pass(time.Second)
		slow.does(there("/3"))
		s.with(func(st *quorum.State) {
			if n := st.Kept(); n > 1 {
				t.Errorf("%d transactions are kept", n)
			}
		})
	})
}

// A server alone can be stopped and started. It keeps its sessions.
func TestStopServerAlone(t *testing.T) {
	onStage(t, func(s *stage) {
		c := s.call("client", 0, nil, 10*time.Second)
		c.does(ephemeral("/e"))
		s.StopServer(0)
		c.connected(false)
		s.pass(time.Hour)
		if err := s.StartServer(0); err != nil {
			t.Error(err)
		}
		s.pass(200 * time.Millisecond)
		c = s.call("again", 0, c, 10*time.Second)
		c.does(there("/e"))
		if r := c.does(plain("/n")); r.zxid != 3 {
			t.Errorf("transaction number %#x, want 3", r.zxid)
		}
		s.HoldServer(0)
		late := c.ask(there("/e"))
		c.waits(late)
		s.pass(5 * time.Second)
		s.ReleaseServer(0)
		c.wants(late, znode.CodeOK)
	}, Servers(1))
}

// Over TCP each server has an address of its own.
func TestEnsembleOverTCP(t *testing.T) {
	srv := Start(t, Servers(3), Listen("127.0.0.1:0"))
	addrs := strings.Split(srv.ConnectString(), ",")
	if len(addrs) != 3 || addrs[0] != srv.Addr() || addrs[1] != srv.ServerAddr(1) {
		t.Fatalf("addresses %q", addrs)
	}
	for i, want := range []string{"follower", "follower", "leader"} {
		if m, err := fourletter.Mode(t.Context(), addrs[i]); m != want || err != nil {
			t.Errorf("server %d is %q, %v; want %s", i, m, err, want)
		}
		w := newWorld(t, func() (net.Conn, error) { return net.Dial("tcp", addrs[i]) })
		c := w.join()
		w.must(look(0, OpGetData, "/", true))
		if at, ok := srv.ServerOf(c.session); at != i || !ok {
			t.Errorf("a client of server %d is at %d, %v", i, at, ok)
		}
		text, err := fourletter.Ask(t.Context(), addrs[i], "mntr")
		if m := fourletter.Metrics(text); err != nil || m["zk_watch_count"] != "1" || m["zk_num_alive_connections"] != "1" {
			t.Errorf("server %d: %v, %v", i, m, err)
		}
	}
	if m, err := srv.Metrics(); err != nil || m["zk_watch_count"] != "3" || m["zk_global_sessions"] != "3" || m["zk_server_state"] != "leader" {
		t.Errorf("all: %v, %v", m, err)
	}
	srv.HoldServer(1)
	srv.StopServer(1)
	if conn, err := net.Dial("tcp", addrs[1]); err == nil {
		_ = conn.Close()
		t.Error("a stopped server listens")
	}
	if err := srv.StartServer(1); err != nil {
		t.Fatal(err)
	}
	Eventually(t, 20*time.Second, "the server serves", func() bool {
		m, err := fourletter.Mode(t.Context(), addrs[1])
		return m == "follower" && err == nil
	})
	srv.HoldServer(0)
	asked := make(chan error, 1)
	go func() {
		_, err := fourletter.Ask(context.Background(), addrs[0], "ruok")
		asked <- err
	}()
	select {
	case err := <-asked:
		t.Errorf("a server that stands still has answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	<-asked
}

// Dialer maps each address to a server.
func TestHosts(t *testing.T) {
	onStage(t, func(s *stage) {
		if got, want := s.Hosts(), "zk0:2181,zk1:2181,zk2:2181"; got != want {
			t.Errorf("hosts %q, want %q", got, want)
		}
		at := func(addr string) int {
			conn, err := s.Dialer()(s.t.Context(), "tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := &caller{s: s, name: addr, conn: conn}
			go c.listen()
			c.write(connectFrame(0, make([]byte, 16), 40_000))
			synctest.Wait()
			i, _ := s.ServerOf(c.session)
			return i
		}
		for i, addr := range strings.Split(s.Hosts(), ",") {
			if got := at(addr); got != i {
				t.Errorf("%s is server %d", addr, got)
			}
		}
		for i, addr := range []string{"any:2181", "zk3:2181", "zk-1:1", "zk1", ""} {
			if got, want := at(addr), []int{0, 1, 2, 1, 0}[i]; got != want {
				t.Errorf("%q leads to server %d, want %d", addr, got, want)
			}
		}
	})
}

func TestNoSuchServer(t *testing.T) {
	srv := Start(t, Servers(5), SyncLimit(1), ElectionTime(0), withTickPhases(0, time.Second))
	for name, f := range map[string]func(){
		"DialerTo":   func() { srv.DialerTo(5) },
		"HoldServer": func() { srv.HoldServer(-1) },
		"CutLink":    func() { srv.CutLink(0, 7) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
