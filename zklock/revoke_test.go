package zklock_test

import (
	"context"
	"path"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// asks returns an option for a mutex, and a channel with the arguments of its callback.
func asks() (zklock.Option, chan *queue.Lease) {
	ch := make(chan *queue.Lease, 10)
	return zklock.WithRevocable(func(l *queue.Lease) { ch <- l }), ch
}

// curatorRevokes does what Curator's Revoker.attemptRevoke does: it sets the node's data.
func curatorRevokes(t *testing.T, node string) {
	t.Helper()
	_, err := testserver.Admin(t).Set(node, []byte("__REVOKE__"), -1)
	must(t, err)
}

// The holder is asked once for each hold, however many requests there are.
func TestRevoke(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	option, asked := asks()
	proxy := testserver.Proxy(t)
	mx := newMutex(t, testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout)), dir, option)
	other := connect(t)
	// looks returns the number of times that a holder has read its node. It reads it again only after it has
	// dealt with the last answer.
	looks := func() int { return proxy.Count(zktest.On(zktest.OpGetData, dir)) }
	for _, revoke := range []func(node string){
		func(node string) { must(t, zklock.Revoke(ctx, other, node)) },
		func(node string) { curatorRevokes(t, node) },
	} {
		must(t, mx.Lock(ctx))
		all, err := mx.Contenders(ctx)
		must(t, err)
		node := all[0].Path
		revoke(node)
		l := receive(t, "the request", asked)
		if l.Path() != node || l.Err() != nil || !mx.Held() {
			t.Errorf("asked for %s: %v; held %v", l.Path(), l.Err(), mx.Held())
		}
		before := looks()
		zktest.Eventually(t, testserver.Patience, "the holder to look twice again", func() bool {
			revoke(node)
			return looks() >= before+2
		})
		must(t, mx.Unlock())
	}
	if len(asked) > 0 {
		t.Error("asked more than once for one hold")
	}
	testserver.WaitChildren(t, dir, 0)
}

// A request that comes before the contender can hear it is not lost. The contender is asked when it holds the
// lock and is connected.
func TestRevokeEarly(t *testing.T) {
	for _, c := range []struct {
		what string
		lock func(t *testing.T, ctx context.Context, mx *zklock.Mutex, dir string, proxy *zktest.Proxy)
	}{
		{"before the watch is set", func(t *testing.T, ctx context.Context, mx *zklock.Mutex, dir string, proxy *zktest.Proxy) {
			held := proxy.HoldRequest(zktest.On(zktest.OpGetData, dir))
			must(t, mx.Lock(ctx))
			receive(t, "the watch", held.Hit())
			curatorRevokes(t, dir+"/"+testserver.Children(t, dir)[0])
			held.Release()
		}},
		{"while waiting", func(t *testing.T, ctx context.Context, mx *zklock.Mutex, dir string, _ *zktest.Proxy) {
			holder, err := newMutex(t, connect(t), dir).Acquire(ctx)
			must(t, err)
			locked := background(func() error { return mx.Lock(ctx) })
			testserver.WaitChildren(t, dir, 2)
			for _, name := range testserver.Children(t, dir) {
				if node := dir + "/" + name; node != holder.Path() {
					must(t, zklock.Revoke(ctx, connect(t), node))
				}
			}
			pending(t, "Lock of one who was asked for it", locked)
			must(t, holder.Release(ctx))
			must(t, receive(t, "Lock", locked))
		}},
		{"while disconnected", func(t *testing.T, ctx context.Context, mx *zklock.Mutex, dir string, proxy *zktest.Proxy) {
			must(t, mx.Lock(ctx))
			proxy.Refuse(true)
			proxy.Disconnect()
			must(t, zklock.Revoke(ctx, connect(t), dir+"/"+testserver.Children(t, dir)[0]))
			proxy.Heal()
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			ctx := patient(t)
			dir := testserver.Path(t)
			proxy := testserver.Proxy(t)
			option, asked := asks()
			mx := newMutex(t, testserver.Connect(t, proxy.Addr(), session.WithTimeout(faultTimeout)), dir, option)
			c.lock(t, ctx, mx, dir, proxy)
			if l := receive(t, "the request", asked); l.Err() != nil {
				t.Errorf("asked for what is not held: %v", l.Err())
			}
			must(t, mx.Unlock())
			if len(asked) > 0 {
				t.Error("asked more than once")
			}
		})
	}
}

