package quiethooks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

const (
	// short is less than a wait lasts before it asks who is ahead, and more than an uncontended lock is held without a
	// watch on its node. long is more than the first, and settled is enough for whatever goes on in the background.
	short   = 12 * time.Millisecond
	long    = 50 * time.Millisecond
	settled = 5 * time.Second

	// oneWay is how long a frame takes. So requests that are sent together are all on their way when one of them is
	// carried out. entry is enough for a contender to enter the queue. These are no round numbers, so that nothing
	// comes in the moment in which a timer of the locks runs out.
	oneWay = 1013 * time.Microsecond
	entry  = 5777 * time.Microsecond
)

// world is two clients of a server, in a bubble of synctest. The requests of ours are recorded.
type world struct {
	*testing.T
	server       *zktest.Server
	rec          *record
	ours, theirs *session.Manager
}

// play plays a scenario in a new world, and returns what our client has sent.
func play(t *testing.T, scenario func(*world), opts []session.Option, look func(*session.Manager)) (sent []string) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: zktest.Start(t, zktest.ContainerCheck(24*time.Hour)), rec: new(record)}
		w.server.Delay(oneWay)
		w.ours = w.connect(w.rec.over(w.server.Dialer()), opts...)
		defer w.ours.Close()
		w.theirs = w.connect(w.server.Dialer())
		defer w.theirs.Close()
		if look != nil {
			look(w.ours)
		}
		w.pass(settled) // what Connect leaves behind is over
		w.rec.forget()
		scenario(w)
		w.step("close", func() { w.must(w.ours.Close()) })
		w.rec.begin("")
		sent = w.rec.all()
	})
	return sent
}

