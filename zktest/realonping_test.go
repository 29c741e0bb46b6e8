package zktest_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/zktest"
)

// If a function of OnPing cuts the link at a follower's answer, the leader does not get this answer. The
// sessions in it expire, although the follower continues to answer their clients.
func TestOnPing(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	e := zktest.StartReal(t, zktest.Nodes(3), zktest.TickTime(time.Second), zktest.Partitions())
	leader, err := e.Leader(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	follower := (leader + 1) % e.Len()
	observer, _ := connect(t, e.Addr(leader))
	conn, _ := connect(t, e.Addr(follower))
	session := conn.SessionID()
	create(t, conn, "/here", zk.FlagEphemeral)

	var mu sync.Mutex
	asked, listed, late := 0, 0, 0
	struck := make(chan struct{})
	stop, err := e.OnPing(func(p zktest.PeerPing) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case p.Leader != leader:
			t.Errorf("a ping of server %d, where %d leads", p.Leader, leader)
		case p.Server != follower:
		case !p.Answer:
			asked++
		case listed > 0:
			late++
		case slices.Contains(p.Touched, session):
			listed++
			if err := e.PartitionOneWay(follower, leader); err != nil {
				t.Error(err)
			}
			close(struck)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, struck, "the session is on a list")
	if !exists(t, conn, "/here") {
		t.Error("the follower has no node of a session that has just been heard of")
	}
	zktest.Eventually(t, time.Minute, "the leader expires the session", func() bool {
		return !exists(t, observer, "/here")
	})
	stop()
	mu.Lock()
	if asked == 0 || late != 0 {
		t.Errorf("the leader pinged %d times; %d answers came after the link was cut", asked, late)
	}
	mu.Unlock()
	e.HealPartitions()
	if err := e.WaitReady(soon(t)); err != nil {
		t.Fatal(err)
	}
}

func TestOnPingRefuses(t *testing.T) {
	t.Parallel()
	sharedServer(t)
	e := shared.ensemble
	if _, err := e.OnPing(func(zktest.PeerPing) {}); err == nil {
		t.Error("pings of a server that is alone: no error")
	}
	if err := e.PartitionOneWay(0, 0); err == nil {
		t.Error("a partition of a server that is alone: no error")
	}
}