// A callback that does not return delays nothing else: not the release of its own lock, not the report of its
// loss, and not other locks of the session.
func TestRevokeCallbackBlocks(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	entered, leave := make(chan *queue.Lease, 10), make(chan struct{})
	defer close(leave)
	m := connect(t)
	blocks := zklock.WithRevocable(func(l *queue.Lease) {
		entered <- l
		<-leave
	})
	for _, name := range []string{"/a", "/b"} {
		mx := newMutex(t, m, dir+name, blocks)
		must(t, mx.Lock(ctx))
		must(t, zklock.Revoke(ctx, m, dir+name+"/"+testserver.Children(t, dir+name)[0]))
		receive(t, "the request", entered)
		next := background(func() error { return mx.Lock(ctx) })
		testserver.WaitChildren(t, dir+name, 2)
		must(t, mx.Unlock())
		must(t, receive(t, "the next Lock", next))
		must(t, mx.Unlock())
	}
	mx := newMutex(t, m, dir+"/a", blocks)
	must(t, mx.Lock(ctx))
	node := testserver.Children(t, dir+"/a")[0]
	must(t, zklock.Revoke(ctx, m, dir+"/a/"+node))
	receive(t, "the request", entered)
	testserver.Delete(t, dir, "a", node)
	waitLost(t, mx)
	wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
}

// The callback may release the lease itself. A mutex without WithRevocable ignores requests.
func TestRevokeRelease(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	released := make(chan error, 1)
	mx := newMutex(t, connect(t), dir, zklock.WithRevocable(func(l *queue.Lease) { released <- l.Release(ctx) }))
	l, err := mx.Acquire(ctx)
	must(t, err)
	must(t, zklock.Revoke(ctx, connect(t), l.Path()))
	must(t, receive(t, "Release", released))
	wantErr(t, "Err", l.Err(), queue.ErrReleased)

	deaf := newMutex(t, connect(t), dir)
	l, err = deaf.Acquire(ctx)
	must(t, err)
	curatorRevokes(t, l.Path())
	must(t, l.Err())
	must(t, l.Release(ctx))
}

// A contender that does not listen cannot be revoked, and its node stays as it is. Where the node does
// not say, as those of other libraries, Revoke sends the message.
func TestRevokeOfDeaf(t *testing.T) {
	ctx := patient(t)
	m := connect(t)
	listen, _ := asks()
	own := func(revoked func(*queue.Lease)) func(dir string) (*queue.Lease, error) {
		return func(dir string) (*queue.Lease, error) {
			q, err := queue.New(m, dir)
			must(t, err)
			return q.Acquire(ctx, queue.Request{Kind: queue.Mutex(), Data: []byte(`{"id":"mine"}`), Revoked: revoked})
		}
	}
	mx := func(opts ...zklock.Option) func(dir string) (*queue.Lease, error) {
		return func(dir string) (*queue.Lease, error) { return newMutex(t, m, dir, opts...).Acquire(ctx) }
	}
	rw := func(opts ...rwlock.Option) func(dir string) (*queue.Lease, error) {
		return func(dir string) (*queue.Lease, error) {
			l, err := rwlock.New(m, dir, opts...)
			must(t, err)
			return l.Reader().Acquire(ctx)
		}
	}
	sem := func(opts ...semaphore.Option) func(dir string) (*queue.Lease, error) {
		return func(dir string) (*queue.Lease, error) {
			s, err := semaphore.New(m, dir, 2, opts...)
			must(t, err)
			return s.Acquire(ctx)
		}
	}
	f := func(*queue.Lease) {}
	for what, c := range map[string]struct {
		acquire func(dir string) (*queue.Lease, error)
		want    queue.Revocable
	}{
		"mutex":                       {mx(), queue.RevocableNo},
		"mutex that listens":          {mx(listen), queue.RevocableYes},
		"local":                       {mx(zklock.WithLocalHandover(2)), queue.RevocableNo},
		"local that listens":          {mx(zklock.WithLocalHandover(2), listen), queue.RevocableYes},
		"data of its own":             {own(nil), queue.RevocableUnknown},
		"data, and listens":           {own(func(*queue.Lease) {}), queue.RevocableUnknown},
		"reader":                      {rw(), queue.RevocableNo},
		"reader that listens":         {rw(rwlock.WithRevocable(f)), queue.RevocableYes},
		"semaphore":                   {sem(), queue.RevocableNo},
		"semaphore that listens":      {sem(semaphore.WithRevocable(f)), queue.RevocableYes},
		"Curator's layout":            {sem(semaphore.WithCuratorLayout()), queue.RevocableNo},
		"Curator's layout, listening": {sem(semaphore.WithCuratorLayout(), semaphore.WithRevocable(f)), queue.RevocableYes},
	} {
		t.Run(what, func(t *testing.T) {
			l, err := c.acquire(testserver.Path(t))
			must(t, err)
			before, _, err := testserver.Admin(t).Get(l.Path())
			must(t, err)
			if got := revocableAt(t, m, l); got != c.want {
				t.Errorf("Contenders: %v, want %v, with data %s", got, c.want, before)
			}
			err = zklock.Revoke(ctx, m, l.Path())
			after, stat, getErr := testserver.Admin(t).Get(l.Path())
			must(t, getErr)
			if c.want == queue.RevocableNo {
				wantErr(t, "Revoke", err, zklock.ErrNotRevocable)
				if string(after) != string(before) || stat.Version != 0 {
					t.Errorf("data %s in version %d, want %s untouched", after, stat.Version, before)
				}
			} else {
				wantErr(t, "Revoke", err, nil)
				if string(after) != queue.RevokeMessage {
					t.Errorf("data %s", after)
				}
				if got := revocableAt(t, m, l); got != queue.RevocableUnknown {
					t.Errorf("Contenders after that: %v, want unknown", got)
				}
			}
			must(t, l.Release(ctx))
		})
	}
}

