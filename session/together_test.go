package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// batching is a session whose creates and deletes are sent together, one batch at a time. The reply to the
// first create is held back, so that all that comes after it waits.
type batching struct {
	*zktest.Server
	t      *testing.T
	m      *session.Manager
	s      *session.Session
	first  *zktest.Fault
	opened *core.Creation

	mu    sync.Mutex
	spans map[string]int64 // the batch of each request, by what the hooks were told
}

// newBatching makes the directories /0, /1 … and the session, and holds the reply to the first create.
func newBatching(t *testing.T, dirs int, opts ...session.Option) *batching {
	t.Helper()
	b := &batching{Server: zktest.Start(t), t: t, spans: make(map[string]int64)}
	hooks := session.Trace{Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
		return ctx, func(error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.spans[r.Op+" "+r.Path] = r.Batch()
		}
	}}
	b.m, b.s = virtually(t, "h:1", b.Dialer(), append(opts, session.WithTrace(hooks))...)
	(*core.Manager)(b.m).SetWindow(1)
	for i := range dirs {
		_, err := b.s.Create(t.Context(), fmt.Sprint("/", i), nil, session.Persistent)
		must(t, err)
	}
	_, err := b.s.Create(t.Context(), "/busy", nil, session.Persistent)
	must(t, err)
	return b
}

// hold makes all that comes from now on wait.
func (b *batching) hold() {
	b.t.Helper()
	b.first = b.HoldReply(zktest.On(zktest.OpCreate, "/busy/"))
	b.opened = <-b.create(b.t.Context(), "/busy/n-").began
}

// begun is a create that was begun.
type begun struct {
	began chan *core.Creation // nil if nothing was sent
	err   error               // why nothing was sent; set before began is closed
}

// create begins to create a node, and returns when the create is sent or waits for room.
func (b *batching) create(ctx context.Context, path string) *begun {
	out := &begun{began: make(chan *core.Creation, 1)}
	go func() {
		c, err := (*core.Session)(b.s).StartCreate(ctx, nil, path, nil, core.EphemeralSequential)
		out.err = err
		out.began <- c
	}()
	synctest.Wait()
	return out
}

// created waits for the answer.
func (b *batching) created(o *begun) (string, error) {
	b.t.Helper()
	c := <-o.began
	if c == nil {
		return "", o.err
	}
	<-c.Done()
	return c.Result()
}

// remove begins to delete a node, and returns when the delete is sent or waits.
func (b *batching) remove(path string) *core.Removal {
	r := (*core.Session)(b.s).Remove(b.t.Context(), path)
	synctest.Wait()
	return r
}

func (b *batching) czxid(path string) int64 {
	b.t.Helper()
	stat, err := b.s.Exists(b.t.Context(), path)
	must(b.t, err)
	if stat == nil {
		b.t.Fatalf("%s is not there", path)
	}
	return stat.Czxid
}

func (b *batching) children(dir string) []string {
	b.t.Helper()
	names, _, err := b.s.Children(b.t.Context(), dir)
	must(b.t, err)
	slices.Sort(names)
	return names
}

// searches returns how many requests can have been sent to find out what became of others.
func (b *batching) searches() (n int) {
	for _, r := range b.Requests() {
		switch r.Op {
		case zktest.OpSync, zktest.OpExists, zktest.OpGetData:
			if r.Path != "/" { // which is that of heartbeats
				n++
			}
		}
	}
	return n
}

// batchOf returns the batch in which a request was sent, by the hooks.
func (b *batching) batchOf(request string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spans[request]
}

