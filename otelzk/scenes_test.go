package otelzk_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/turnstile-go/turnstile/election"
	"github.com/turnstile-go/turnstile/otelzk"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/rwlock"
	"github.com/turnstile-go/turnstile/schedule"
	"github.com/turnstile-go/turnstile/semaphore"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

var write = flag.Bool("write", false, "write testdata/scenes.txt anew")

// scene is a short play of one client and its servers, for example a lock that is lost. The test writes down every span and
// every metric of that client, and compares them with testdata/scenes.txt.
type scene struct {
	name  string
	play  func(t *world, c *client)
	opts  []otelzk.Option
	leave func(sdktrace.ReadOnlySpan) bool // spans that depend on how the news of a loss arrives
	zeros bool                             // show what each metric is, and its points that are 0
}

// use takes the lock and gives it back.
func use(t *world, l zklock.ContextLocker) {
	t.Helper()
	lease, err := l.Acquire(t.Context())
	must(t, err)
	pass(soon)
	must(t, lease.Release(t.Context()))
	pass(soon)
}

// hold takes the client's lock, in a span of its own.
func hold(t *world, c *client, label string) *queue.Lease {
	t.Helper()
	ctx, caller := c.tracer.Start(t.labelled(label), "caller")
	t.Cleanup(func() { caller.End() })
	lease, err := c.mx.Acquire(ctx)
	must(t, err)
	pass(soon)
	return lease
}

// wait begins to wait for the client's lock, in a span of its own, which ends with the wait.
func wait(t *world, c *client, label string) (result <-chan error, cancel context.CancelFunc) {
	ctx, caller := c.tracer.Start(t.labelled(label), "caller")
	ctx, cancel = context.WithCancel(ctx)
	result = begin(func() error {
		defer caller.End()
		return c.mx.Lock(ctx)
	})
	pass(soon)
	return result, cancel
}

// failed reports whether a request has failed.
func failed(s sdktrace.ReadOnlySpan) bool {
	return attr(s, "error.type") != "" && attr(s, "db.operation.name") != ""
}

var errOver = errors.New("over")

