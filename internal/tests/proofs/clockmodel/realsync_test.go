package clockmodel

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/longtest"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// sync-waits, on real servers: while a write waits for its quorum, the leader answers the sync of its own client, and
// not that of a follower's or an observer's. Then the write is committed.
func TestSyncWaits(t *testing.T) {
	longtest.Only(t)
	const observer = 5
	e, err := zktest.NewReal(zktest.Nodes(5), zktest.Observers(1),
		zktest.TickTime(2*time.Second), zktest.Property("syncLimit", "100")) // the leader leads on, however busy the machine is
	if errors.Is(err, zktest.ErrNoZooKeeper) {
		testserver.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 3*testserver.Patience)
	defer cancel()
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	others := []int{(leader + 1) % observer, (leader + 2) % observer, (leader + 3) % observer, (leader + 4) % observer}
	follower, paused := others[0], others[1:]

	connect := func(server int) *session.Session {
		return testserver.Session(t, testserver.Connect(t, e.Addr(server), session.WithTimeout(time.Minute)))
	}
	writer, atLeader := connect(leader), connect(leader)
	waiting := map[int]*session.Session{follower: connect(follower), observer: connect(observer)}
	count := func(server int, metric string) int {
		m, err := e.Metrics(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(m[metric])
		if err != nil {
			t.Skipf("%s: %v", metric, err) // before 3.6
		}
		return n
	}
	proposed := count(leader, "zk_proposal_count")
	for _, i := range paused {
		if err := e.Pause(i); err != nil {
			t.Fatal(err)
		}
	}
	written := begin(func() error {
		_, err := writer.Create(ctx, "/written", nil, session.Persistent)
		return err
	})
	zktest.Eventually(t, testserver.Patience, "a proposal", func() bool { return count(leader, "zk_proposal_count") > proposed })

	if err := atLeader.Sync(ctx, "/"); err != nil {
		t.Fatalf("the leader did not answer a sync: %v", err)
	}
	synced := map[int]<-chan error{}
	for server, s := range waiting {
		synced[server] = begin(func() error { return s.Sync(ctx, "/") })
		zktest.Eventually(t, testserver.Patience, "a sync on its way", func() bool {
			return count(server, "zk_outstanding_requests") > 0
		})
	}
	for what, done := range map[string]<-chan error{
		"the write": written, "the sync of a follower's client": synced[follower], "the sync of an observer's client": synced[observer],
	} {
		select {
		case err := <-done:
			t.Errorf("%s was answered without a quorum: %v", what, err)
		default:
		}
	}
	for _, i := range paused {
		if err := e.Resume(i); err != nil {
			t.Fatal(err)
		}
	}
	for server, s := range waiting {
		if err := <-synced[server]; err != nil {
			t.Fatal(err)
		}
		if stat, err := s.Exists(ctx, "/written"); err != nil || stat == nil {
			t.Errorf("the sync of a client of server %d did not wait for a write that was proposed before it: %v", server, err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// begin calls f in a goroutine, and returns what will have its result.
func begin(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}
