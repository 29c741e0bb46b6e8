package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// impatient is a process whose waits end as soon as they know who is ahead.
type impatient struct {
	m   *session.Manager
	end atomic.Pointer[context.CancelFunc]
}

func newImpatient(t *testing.T, servers string) *impatient {
	p := &impatient{}
	p.m = testserver.Connect(t, servers, session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, w session.WatchInfo) (context.Context, func(error)) {
			over := make(chan struct{})
			go func() {
				look := time.NewTicker(time.Millisecond)
				defer look.Stop()
				for known := false; !known; _, known = w.Known() {
					select {
					case <-look.C:
					case <-over:
						return
					}
				}
				(*p.end.Load())()
			}()
			return ctx, func(error) { close(over) }
		},
	}))
	return p
}

// wait returns the error of a call that has to wait for another contender.
func (p *impatient) wait(t *testing.T, lock func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(patient(t))
	p.end.Store(&cancel)
	err := lock(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want one that matches %v", err, context.Canceled)
	}
	return err
}

// soon returns the error of a call that has to wait for its own process, and whose ctx ends.
func soon(t *testing.T, lock func(context.Context) error) (err error) {
	t.Helper()
	patience := time.Millisecond
	zktest.Eventually(t, testserver.Patience, "an error that gives a reason", func() bool {
		patience *= 2
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err = lock(ctx)
		wantErr(t, "Lock", err, context.DeadlineExceeded)
		return strings.Contains(err.Error(), "(") // not if ctx has ended before Lock began
	})
	return err
}

// A wait that ends by its context says who was ahead, for all kinds of lock.
func TestWaitErrors(t *testing.T) {
	dir := testserver.Path(t)
	other, me := connect(t), newImpatient(t, testserver.Server(t).Addr(0))
	label := queue.WithLabel(patient(t), "request 42")
	texts := map[string]testserver.ErrorText{}

	held, err := newMutex(t, other, dir+"/m").Acquire(patient(t))
	must(t, err)
	write(t, held.Path(), "web-3/4711")
	must(t, newMutex(t, me.m, dir+"/own").Lock(label))
	texts["a mutex"] = testserver.ErrorText{Err: me.wait(t, newMutex(t, me.m, dir+"/m").Lock),
		Want: "acquire /a/m: context canceled (held by web-3/4711, in the queue for 1s)"}
	texts["of this process"] = testserver.ErrorText{Err: me.wait(t, newMutex(t, me.m, dir+"/own").Lock),
		Want: `acquire /a/own: context canceled (held by this process, "request 42", in the queue for 1s)`}
	testserver.WaitChildren(t, dir+"/m", 1) // the node of the wait that ended is gone
	multi, err := zklock.Multi(newMutex(t, me.m, dir+"/a"), newMutex(t, me.m, dir+"/m"))
	must(t, err)
	texts["several"] = testserver.ErrorText{Err: me.wait(t, multi.Lock),
		Want: "acquire /a/m: context canceled (held by web-3/4711, in the queue for 1s)"}
	testserver.WaitChildren(t, dir+"/m", 1)
	texts["local"] = testserver.ErrorText{Err: me.wait(t, newMutex(t, me.m, dir+"/m", zklock.WithLocalHandover(1)).Lock),
		Want: "acquire /a/m: context canceled (held by web-3/4711, in the queue for 1s)"}
	local := newMutex(t, me.m, dir+"/local", zklock.WithLocalHandover(1))
	must(t, local.Lock(patient(t)))
	texts["local, held here"] = testserver.ErrorText{Err: soon(t, local.Lock),
		Want: "acquire /a/local: context deadline exceeded (held by this process for 1s)"}

	rw, err := rwlock.New(other, dir+"/rw")
	must(t, err)
	mine, err := rwlock.New(me.m, dir+"/rw")
	must(t, err)
	must(t, rw.RLock(patient(t)))
	must(t, rw.RLock(patient(t)))
	rename := func() {
		for _, name := range testserver.Children(t, dir+"/rw") {
			write(t, dir+"/rw/"+name, "reader")
		}
	}
	rename()
	texts["a writer"] = testserver.ErrorText{Err: me.wait(t, mine.Lock),
		Want: "acquire /a/rw: context canceled (held by reader, in the queue for 1s; 1 more ahead)"}
	testserver.WaitChildren(t, dir+"/rw", 2) // a third may be the node of the wait that ended
	writing := background(func() error { return rw.Lock(label) })
	testserver.WaitChildren(t, dir+"/rw", 3)
	rename()
	texts["a reader behind a writer that waits"] = testserver.ErrorText{Err: me.wait(t, mine.RLock),
		Want: "acquire /a/rw: context canceled (behind reader, in the queue for 1s)"}
	must(t, rw.RUnlock())
	must(t, rw.RUnlock())
	must(t, receive(t, "the write lock", writing))
	texts["a reader"] = testserver.ErrorText{Err: me.wait(t, mine.RLock),
		Want: "acquire /a/rw: context canceled (held by reader, in the queue for 1s)"}

	for name, opts := range map[string][]semaphore.Option{"/s": nil, "/c": {semaphore.WithCuratorLayout()}} {
		sem, err := semaphore.New(other, dir+name, 2, opts...)
		must(t, err)
		for range 2 {
			held, err := sem.Acquire(patient(t))
			must(t, err)
			write(t, held.Path(), "user")
		}
		mine, err := semaphore.New(me.m, dir+name, 2, opts...)
		must(t, err)
		path := map[string]string{"/s": "/a/s", "/c": "/a/c/leases"}[name]
		texts["a semaphore "+name] = testserver.ErrorText{Err: me.wait(t, mine.Lock),
			Want: "acquire " + path + ": context canceled (2 of 2 leases taken; held by user, in the queue for 1s; 1 more ahead)"}
	}
	testserver.CheckTexts(t, dir, texts)
}

