package queue_test

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// batchOf is how many locks of one session are taken at once, the first of them alone.
const batchOf = 9

// batched returns a server in a bubble, and queues of one session whose creates and deletes are sent
// together.
func batched(t *testing.T) (*zktest.Server, *session.Session, []*queue.Queue) {
	t.Helper()
	srv := zktest.Start(t)
	m, err := session.Connect(t.Context(), "h:1", session.WithDialer(srv.Dialer()),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	(*core.Manager)(m).SetWindow(1)
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []*queue.Queue
	for i := range batchOf {
		dir := fmt.Sprint("/", i)
		if _, err := s.Create(t.Context(), dir, nil, session.Persistent); err != nil {
			t.Fatal(err)
		}
		q, err := queue.New(m, dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return srv, s, all
}

// takeAll begins to take all locks. The first create is sent, and the others wait for the reply to it.
func takeAll(t *testing.T, srv *zktest.Server, all []*queue.Queue) (reply *zktest.Fault, leases chan *queue.Lease) {
	t.Helper()
	reply = srv.HoldReply(zktest.On(zktest.OpCreate, "/0/"))
	leases = make(chan *queue.Lease, len(all))
	for _, q := range all {
		go func() {
			l, err := q.Acquire(t.Context(), ask)
			if err != nil {
				t.Error(err)
			}
			leases <- l
		}()
		synctest.Wait()
	}
	return reply, leases
}

// The listing of a contender is sent after the batch with its create. If it were sent before, it would
// not show the node, and the contender would have to list again.
func TestBatchThenListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, all := batched(t)
		const rounds = 20
		batches, first, listings := 0, 0, 0
		for range rounds {
			srv.ResetRequests()
			reply, leases := takeAll(t, srv, all)
			reply.Release()
			var held []*queue.Lease
			for range all {
				held = append(held, <-leases)
			}
			before := true
			for _, r := range srv.Requests() {
				switch {
				case r.Op == zktest.OpMulti:
					batches, before = batches+1, false
				case r.Op == zktest.OpGetChildren2 && !strings.HasPrefix(r.Path, "/0"):
					listings++
					if before {
						first++
					}
				}
			}
			for _, l := range held {
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		if batches != rounds {
			t.Errorf("%d batches in %d rounds", batches, rounds)
		}
		if first > 0 || listings == 0 {
			t.Errorf("%d of %d listings came before the batch", first, listings)
		}
	})
}

// Contenders whose creates wait when the connection is lost create their nodes over the next one. They need not look whether
// they have nodes: each lists its directory once.
func TestUnsentCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, all := batched(t)
		reply, leases := takeAll(t, srv, all)
		srv.Refuse(true)
		srv.Disconnect()
		synctest.Wait()
		srv.ResetRequests()
		srv.Refuse(false)
		for range all {
			if l := <-leases; l == nil || l.Err() != nil {
				t.Fatal("a lock is not held")
			}
		}
		reply.Release()
		for i := range all {
			dir := fmt.Sprint("/", i)
			if n := srv.Count(zktest.On(zktest.OpGetChildren2, dir)); i > 0 && n != 1 {
				t.Errorf("%d lists of %s, want 1", n, dir)
			}
		}
	})
}