// revocableAt returns what Contenders says of a lease. It looks for it as if it did not know the kind of
// lock.
func revocableAt(t *testing.T, m *session.Manager, l *queue.Lease) queue.Revocable {
	t.Helper()
	node, _ := queue.ParseNode(path.Base(l.Path()))
	kind := &queue.Kind{Name: "any", Prefixes: []string{node.Prefix}, Policy: func(queue.Node) queue.Policy { return queue.Policy{} }}
	q, err := queue.New(m, path.Dir(l.Path()))
	must(t, err)
	all, err := q.Contenders(patient(t), kind)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	return all[0].Revocable
}

// If the data changes between the look and the message, Revoke looks again.
func TestRevokeOfDataThatChanges(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	proxy := testserver.Proxy(t)
	l, err := newMutex(t, connect(t), dir).Acquire(ctx)
	must(t, err)
	write(t, l.Path(), "unknown")
	held := proxy.HoldRequest(zktest.On(zktest.OpSetData, dir))
	revoked := background(func() error { return zklock.Revoke(ctx, testserver.Connect(t, proxy.Addr()), l.Path()) })
	receive(t, "the message", held.Hit())
	now := `{"id":"newer","revocable":false}`
	_, err = testserver.Admin(t).Set(l.Path(), []byte(now), -1)
	must(t, err)
	held.Release()
	wantErr(t, "Revoke", receive(t, "Revoke", revoked), zklock.ErrNotRevocable)
	if data, _, err := testserver.Admin(t).Get(l.Path()); err != nil || string(data) != now {
		t.Errorf("data %s, %v", data, err)
	}
	must(t, l.Release(ctx))
}

// A node that may be written but not read is asked, since nobody can know.
func TestRevokeOfUnreadable(t *testing.T) {
	ctx := patient(t)
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t, session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...)), dir)
	_, err := testserver.Admin(t).Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	l, err := mx.Acquire(ctx)
	must(t, err)
	must(t, zklock.Revoke(ctx, connect(t), l.Path()))
	must(t, l.Release(ctx))
}

// If the reply to the message is lost, the message is sent again, and the holder is asked once.
func TestRevokeReplyLost(t *testing.T) {
	for what, arm := range map[string]func(*zktest.Proxy, zktest.Match) *zktest.Fault{
		"before": (*zktest.Proxy).CutBefore,
		"after":  (*zktest.Proxy).CutAfterCommit,
	} {
		t.Run(what, func(t *testing.T) {
			ctx := patient(t)
			dir := testserver.Path(t)
			option, asked := asks()
			l, err := newMutex(t, connect(t), dir, option).Acquire(ctx)
			must(t, err)
			proxy := testserver.Proxy(t)
			fault := arm(proxy, zktest.On(zktest.OpSetData, dir))
			must(t, zklock.Revoke(ctx, testserver.Connect(t, proxy.Addr()), l.Path()))
			receive(t, "the fault", fault.Hit())
			receive(t, "the request", asked)
			must(t, l.Release(ctx))
			if len(asked) > 0 {
				t.Error("asked more than once")
			}
		})
	}
}

// Revoke returns an error for bad input, before any I/O: the manager here cannot do any. It returns another error
// for a contender that is gone.
func TestRevokeErrors(t *testing.T) {
	ctx := patient(t)
	for _, node := range []string{
		"", "/", "locks/a/lock-0000000000", "/locks/a", "/locks/a/", "/locks/a/readme",
		"/locks/a/lock-", "/locks/a/lock-1", "/locks/a/block-0000000000", "/lock-0000000000",
	} {
		wantErr(t, "Revoke of "+node, zklock.Revoke(ctx, new(session.Manager), node), session.ErrInvalid)
	}
	const gone = "/locks/gone/_c_4b1c5fd6-lock-0000000000"
	wantErr(t, "Revoke by a nil manager", zklock.Revoke(ctx, nil, gone), session.ErrInvalid)
	m := connect(t)
	wantErr(t, "Revoke of one who is gone", zklock.Revoke(ctx, m, gone), zk.ErrNoNode)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "Revoke with a ctx that has ended", zklock.Revoke(ended, m, gone), context.Canceled)
	must(t, m.Close())
	wantErr(t, "Revoke by a closed manager", zklock.Revoke(ctx, m, gone), session.ErrClosed)
}
