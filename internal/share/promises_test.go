package share

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// The session may have one node. A call that gave up has left nothing behind: the next one finds room, since the delete of the
// node that was made for the first leaves before its create.
func TestGivesUpAtLimitOfNodes(t *testing.T) {
	dir := testserver.Path(t)
	h := newProcess(t, dir, 1).hold(t)
	p := newProcess(t, dir, 1, session.WithMaxNodes(1))
	for i := range 50 {
		w := p.wait(t, 1)
		if i%2 == 0 {
			testserver.WaitChildren(t, dir, 2)
		}
		w.cancel()
		w.fails(t, context.Canceled)
	}
	w := p.wait(t, 1)
	giveBack(t, h)
	giveBack(t, w.lease(t))
	testserver.WaitChildren(t, dir, 0)
}

// As above for waiters that give up while their process holds: those that remain get the next turn.
func TestGivesUpBehindOwnHold(t *testing.T) {
	dir := testserver.Path(t)
	for _, nodes := range []int{1, 2} {
		p := newProcess(t, dir, 1, session.WithMaxNodes(nodes))
		for range 20 {
			one := p.hold(t)
			two, three := p.wait(t, 1), p.wait(t, 2)
			giveBack(t, one)
			l := two.lease(t)
			four := p.wait(t, 2)
			removal := l.StartRelease(expect.Patient(t))
			three.cancel()
			if g := <-three.done; g.err == nil {
				giveBack(t, g.lease)
			} else if !errors.Is(g.err, context.Canceled) {
				t.Fatal(g.err)
			}
			five := p.begin(expect.Patient(t))
			giveBack(t, four.lease(t))
			giveBack(t, five.lease(t))
			expect.NoError(t, removal.Wait(expect.Patient(t)))
		}
	}
	testserver.WaitChildren(t, dir, 0)
}

// blockingLog is the log of a program whose handler waits.
type blockingLog struct{ until <-chan struct{} }

func (l blockingLog) Enabled(context.Context, slog.Level) bool      { return true }
func (l blockingLog) WithAttrs([]slog.Attr) slog.Handler            { return l }
func (l blockingLog) WithGroup(string) slog.Handler                 { return l }
func (l blockingLog) Handle(_ context.Context, _ slog.Record) error { <-l.until; return nil }

// Where Turns.mu is locked, no function of the program is called: a hook of a request, of a loss or of a hold, or the handler of
// the log, can use the same lock. Here they wait until the lock was used by others, which could not be under the mutex.
func TestNoProgramUnderMutex(t *testing.T) {
	dir := testserver.Path(t)
	used := make(chan struct{})
	p := newKeeper(t, dir, 1, session.WithLogger(slog.New(blockingLog{used})), session.WithTrace(session.Trace{
		Request: func(ctx context.Context, r session.RequestInfo) (context.Context, func(error)) {
			if r.Op == "delete" {
				<-used
			}
			return ctx, func(error) {}
		},
		Loss: func(context.Context, session.HoldInfo, error) { <-used },
	}))
	kept := turnsOn(t, p.m, testserver.Path(t), func(q *queue.Queue) *Turns { return NewTurns(q, mutex, 0, longestKeep) })
	for range 5 {
		p.forgetHabit()
		kept.forgetHabit()
		l, err := kept.Acquire(expect.Patient(t), false)
		expect.NoError(t, err)
		_ = l.StartRelease(expect.Patient(t))
		held := p.hold(t)
		waits := p.wait(t, 1)
		expect.NoError(t, p.proxy.Expire(expect.Patient(t), testserver.Session(t, p.m).ID()))
		zktest.Eventually(t, testserver.Patience, "the loss", func() bool { return held.Err() != nil })
		l, err = kept.Acquire(expect.Patient(t), false) // the first to find out that the kept turn is over, or nearly
		expect.NoError(t, err)
		_ = l.StartGiveUp(expect.Patient(t)) // nobody waits for the delete, whose hook waits
		_ = waits.lease(t).StartGiveUp(expect.Patient(t))
		p.want(t, idle)
		kept.want(t, idle)
	}
	close(used)
}

// A turn that was asked back is the last of its kind before its holder can know: a holder that gives the lock back because it
// has heard of the request never gives it to a goroutine of its process.
func TestRevokedIsLast(t *testing.T) {
	for _, waited := range []bool{false, true} {
		dir := testserver.Path(t)
		other := newProcess(t, dir, 1)
		p := newProcess(t, dir, 100)
		var l *queue.Lease
		if waited { // the watch on the node is there, and its event comes before the new data
			o := other.hold(t)
			w := p.wait(t, 1)
			testserver.WaitChildren(t, dir, 2)
			giveBack(t, o)
			l = w.lease(t)
		} else { // the data that comes with the watch asks already
			watch := p.proxy.HoldRequest(func(r zktest.Request) bool { return r.Op == zktest.OpGetData && r.Path != dir })
			l = p.hold(t)
			expect.Receive(t, "the watch", watch.Hit())
			defer watch.Release()
			revoke(t, l)
			watch.Release()
		}
		last := make(chan bool, 1)
		turn := p.present()
		defer l.AfterRevoke(func() { last <- turn.IsLast() })()
		next := p.wait(t, 1)
		if waited {
			revoke(t, l)
		}
		select {
		case is := <-last:
			if !is {
				t.Error("the holder knows of the request, and the turn can be handed over")
			}
		case <-time.After(testserver.Patience):
			t.Fatal("no request")
		}
		giveBack(t, l)
		if n := next.lease(t); n.Path() == l.Path() {
			t.Error("handed over")
		} else {
			giveBack(t, n)
		}
	}
}