// A wait that ends while there is no connection says so.
func TestWaitErrorWithoutConnection(t *testing.T) {
	dir := testserver.Path(t)
	must(t, newMutex(t, connect(t), dir).Lock(patient(t)))
	proxy := testserver.Proxy(t)
	watched := make(chan struct{}, 10)
	m := testserver.Connect(t, proxy.Addr(), session.WithTrace(session.Trace{
		Watch: func(ctx context.Context, _ session.WatchInfo) (context.Context, func(error)) {
			watched <- struct{}{}
			return ctx, nil
		},
	}))
	for _, opts := range [][]zklock.Option{nil, {zklock.WithLocalHandover(1)}} {
		ctx, cancel := context.WithCancel(patient(t))
		locking := background(func() error { return newMutex(t, m, dir, opts...).Lock(ctx) })
		receive(t, "the wait", watched)
		proxy.Refuse(true)
		proxy.Disconnect()
		zktest.Eventually(t, testserver.Patience, "the manager to notice", func() bool { return m.State() == session.Suspended })
		cancel()
		err := receive(t, "Lock", locking)
		wantErr(t, "Lock", err, context.Canceled)
		if !strings.Contains(err.Error(), "(not connected") {
			t.Errorf("%v does not say that there is no connection", err)
		}
		proxy.Heal()
		zktest.Eventually(t, testserver.Patience, "the connection", func() bool { return m.State() == session.Connected })
	}
}

// The text of a wait that ends has the cause that the caller gave its context, and the error does not match it.
func TestWaitErrorCause(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		must(t, newMutex(t, connect(), lockPath).Lock(t.Context()))
		cause := fmt.Errorf("the client has hung up: %w", session.ErrLost)
		for _, opts := range [][]zklock.Option{nil, {zklock.WithLocalHandover(1)}} {
			ctx, cancel := context.WithCancelCause(t.Context())
			mx := newMutex(t, connect(), lockPath, opts...)
			locking := background(func() error { return mx.Lock(ctx) })
			synctest.Wait()
			cancel(cause)
			err := receive(t, "Lock", locking)
			wantErr(t, "Lock", err, context.Canceled)
			if errors.Is(err, session.ErrLost) || !strings.HasSuffix(err.Error(), ": "+cause.Error()) {
				t.Errorf("%v", err)
			}
		}
	})
}

// A wait that ends while the network drops everything, unnoticed as yet, names the server that does not answer. It does so
// whether the request for a place is in flight, or it has waited and a heartbeat is.
func TestWaitErrorOfSilence(t *testing.T) {
	for name, waits := range map[string]bool{"asks": false, "waits": true} {
		for kind, opts := range map[string][]zklock.Option{"alone": nil, "local": {zklock.WithLocalHandover(1)}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
					m := connect()
					must(t, newMutex(t, connect(), lockPath).Lock(t.Context()))
					ctx, cancel := context.WithCancel(t.Context())
					mx := newMutex(t, m, lockPath, opts...)
					lock := func() error { return mx.Lock(ctx) }
					var locking <-chan error
					if waits {
						locking = background(lock)
						synctest.Wait()
					}
					server.Blackhole(zktest.Both)
					if !waits {
						locking = background(lock)
					}
					time.Sleep(3500 * time.Millisecond) //nolint:forbidigo // in a bubble: less than the client takes to notice
					if s := m.State(); s != session.Connected {
						t.Fatalf("the manager has noticed: %v", s)
					}
					cancel()
					err := receive(t, "Lock", locking)
					wantErr(t, "Lock", err, context.Canceled)
					if !strings.Contains(err.Error(), "no answer from zookeeper:2181 for ") {
						t.Errorf("%v does not name the server that is silent", err)
					}
					if waits && !strings.Contains(err.Error(), "; held by ") {
						t.Errorf("%v does not name the holder", err)
					}
					server.Heal()
				})
			})
		}
	}
}

// A Lock that waits for the Unlock of a lost hold says so.
func TestWaitErrorOfLostHold(t *testing.T) {
	dir := testserver.Path(t)
	mx := newMutex(t, connect(t), dir)
	must(t, mx.Lock(patient(t)))
	testserver.Delete(t, dir, testserver.Children(t, dir)[0])
	waitLost(t, mx)
	err := soon(t, mx.Lock)
	if want := "acquire " + dir + ": context deadline exceeded (this process has lost the lock, and has not unlocked it yet)"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	wantErr(t, "Unlock", mx.Unlock(), session.ErrLost)
}