func (w *world) connect(dial dialer, opts ...session.Option) *session.Manager {
	w.Helper()
	m, err := session.Connect(w.Context(), "zookeeper:2181", append([]session.Option{
		session.WithDialer(dial), session.WithTimeout(time.Minute),
		session.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		session.WithBackoff(short, short),
	}, opts...)...)
	w.must(err)
	return m
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// step is a part of a scenario.
func (w *world) step(name string, f func()) {
	w.rec.begin(name)
	f()
	w.pass(settled)
}

// pass lets time pass, once everybody waits.
func (w *world) pass(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// lease is a hold of one lock or of several.
type lease interface {
	Release(ctx context.Context) error
}

// take takes a lock.
type take func(ctx context.Context) (lease, error)

// of makes a take of a method of a lock.
func of[L lease](acquire func(context.Context) (L, error)) take {
	return func(ctx context.Context) (lease, error) { return acquire(ctx) }
}

// get takes a lock that is free.
func (w *world) get(f take) lease {
	w.Helper()
	l, err := f(w.Context())
	w.must(err)
	synctest.Wait()
	return l
}

func (w *world) release(l lease) {
	w.Helper()
	w.must(l.Release(w.Context()))
	synctest.Wait()
}

// call is an acquisition under way.
type call struct {
	w      *world
	cancel context.CancelFunc
	done   chan struct{}
	lease  lease
	err    error
}

// begin begins an acquisition.
func (w *world) begin(f take) *call {
	ctx, cancel := context.WithCancel(w.Context())
	c := &call{w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.lease, c.err = f(ctx)
	}()
	w.pass(entry)
	return c
}

// get waits for the lease.
func (c *call) get() lease {
	c.w.Helper()
	<-c.done
	c.w.must(c.err)
	return c.lease
}

// give waits for the lease, holds it for a while, and gives it back.
func (c *call) give() {
	c.w.Helper()
	l := c.get()
	c.w.pass(short)
	c.w.release(l)
}

// waits fails if the acquisition has ended.
func (c *call) waits() {
	c.w.Helper()
	select {
	case <-c.done:
		c.w.Fatalf("it does not wait: %v", c.err)
	default:
	}
}

// lock is one lock as both clients have it.
type lock struct {
	take       take // ours
	try        take
	block      take // theirs
	blocks     int  // how many of theirs block one of ours
	contenders func(ctx context.Context) ([]queue.Contender, error)
	several    bool // it is a MultiLock
}

// blockAll takes as many of their leases as block ours.
func (w *world) blockAll(k lock) (all []lease) {
	for range k.blocks {
		all = append(all, w.get(k.block))
	}
	return all
}

func (w *world) releaseAll(all []lease, pause time.Duration) {
	for _, l := range all {
		w.release(l)
		w.pass(pause)
	}
}

// contend has our client contend for a lock in every way.
func (w *world) contend(k lock) {
	w.step("alone", func() {
		for _, hold := range []time.Duration{0, short, long} {
			l := w.get(k.take)
			w.pass(hold)
			w.release(l)
		}
	})
	for _, wait := range []time.Duration{0, short, long} {
		w.step("wait of "+wait.String(), func() {
			held := w.blockAll(k)
			c := w.begin(k.take)
			c.waits()
			w.pass(wait)
			w.releaseAll(held, wait)
			c.give()
		})
	}
	w.step("cancelled", func() {
		held := w.blockAll(k)
		for _, wait := range []time.Duration{short, long} {
			c := w.begin(k.take)
			w.pass(wait)
			c.waits()
			c.cancel()
			<-c.done
			w.pass(settled)
		}
		w.releaseAll(held, short)
	})
	w.step("busy", func() {
		held := w.blockAll(k)
		if l, err := k.try(w.Context()); !errors.Is(err, queue.ErrBusy) {
			w.Fatal(l, err)
		}
		w.pass(settled)
		w.releaseAll(held, short)
		w.release(w.get(k.try))
	})
	w.step("two waiters", func() {
		held := w.blockAll(k)
		first := w.begin(k.take)
		w.pass(long)
		second := w.begin(k.take)
		w.pass(short)
		first.waits()
		second.waits()
		w.releaseAll(held, long)
		first.give()
		second.give()
	})
	if k.several {
		return // the first leaves both queues, and the second may see it in the next one
	}
	w.step("the first of two waiters cancelled", func() {
		held := w.blockAll(k)
		first := w.begin(k.take)
		w.pass(long)
		second := w.begin(k.take)
		w.pass(long)
		first.cancel()
		<-first.done
		w.pass(long)
		w.releaseAll(held, long)
		second.give()
	})
}

// suffer has our client contend for a lock while things go wrong.
func (w *world) suffer(k lock) {
	write := zktest.Any(zktest.OpCreate, zktest.OpCreate2, zktest.OpMulti, zktest.OpDelete)
	w.step("reply to the create lost", func() {
		w.server.CutAfterCommit(write)
		l := w.get(k.take)
		w.pass(settled)
		w.release(l)
	})
	w.step("reply to the delete lost", func() {
		l := w.get(k.take)
		w.pass(short)
		w.server.CutAfterCommit(write)
		w.release(l)
	})
	w.step("cut while it waits", func() {
		held := w.blockAll(k)
		c := w.begin(k.take)
		w.pass(long)
		w.server.Disconnect()
		w.pass(settled)
		w.releaseAll(held, short)
		c.give()
	})
	w.step("node deleted while it waits", func() {
		held := w.blockAll(k)
		c := w.begin(k.take)
		w.pass(long)
		w.must(w.server.DeleteNode(w.last(k)))
		w.pass(settled)
		w.releaseAll(held, short)
		c.give()
	})
	w.step("node deleted while it holds", func() {
		l := w.get(k.take)
		w.pass(long)
		w.must(w.server.DeleteNode(w.last(k)))
		w.pass(settled)
		if err := l.Release(w.Context()); !errors.Is(err, session.ErrLost) {
			w.Fatal(err)
		}
	})
	w.step("session expired while it waits", func() {
		held := w.blockAll(k)
		c := w.begin(k.take)
		w.pass(long)
		w.expire()
		w.pass(settled)
		w.releaseAll(held, short)
		c.give()
	})
	w.step("session expired while it holds", func() {
		l := w.get(k.take)
		w.pass(long)
		w.expire()
		w.pass(settled)
		if err := l.Release(w.Context()); !errors.Is(err, session.ErrLost) {
			w.Fatal(err)
		}
	})
}

// last returns the path of the last contender's node.
func (w *world) last(k lock) string {
	w.Helper()
	all, err := k.contenders(w.Context())
	w.must(err)
	if len(all) == 0 {
		w.Fatal("nobody contends")
	}
	return all[len(all)-1].Path
}

func (w *world) expire() {
	s, err := w.ours.Session(w.Context())
	w.must(err)
	w.must(w.server.Expire(w.Context(), s.ID()))
}
