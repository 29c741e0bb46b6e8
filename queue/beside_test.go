package queue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// writeLock acquires the write lock.
func writeLock(t *testing.T, q *queue.Queue) *queue.Lease {
	t.Helper()
	l, err := q.Acquire(expect.Patient(t), queue.Request{Kind: queue.Writer()})
	expect.NoError(t, err)
	return l
}

// beside takes the read lock beside a write lock.
func beside(ctx context.Context, l *queue.Lease) (*queue.Turn, error) {
	r := queue.Request{Kind: queue.Reader(), Prefix: queue.PrefixRead, Weight: 1} // as Acquiring completes it
	t, _, err := l.Turn().Beside(ctx, l, r)
	return t, err
}

// wantReaders waits until so many readers have a node.
func wantReaders(t *testing.T, dir string, n int) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the readers' nodes", func() bool {
		return strings.Count(strings.Join(testserver.Children(t, dir), " "), queue.PrefixRead) == n
	})
}

// The reader has the token of the writer, whether or not anybody has asked for that before. Its own node is younger than those
// that wait behind it, whose tokens must be higher.
func TestBesideToken(t *testing.T) {
	for name, early := range map[string]bool{"not known before": false, "known before": true} {
		t.Run(name, func(t *testing.T) {
			dir, ctx := persistentDir(t), expect.Patient(t)
			q, proxy, _ := proxied(t, dir)
			first := writeLock(t, q)
			if early {
				tokenOf(t, first)
			}
			next := begin(t, client(t, dir), queue.Request{Kind: queue.Writer()})
			testserver.WaitChildren(t, dir, 2)
			turn, err := beside(ctx, first)
			expect.NoError(t, err)
			reader, of := turn.Lease(ctx, nil), tokenOf(t, first)
			release(t, first)
			reader.Turn().WatchNow()
			zktest.Eventually(t, testserver.Patience, "the watch on the reader's node", func() bool {
				return proxy.Count(zktest.On(zktest.OpGetData, reader.Path())) > 0
			})
			_, err = q.Contenders(ctx, queue.Reader()) // is answered behind the watch, which brings the czxid of the node
			expect.NoError(t, err)
			if got := tokenOf(t, reader); got != of {
				t.Errorf("token %d, want %d", got, of)
			}
			release(t, reader)
			l := next.get(t)
			if after := tokenOf(t, l); after <= of {
				t.Errorf("token %d, want more than %d", after, of)
			}
			release(t, l)
		})
	}
}

// The writer's node is deleted by hand, at any moment before the listing that would grant the reader's turn. There is no place
// to share then: others may be in already. Beside fails with the loss, and leaves no node.
func TestBesideNodeDeletedByHand(t *testing.T) {
	for name, at := range map[string]zktest.Op{"before": 0, "at the create": zktest.OpCreate, "at the listing": zktest.OpGetChildren2} {
		t.Run(name, func(t *testing.T) {
			dir := persistentDir(t)
			q, proxy, _ := proxied(t, dir)
			first := writeLock(t, q)
			if at == 0 {
				testserver.Delete(t, first.Path())
			} else {
				tokenOf(t, first)
				fault := proxy.HoldRequest(zktest.On(at, dir))
				go func() {
					defer fault.Release()
					<-fault.Hit()
					if err := testserver.Admin(t).Delete(first.Path(), -1); err != nil {
						t.Error(err)
					}
				}()
			}
			turn, err := beside(expect.Patient(t), first)
			expect.Match(t, "Beside", err, session.ErrLost)
			if turn != nil {
				t.Error("a turn")
			}
			expect.Match(t, "the write lock", first.Err(), session.ErrLost)
			wantReaders(t, dir, 0)
		})
	}
}

// A node that no client of ours makes is ahead of a writer that holds, so that its reader has to wait. Meanwhile the writer's node
// is deleted by hand. What ends the wait is an event, and an event does not show both nodes: the reader is not let in.
func TestBesideIsGrantedByAListing(t *testing.T) {
	dir := persistentDir(t)
	const stranger = "_c_0b3ea4c1-6f9a-4c4e-9d53-2f1c1c8f6a01-" + queue.PrefixWrite
	testserver.Delete(t, put(t, dir, stranger, "", zk.FlagEphemeral|zk.FlagSequence)) // the next number is 1
	hook, watches := watching()
	first := writeLock(t, client(t, dir, hook))
	strange := put(t, dir, stranger+"0000000000", "", zk.FlagEphemeral)
	got := make(chan error, 1)
	ctx := expect.Patient(t)
	go func() {
		_, err := beside(ctx, first)
		got <- err
	}()
	expect.Receive(t, "the reader to watch", watches)
	testserver.Delete(t, first.Path())
	testserver.Delete(t, strange)
	expect.Match(t, "Beside", expect.Receive(t, "Beside", got), session.ErrLost)
	wantReaders(t, dir, 0)
}