// Creates and deletes that come while others are under way are sent as one transaction, and each caller
// gets its own result. Their spans tell the number of the transaction.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 4)
		old, err := b.s.Create(t.Context(), "/0/n-", nil, session.EphemeralSequential)
		must(t, err)
		b.ResetRequests()
		b.hold()
		one, two := b.create(t.Context(), "/1/n-"), b.create(t.Context(), "/2/n-")
		gone := b.remove(old)
		three := b.create(t.Context(), "/0/n-")
		if n := b.Count(zktest.Any(zktest.OpMulti, zktest.OpDelete, zktest.OpCreate)); n != 1 {
			t.Errorf("%d writes are sent while one is under way", n)
		}
		b.first.Release()
		paths := make(map[string]int64)
		for _, c := range []*begun{one, two, three} {
			path, err := b.created(c)
			must(t, err)
			paths[path] = b.czxid(path)
		}
		<-gone.Done()
		must(t, gone.Err())
		if want := map[string]int64{"/1/n-0000000000": 0, "/2/n-0000000000": 0, "/0/n-0000000001": 0}; len(paths) != len(want) ||
			slices.ContainsFunc([]string{"/1/n-0000000000", "/2/n-0000000000", "/0/n-0000000001"}, func(p string) bool {
				return paths[p] == 0 || paths[p] != paths["/1/n-0000000000"]
			}) {
			t.Errorf("nodes and their transactions: %v", paths)
		}
		if names := b.children("/0"); !slices.Equal(names, []string{"n-0000000001"}) {
			t.Errorf("/0 has %v", names)
		}
		if multis, writes := b.Count(zktest.On(zktest.OpMulti, "")), b.Count(zktest.Any(zktest.OpDelete, zktest.OpCreate)); multis != 1 || writes != 1 {
			t.Errorf("%d multis and %d writes alone", multis, writes)
		}
		n := b.batchOf("create /1/n-")
		for _, request := range []string{"create /2/n-", "delete " + old, "create /0/n-"} {
			if got := b.batchOf(request); got == 0 || got != n {
				t.Errorf("%s was in batch %d, want %d", request, got, n)
			}
		}
		if got := b.batchOf("create /busy/n-"); got != 0 {
			t.Errorf("a request that was alone was in batch %d", got)
		}
	})
}

// Contenders of one directory never get one transaction id, and come in the order of their calls.
func TestBatchOneCreateInADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 2)
		b.hold()
		var all []*begun
		for range 5 {
			all = append(all, b.create(t.Context(), "/0/n-"), b.create(t.Context(), "/1/n-"))
		}
		b.first.Release()
		seen := make(map[string]bool)
		for i, c := range all {
			path, err := b.created(c)
			must(t, err)
			if want := fmt.Sprintf("/%d/n-%010d", i%2, i/2); path != want {
				t.Errorf("create %d made %s, want %s", i, path, want)
			}
			id := fmt.Sprint(i%2, " ", b.czxid(path))
			if seen[id] {
				t.Errorf("%s has the transaction id of another node of its directory", path)
			}
			seen[id] = true
		}
		if n := b.Count(zktest.On(zktest.OpMulti, "")); n == 0 {
			t.Error("nothing was sent together")
		}
	})
}

// A transaction has at most 16 operations.
func TestBatchSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 50)
		b.ResetRequests()
		b.hold()
		var all []*begun
		for i := range 50 {
			all = append(all, b.create(t.Context(), fmt.Sprintf("/%d/n-", i)))
		}
		b.first.Release()
		perBatch := make(map[int64]int)
		for _, c := range all {
			path, err := b.created(c)
			must(t, err)
			perBatch[b.czxid(path)]++
		}
		for id, n := range perBatch {
			if n > 16 {
				t.Errorf("transaction %d made %d nodes", id, n)
			}
		}
		if len(perBatch) != 4 || b.Count(zktest.On(zktest.OpMulti, "")) != 4 {
			t.Errorf("50 creates in %d transactions", len(perBatch))
		}
	})
}

