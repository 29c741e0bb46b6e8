package place

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/turnstile-go/turnstile/internal/core"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/kinds"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// oldDir makes a directory whose counter has the given value.
func oldDir(t *testing.T, count int) string {
	t.Helper()
	dir, admin := testserver.Path(t), testserver.Admin(t)
	if _, err := admin.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		return dir
	}
	var creates, deletes []any
	for range count {
		creates = append(creates, &zk.CreateRequest{Path: dir + "/x", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence})
	}
	made, err := admin.Multi(creates...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range made {
		deletes = append(deletes, &zk.DeleteRequest{Path: r.String, Version: -1})
	}
	if _, err := admin.Multi(deletes...); err != nil {
		t.Fatal(err)
	}
	return dir
}

func exists(t *testing.T, dir string) bool {
	t.Helper()
	ok, _, err := testserver.Admin(t).Exists(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func waitGone(t *testing.T, dir string) {
	t.Helper()
	zktest.Eventually(t, testserver.Patience, "the directory to be removed", func() bool { return !exists(t, dir) })
}

func testQueue(t *testing.T, dir string) (*Queue, *zktest.Proxy) {
	t.Helper()
	proxy := testserver.Proxy(t)
	q, err := New((*core.Manager)(testserver.Connect(t, proxy.Addr(), session.WithTimeout(20*time.Second))), dir)
	if err != nil {
		t.Fatal(err)
	}
	return q, proxy
}

func lock(t *testing.T, q *Queue) *Lease {
	t.Helper()
	l, err := q.Acquire(expect.Patient(t), Request{Kind: mutexKind})
	expect.NoError(t, err)
	return l
}

// locking is lock in a goroutine of its own.
func locking(t *testing.T, q *Queue) func() *Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
	t.Cleanup(cancel)
	var l *Lease
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		l, err = q.Acquire(ctx, Request{Kind: mutexKind})
	}()
	return func() *Lease {
		t.Helper()
		<-done
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func sequenceOf(t *testing.T, l *Lease) int {
	t.Helper()
	n, err := strconv.Atoi(l.Path()[len(l.Path())-10:])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The client that leaves a directory with an old counter empty deletes it, and not earlier. Then
// counting starts again.
func TestRestart(t *testing.T) {
	dir := oldDir(t, earlyRestart-1)
	q, proxy := testQueue(t, dir)
	giveBack(t, lock(t, q)) // one below the limit
	l := lock(t, q)
	if got := sequenceOf(t, l); got != earlyRestart {
		t.Fatalf("sequence %d, want %d", got, earlyRestart)
	}
	if n := proxy.Count(func(r zktest.Request) bool { return r.Op == zktest.OpDelete && r.Path == dir }); n > 0 {
		t.Fatal("removed below the limit")
	}
	other, _ := testQueue(t, dir)
	next := locking(t, other)
	testserver.WaitChildren(t, dir, 2)
	giveBack(t, l)
	l = next()
	if !exists(t, dir) || l.Err() != nil {
		t.Fatal("removed under a holder")
	}
	giveBack(t, l)
	waitGone(t, dir)
	l = lock(t, q)
	if got := sequenceOf(t, l); got != 0 {
		t.Errorf("sequence %d after the directory was removed", got)
	}
	giveBack(t, l)
}

// A client that leaves without having held does the same.
func TestRestartByCancelled(t *testing.T) {
	dir := oldDir(t, earlyRestart)
	q, proxy := testQueue(t, dir)
	hold := proxy.HoldReply(zktest.On(zktest.OpCreate, dir+"/"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := q.Acquire(ctx, Request{Kind: mutexKind})
		done <- err
	}()
	<-hold.Hit()
	cancel()
	if err := <-done; err == nil {
		t.Fatal("granted without a reply")
	}
	hold.Release()
	waitGone(t, dir)
}

// A contender comes while the directory is being deleted. Either its node is first and the directory
// stays, or the directory goes and is created again.
func TestRestartMeetsNewcomer(t *testing.T) {
	for _, c := range []struct {
		what  string
		first func(t *testing.T, q *Queue, removal *zktest.Fault, p *zktest.Proxy, dir string) *Lease
		want  int
	}{
		{"newcomer first", func(t *testing.T, q *Queue, removal *zktest.Fault, _ *zktest.Proxy, _ string) *Lease {
			l := lock(t, q)
			removal.Release()
			return l
		}, earlyRestart + 1},
		{"removal first", func(t *testing.T, q *Queue, removal *zktest.Fault, p *zktest.Proxy, dir string) *Lease {
			create := p.HoldRequest(zktest.On(zktest.OpCreate, dir+"/"))
			got := locking(t, q)
			<-create.Hit()
			removal.Release()
			waitGone(t, dir)
			create.Release()
			return got()
		}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := oldDir(t, earlyRestart)
			q, proxy := testQueue(t, dir)
			newcomer, newProxy := testQueue(t, dir)
			l := lock(t, q)
			removal := proxy.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpDelete && r.Path == dir })
			giveBack(t, l)
			<-removal.Hit()
			l = c.first(t, newcomer, removal, newProxy, dir)
			if got := sequenceOf(t, l); got != c.want {
				t.Errorf("sequence %d, want %d", got, c.want)
			}
			if l.Err() != nil || !exists(t, l.Path()) {
				t.Errorf("the newcomer has lost: %v", l.Err())
			}
			giveBack(t, l)
		})
	}
}

// A client whose node has a number past the end of the counter does the same. Otherwise no client of
// this module could enter before another one has deleted the directory. No server can be brought
// there within a test, so the node is created by name.
func TestRestartPastTheEnd(t *testing.T) {
	for _, seq := range []string{"2147483647", "-000000005", "-2147483648"} {
		dir := oldDir(t, 0)
		q, _ := testQueue(t, dir)
		a := newAttempt(q, (*core.Session)(testserver.Session(t, (*session.Manager)(q.Manager()))), &Request{Kind: mutexKind, Prefix: kinds.PrefixLock, Weight: 1}, &Entry{})
		name := kinds.NodeName(a.id, kinds.PrefixLock, 1, false) + seq
		if _, err := testserver.Admin(t).Create(path.Join(dir, name), nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if err := a.found(path.Join(dir, name)); !errors.Is(err, ErrSequence) {
			t.Fatalf("%s: %v", seq, err)
		}
		<-a.remove(t.Context()).Done()
		waitGone(t, dir)
	}
}

// Many contenders pass through a directory that is deleted again and again.
func TestRestartUnderLoad(t *testing.T) {
	dir := oldDir(t, earlyRestart)
	admin := testserver.Admin(t)
	var holders atomic.Int32
	var g errgroup.Group
	for range 4 {
		q, _ := testQueue(t, dir)
		g.Go(func() error {
			for range 25 {
				ctx, cancel := context.WithTimeout(context.Background(), testserver.Patience)
				defer cancel()
				l, err := q.Acquire(ctx, Request{Kind: mutexKind})
				if err != nil {
					return err
				}
				if n := holders.Add(1); n != 1 {
					return fmt.Errorf("%d holders", n)
				}
				if ok, _, err := admin.Exists(l.Path()); !ok || err != nil {
					return fmt.Errorf("a lease without a node: %v", err)
				}
				holders.Add(-1)
				if err := l.Release(ctx, Done); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