func leads(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

var scenes = []scene{
	{name: "the first call is under way", zeros: true, play: func(t *world, c *client) {
		made[*schedule.Job](t)(schedule.New(c.m, "/job", schedule.WithName("report")))
		create := t.server.HoldRequest(zktest.On(zktest.OpCreate, lockPath))
		locked := begin(func() error { return c.mx.Lock(t.Context()) })
		pass(soon)
		t.Cleanup(func() { create.Release(); <-locked })
	}, opts: []otelzk.Option{otelzk.WithAttributes(attribute.String("ensemble", "blue"))}},

	{name: "a lock that is free", zeros: true, play: func(t *world, c *client) {
		ctx, caller := c.tracer.Start(t.labelled("request 42"), "caller")
		must(t, c.mx.Lock(ctx))
		pass(soon)
		must(t, c.mx.Unlock())
		caller.End()
	}, opts: []otelzk.Option{otelzk.WithAttributes(attribute.String("ensemble", "blue"))}},

	{name: "the first lock in a directory, below a chroot", play: func(t *world, c *client) {
		use(t, made[*zklock.Mutex](t)(zklock.New(t.connect("/app", otelzk.New(c.opts...)), "/locks/new")))
	}},

	{name: "without spans of requests", play: func(t *world, c *client) { use(t, c.mx) },
		opts: []otelzk.Option{otelzk.WithRequestSpans(false)}},
	{name: "without metrics of requests", play: func(t *world, c *client) { use(t, c.mx) },
		opts: []otelzk.Option{otelzk.WithRequestMetrics(false)}},

	{name: "a wait", play: func(t *world, c *client) {
		lease := hold(t, t.client("the holder"), "request 41")
		locked, _ := wait(t, c, "request 42")
		must(t, lease.Release(t.Context()))
		must(t, <-locked)
		pass(soon)
		must(t, c.mx.Unlock())
	}},

	{name: "a wait that goes on", play: func(t *world, c *client) {
		hold(t, t.client("the holder"), "request 41")
		wait(t, c, "request 42")
		pass(time.Minute)
	}},

	{name: "waits that end without the lock", play: func(t *world, c *client) {
		hold(t, t.client("the holder"), "")
		locked, cancel := wait(t, c, "")
		cancel()
		wantErr(t, "Lock", <-locked, context.Canceled)
		pass(soon)
		ctx, cancelCause := context.WithCancelCause(t.Context())
		locked = begin(func() error { return c.mx.Lock(ctx) })
		pass(soon)
		cancelCause(errOver)
		wantErr(t, "Lock", <-locked, context.Canceled)
		pass(soon)
		wantErr(t, "Lock", c.mx.Lock(queue.WithMaxWait(t.Context(), soon)), queue.ErrMaxWait)
		pass(soon)
	}},

	{name: "a policy that panics", play: func(t *world, c *client) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
			pass(soon)
		}()
		q, panics := made[*queue.Queue](t)(queue.New(c.m, lockPath)), func(queue.Node) queue.Policy { panic("oops") }
		kind := &queue.Kind{Name: "own", Prefixes: []string{queue.PrefixLock}, Policy: panics}
		_, _ = q.Acquire(t.Context(), queue.Request{Kind: kind})
	}},

	{name: "a busy try", play: func(t *world, c *client) {
		hold(t, t.client("the holder"), "")
		if ok, err := c.mx.TryLock(t.labelled("request 42")); ok || err != nil {
			t.Error(ok, err)
		}
	}},

	{name: "the holder hands on to the waiter between", play: func(t *world, c *client) {
		holder, middle := t.client("the holder"), t.client("the next")
		lease := hold(t, holder, "")
		next, _ := wait(t, middle, "")
		locked, _ := wait(t, c, "")
		must(t, lease.Release(t.Context()))
		must(t, <-next)
		pass(soon)
		must(t, middle.mx.Unlock())
		must(t, <-locked)
		pass(soon)
		must(t, c.mx.Unlock())
	}},

	{name: "far from the holder", play: func(t *world, c *client) {
		hold(t, t.client("the holder"), "")
		wait(t, t.client("the first waiter"), "")
		wait(t, t.client("the second waiter"), "")
		locked, cancel := wait(t, c, "")
		cancel()
		wantErr(t, "Lock", <-locked, context.Canceled)
		pass(soon)
	}},

	{name: "a few of many requests have spans", play: func(t *world, c *client) {
		const limit = 30
		held := made[*semaphore.Semaphore](t)(semaphore.New(t.client("the holder").m, "/sem", limit))
		for range limit {
			_, err := held.Acquire(t.Context())
			must(t, err)
		}
		sem := made[*semaphore.Semaphore](t)(semaphore.New(c.m, "/sem", limit))
		_, err := sem.Acquire(queue.WithMaxWait(t.Context(), soon))
		wantErr(t, "Acquire", err, queue.ErrMaxWait)
		pass(soon)
	}},

	{name: "lost while held", leave: failed, opts: []otelzk.Option{otelzk.WithRequestMetrics(false)},
		play: func(t *world, c *client) {
			lease := hold(t, c, "")
			t.expire(c)
			pass(time.Minute) // nobody has unlocked it
			wantErr(t, "Release", lease.Release(t.Context()), session.ErrLost)
			pass(soon)
		}},

	{name: "the node of a holder is deleted", play: func(t *world, c *client) {
		lease := hold(t, c, "")
		must(t, t.server.DeleteNode(lease.Path()))
		pass(time.Minute)
	}},

	{name: "lost while waiting", leave: failed, opts: []otelzk.Option{otelzk.WithRequestMetrics(false)},
		play: func(t *world, c *client) {
			lease := hold(t, t.client("the holder"), "")
			locked, _ := wait(t, c, "")
			t.expire(c)
			must(t, lease.Release(t.Context()))
			must(t, <-locked)
			pass(soon)
			must(t, c.mx.Unlock())
		}},

	{name: "a delete whose answer is lost", play: func(t *world, c *client) {
		lease := hold(t, c, "")
		t.server.CutAfterCommit(zktest.On(zktest.OpDelete, lockPath))
		must(t, lease.Release(t.Context()))
		pass(soon)
	}},

	{name: "a Do that returns, one that panics, and one that ends its goroutine", play: func(t *world, c *client) {
		for _, end := range []func(){func() {}, func() { panic("oops") }, runtime.Goexit} {
			over := make(chan struct{})
			go func() {
				defer close(over)
				defer func() { _ = recover() }()
				_ = c.mx.Do(t.Context(), func(context.Context) error { end(); return nil })
			}()
			<-over
			pass(soon)
		}
	}},

	{name: "names of each kind", opts: []otelzk.Option{otelzk.WithRequestSpans(false), otelzk.WithRequestMetrics(false)},
		play: func(t *world, c *client) {
			mx, name := made[*zklock.Mutex](t), zklock.WithName("a mutex")
			use(t, mx(zklock.New(c.m, "/plain", name)))
			use(t, mx(zklock.New(c.m, "/local", name, zklock.WithLocalHandover(2))))
			use(t, mx(zklock.New(c.m, "/kept", name, zklock.WithLazyRelease(time.Millisecond))))
			all := made[*zklock.MultiLock](t)(zklock.Multi(mx(zklock.New(c.m, "/a", name)), mx(zklock.New(c.m, "/b", name))))
			must(t, all.Lock(t.Context()))
			must(t, all.Unlock())
			rw := made[*rwlock.RWMutex](t)(rwlock.New(c.m, "/rw", rwlock.WithName("a read-write lock")))
			use(t, rw)
			use(t, rw.Reader())
			sem := made[*semaphore.Semaphore](t)
			use(t, sem(semaphore.New(c.m, "/sem", 5, semaphore.WithName("a semaphore"))))
			use(t, sem(semaphore.New(c.m, "/curator", 1, semaphore.WithName("a gate"), semaphore.WithCuratorLayout())))
			e := made[*election.Election](t)(election.New(c.m, "/election", election.WithName("an election")))
			wantErr(t, "Run", e.Run(t.Context(), func(context.Context) error { return errOver }), errOver)
			q, first := made[*queue.Queue](t)(queue.New(c.m, "/own")), func(queue.Node) queue.Policy { return queue.Policy{} }
			kind := &queue.Kind{Name: "own", Prefixes: []string{queue.PrefixLock}, Policy: first}
			lease, err := q.Acquire(t.Context(), queue.Request{Kind: kind, Name: "an own one"})
			must(t, err)
			must(t, lease.Release(t.Context()))
		}},

	{name: "several names, held, waited for and lost", leave: func(sdktrace.ReadOnlySpan) bool { return true },
		opts: []otelzk.Option{otelzk.WithRequestMetrics(false)}, play: func(t *world, c *client) {
			invoice, report := zklock.WithName("invoice"), zklock.WithName("report")
			mx := made[*zklock.Mutex](t)
			must(t, c.mx.Lock(t.labelled("request 42")))
			must(t, mx(zklock.New(c.m, "/1", invoice)).Lock(t.labelled("request 42")))
			must(t, mx(zklock.New(c.m, "/2", invoice)).Lock(t.labelled("request 42")))
			must(t, mx(zklock.New(c.m, "/3", report)).Lock(t.labelled("request 42")))
			pass(soon)
			t.expire(c)
			use(t, mx(zklock.New(c.m, "/4", report)))
			second := mx(zklock.New(c.m, "/2", invoice))
			must(t, second.Lock(t.Context()))
			begin(func() error { return second.Lock(t.Context()) })
			pass(time.Minute)
		}},

	{name: "leaders by their ids", opts: []otelzk.Option{otelzk.WithRequestMetrics(false)},
		leave: func(s sdktrace.ReadOnlySpan) bool { return attr(s, "db.operation.name") != "" }, play: func(t *world, c *client) {
			latch, leader := election.WithLeaderLatch(), t.client("the leader").m
			for i, opts := range [][]election.Option{
				nil, {election.WithID("10.0.0.7:8080")}, {election.WithID(`{"host":"10.0.0.7"}`)}, {election.WithID("null"), latch},
				{election.WithID("web-3 in Zürich, rack 4"), latch},
			} {
				path := fmt.Sprint("/election", i)
				go func() { _ = made[*election.Election](t)(election.New(leader, path, opts...)).Run(t.Context(), leads) }()
				pass(soon)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := made[*election.Election](t)(election.New(c.m, path, opts...)).Run(ctx, leads)
				wantErr(t, "Run", err, context.DeadlineExceeded)
				cancel()
			}
			pass(soon)
		}},

	{name: "ticks of a job", leave: func(sdktrace.ReadOnlySpan) bool { return true },
		opts: []otelzk.Option{otelzk.WithRequestMetrics(false)}, play: func(t *world, c *client) {
			job := made[*schedule.Job](t)(schedule.New(c.m, "/job", schedule.WithName("report"), schedule.WithMaxTries(1)))
			tick := func(n int) time.Time { return time.Date(1999, 1, 1, n, 0, 0, 0, time.UTC) }
			works := func(context.Context) error { return nil }
			run := func(ctx context.Context, n int, f func(context.Context) error) { _, _ = job.Run(ctx, tick(n), f) }
			run(t.Context(), 1, works)
			run(t.Context(), 1, works)
			run(t.Context(), 0, works)
			run(t.Context(), 2, func(ctx context.Context) error {
				_, _ = job.TryRun(ctx, tick(3), works)
				return errors.New("out of paper")
			})
			run(t.Context(), 2, works)
			run(t.Context(), 3, nil)
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			run(gone, 3, works)
			late, cancel := context.WithDeadline(t.Context(), time.Now())
			defer cancel()
			run(late, 3, works)
			hourly := func(tick time.Time) time.Time { return tick.Add(time.Hour) }
			_, _ = job.CatchUp(t.Context(), tick(4), hourly, func(context.Context, time.Time) error { return nil })
		}},

	{name: "a job that another replica has begun", opts: []otelzk.Option{otelzk.WithRequestMetrics(false)},
		leave: func(s sdktrace.ReadOnlySpan) bool { return attr(s, "db.operation.name") != "" }, play: func(t *world, c *client) {
			job := func(c *client) *schedule.Job {
				return made[*schedule.Job](t)(schedule.New(c.m, "/job", schedule.WithName("report"), schedule.WithMaxTries(1)))
			}
			tick := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
			gate := made[*zklock.Mutex](t)(zklock.New(t.client("the gate").m, "/job/lock"))
			must(t, gate.Lock(t.Context()))
			first, over := job(t.client("the first")), make(chan struct{})
			ran := begin(func() error {
				_, err := first.Run(t.Context(), tick, func(context.Context) error { <-over; return nil })
				return err
			})
			pass(soon)
			settled := begin(func() error {
				_, err := job(c).Run(t.Context(), tick, leads)
				return err
			})
			pass(soon)
			must(t, gate.Unlock())
			must(t, <-settled)
			pass(soon)
			close(over)
			must(t, <-ran)
		}},

	{name: "hooks of two managers of one meter", play: func(t *world, c *client) {
		a, b := otelzk.New(c.opts...), otelzk.New(c.opts...)
		a.Hold(t.Context(), session.HoldInfo{Kind: "mutex"})
		pass(time.Minute)
		b.Hold(t.Context(), session.HoldInfo{Kind: "mutex"})
		for _, path := range []string{"/a", "/b", "/b"} { // two elections, and three candidates
			ctx, granted := a.Acquire(t.Context(), session.AcquireInfo{Kind: "election", Name: "shard", Path: path})
			b.Hold(ctx, session.HoldInfo{Kind: "election", Name: "shard", Path: path})
			granted(session.AcquireResult{})
		}
		a.Hold(t.Context(), session.HoldInfo{Kind: "election", Name: "is over", Path: "/c"})(nil)
	}},

	{name: "endings of calls", play: func(t *world, c *client) {
		hooks, of := otelzk.New(c.opts...), session.HoldInfo{Kind: "mutex"}
		for _, r := range []session.AcquireResult{
			{}, {Busy: true}, {Err: context.Canceled}, {Err: context.DeadlineExceeded}, {Err: session.ErrClosed}, {Err: zk.ErrNoAuth},
		} {
			_, end := hooks.Acquire(t.Context(), session.AcquireInfo{Kind: "mutex"})
			end(r)
		}
		for _, r := range []struct {
			took time.Duration
			err  error
		}{
			{time.Second, nil}, {2 * time.Second, nil}, {0, queue.ErrReleasePending}, {0, session.ErrLost},
			{0, zk.ErrNoAuth}, {0, context.Canceled}, {0, session.ErrClosed},
		} {
			_, end := hooks.Release(t.Context(), t.Context(), of)
			pass(r.took)
			end(r.err)
		}
		for _, err := range []error{
			nil, zk.ErrNoAuth, zk.ErrNodeExists, context.Canceled, context.DeadlineExceeded, session.ErrLost,
		} {
			for _, op := range []string{"create", "sync"} {
				_, end := hooks.Request(t.Context(), session.RequestInfo{Op: op, Chroot: "/", Server: "zk1:2181"})
				end(err)
			}
		}
	}},

	{name: "an outage, and a session that is closed", zeros: true, opts: []otelzk.Option{otelzk.WithRequestMetrics(false)},
		play: func(t *world, c *client) {
			must(t, t.connect("", otelzk.New(c.opts...)).Close())
			t.server.Refuse(true)
			t.server.Disconnect()
			pass(10 * time.Millisecond)
			t.Cleanup(func() { t.server.Refuse(false) })
		}},
}

const golden = "testdata/scenes.txt"

// Each scene has the spans and the metrics that testdata/scenes.txt shows: names, attributes, links, events and values.
func TestScenes(t *testing.T) {
	var all strings.Builder
	text, err := os.ReadFile(golden)
	if !*write {
		must(t, err)
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			inBubble(t, func(t *world) {
				c := t.client("the client", s.opts...)
				s.play(t, c)
				pass(0)
				got := fmt.Sprintf("%s\n\n%s\n", t.tree(c, s.leave), c.metrics(t, s.zeros))
				fmt.Fprintf(&all, "=== %s ===\n%s\n", s.name, got)
				_, want, _ := strings.Cut(string(text), "=== "+s.name+" ===\n")
				want, _, _ = strings.Cut(want, "\n===")
				if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" && !*write {
					t.Errorf("(-want +got); if that is meant: go test ./otelzk -run TestScenes -write\n%s", diff)
				}
			})
		})
	}
	if *write {
		must(t, os.WriteFile(golden, []byte(all.String()), 0o600))
	}
}