// A transaction that fails says nothing final about any part. All parts are sent again, each alone, and
// nobody loses or doubles a node. After that, requests go alone for a while.
func TestBatchFails(t *testing.T) {
	for name, c := range map[string]struct {
		bad  string
		want error
	}{
		"no parent": {"/none/n-", zk.ErrNoNode},
		"no right":  {"/closed/n-", zk.ErrNoAuth},
		"first":     {"/none/n-", zk.ErrNoNode},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBatching(t, 5)
				_, err := b.s.Multi(t.Context(), &zk.CreateRequest{Path: "/closed", Acl: zk.WorldACL(zk.PermRead)})
				must(t, err)
				old, err := b.s.Create(t.Context(), "/0/n-", nil, session.EphemeralSequential)
				must(t, err)
				b.ResetRequests()
				b.hold()
				var bad *begun
				if name == "first" {
					bad = b.create(t.Context(), c.bad)
				}
				gone := b.remove(old)
				var good []*begun
				for i := range 5 {
					good = append(good, b.create(t.Context(), fmt.Sprintf("/%d/n-", i)))
					if i == 2 && bad == nil {
						bad = b.create(t.Context(), c.bad)
					}
				}
				b.first.Release()
				if path, err := b.created(bad); path != "" {
					t.Errorf("made %s", path)
				} else {
					wantErr(t, "the bad create", err, c.want)
				}
				for i, one := range good {
					path, err := b.created(one)
					must(t, err)
					if names := b.children(fmt.Sprint("/", i)); len(names) != 1 || !strings.HasSuffix(path, names[0]) {
						t.Errorf("directory %d has %v, and %s was made", i, names, path)
					}
				}
				<-gone.Done()
				must(t, gone.Err())
				if multis, writes := b.Count(zktest.On(zktest.OpMulti, "")), b.Count(zktest.Any(zktest.OpDelete, zktest.OpCreate)); multis != 1 || writes != 1+7 {
					t.Errorf("%d multis and %d writes alone", multis, writes)
				}
				// The next ones go alone, although they have waited.
				b.hold()
				for i := range 5 {
					good[i] = b.create(t.Context(), fmt.Sprintf("/%d/n-", i))
				}
				b.first.Release()
				for _, one := range good {
					_, err := b.created(one)
					must(t, err)
				}
				if multis, n := b.Count(zktest.On(zktest.OpMulti, "")), b.Count(zktest.On(zktest.OpCreate, "")); multis != 1 || n != 1+6+1+5 {
					t.Errorf("%d multis and %d creates after a failure", multis, n)
				}
			})
		})
	}
}

// If the reply to a transaction is lost, nobody knows what became of its parts. A create fails with an
// error that says so, and a delete is sent again.
func TestBatchLostReply(t *testing.T) {
	for name, cut := range map[string]func(*zktest.Server, zktest.Match) *zktest.Fault{
		"before": (*zktest.Server).CutBefore,
		"after":  (*zktest.Server).CutAfterCommit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBatching(t, 3)
				old, err := b.s.Create(t.Context(), "/0/n-", nil, session.EphemeralSequential)
				must(t, err)
				b.hold()
				cut(b.Server, zktest.On(zktest.OpMulti, ""))
				one, two, gone := b.create(t.Context(), "/1/n-"), b.create(t.Context(), "/2/n-"), b.remove(old)
				b.first.Release()
				for _, c := range []*begun{one, two} {
					if _, err := b.created(c); !core.Uncertain(err) {
						t.Errorf("create: %v", err)
					}
				}
				<-gone.Done()
				must(t, gone.Err())
				if n := b.batchOf("delete " + old); n != 0 {
					t.Errorf("the second delete was alone, and its span says that it was in transaction %d", n)
				}
				made := 0
				if name == "after" {
					made = 1
				}
				for dir, n := range map[string]int{"/0": 0, "/1": made, "/2": made} {
					if names := b.children(dir); len(names) != n {
						t.Errorf("%s has %v", dir, names)
					}
				}
			})
		})
	}
}

// When the session ends, with a batch under way and requests that wait for the next, every caller is told.
func TestBatchSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 4)
		b.hold()
		reply := b.HoldReply(zktest.On(zktest.OpMulti, ""))
		under := []*begun{b.create(t.Context(), "/0/n-"), b.create(t.Context(), "/1/n-")}
		b.first.Release()
		<-reply.Hit()
		<-b.opened.Done()
		old, err := b.opened.Result()
		must(t, err)
		gone := b.remove(old)
		waits := []*begun{b.create(t.Context(), "/2/n-"), b.create(t.Context(), "/3/n-")}
		closed := make(chan error, 1)
		go func() { closed <- b.m.Close() }()
		for _, c := range waits { // at once
			_, err := b.created(c)
			wantErr(t, "create", err, session.ErrClosed)
		}
		for _, c := range under {
			_, err := b.created(c)
			wantErr(t, "create", err, session.ErrClosed)
		}
		if n := b.Count(zktest.On(zktest.OpCreate, "/2/")) + b.Count(zktest.On(zktest.OpCreate, "/3/")); n > 0 {
			t.Errorf("%d creates that waited were sent", n)
		}
		<-gone.Done()
		reply.Release()
		must(t, <-closed)
	})
}

// A caller that gives up before its request is sent returns at once. The request is never sent, and the room of its
// node is free without a look at the server.
func TestBatchCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 3, session.WithMaxNodes(5))
		old, err := b.s.Create(t.Context(), "/0/n-", nil, session.EphemeralSequential)
		must(t, err)
		b.hold()
		ctx, cancel := context.WithCancel(t.Context())
		one := b.create(ctx, "/1/n-")
		made := make(chan error, 1)
		go func() {
			_, err := b.s.Create(ctx, "/busy/m-", nil, session.EphemeralSequential)
			made <- err
		}()
		synctest.Wait()
		two := b.create(t.Context(), "/2/n-") // the last for which there is room
		_, err = b.s.Create(t.Context(), "/2/n-", nil, session.EphemeralSequential)
		wantErr(t, "one too many", err, session.ErrTooManyNodes)
		deleted := make(chan error, 1)
		go func() { deleted <- b.s.Delete(ctx, old, -1) }()
		synctest.Wait()
		cancel()
		wantErr(t, "delete", <-deleted, context.Canceled)
		wantErr(t, "create", <-made, context.Canceled)
		creation := <-one.began
		creation.Leave()                        // as a contender does that gives up
		three := b.create(t.Context(), "/1/m-") // waits for the room
		b.ResetRequests()
		b.first.Release()
		<-creation.Done()
		if _, err := creation.Result(); !errors.Is(err, context.Canceled) || core.Uncertain(err) {
			t.Errorf("create: %v", err)
		}
		for _, c := range []*begun{two, three} {
			_, err := b.created(c)
			must(t, err)
		}
		for dir, want := range map[string]string{"/0": "[n-0000000000]", "/1": "[m-0000000000]", "/2": "[n-0000000000]"} {
			if names := b.children(dir); fmt.Sprint(names) != want {
				t.Errorf("%s has %v", dir, names)
			}
		}
		if n := b.searches() + b.Count(zktest.On(zktest.OpDelete, "")); n > 0 {
			t.Errorf("%d requests look for nodes that cannot be there, or delete them", n)
		}
	})
}

// While the window has room, each request goes alone and at once. Those that find none go together.
func TestBatchFewGoAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBatching(t, 40)
		(*core.Manager)(b.m).SetWindow(0) // as users have it: 16 at first
		b.Disconnect()
		synctest.Wait()
		b.children("/")
		b.ResetRequests()
		b.hold()
		var all []*begun
		for i := range 40 {
			all = append(all, b.create(t.Context(), fmt.Sprintf("/%d/n-", i)))
		}
		if n := b.Count(zktest.On(zktest.OpCreate, "")); n != 16 {
			t.Errorf("%d creates are sent, want 16", n)
		}
		b.first.Release()
		for _, c := range all {
			_, err := b.created(c)
			must(t, err)
		}
		for i := range all {
			if n := b.batchOf(fmt.Sprintf("create /%d/n-", i)); (n > 0) != (i >= 15) {
				t.Errorf("create %d was in batch %d", i, n)
			}
		}
	})
}
