package zklock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/expect"
	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Holder says who holds the lock, since when it is in the queue, and what this process knows of its own hold.
func TestHolder(t *testing.T) {
	run(t, func(w *world) {
		ctx := w.Context()
		mine, other := newKeyed(t, w.Connect(), "/keys"), newKeyed(t, w.Connect(), "/keys")
		want := func(when string, k *zklock.Keyed, ok func(queue.Contender) bool) {
			t.Helper()
			c, err := k.Holder(ctx, "a")
			w.Must(err)
			if d, err := newMutex(t, w.Connect(), mine.Path("a")).Holder(ctx); err != nil || d.Path != c.Path {
				t.Errorf("%s: a Mutex at the path says %+v, %v", when, d, err)
			}
			if !ok(c) {
				t.Errorf("%s: holder %+v", when, c)
			}
		}
		nobody := func(c queue.Contender) bool { return c.Path == "" }
		want("without a directory", mine, nobody)
		w.Must(other.Lock(queue.WithLabel(ctx, "request 42"), "a"))
		came := time.Now()
		locked := w.Go(func() error { return mine.Lock(ctx, "a") })
		w.Pass(time.Minute)
		want("held by another process", mine, func(c queue.Contender) bool {
			return c.Holder && !c.Own && c.ID == queue.Identity() && c.Label == "request 42" && c.HeldSince.IsZero() &&
				c.Session != 0 && c.Token != 0 && c.Since.Sub(came).Abs() < time.Second
		})
		w.Must(other.Unlock("a"))
		w.Must(locked.Err())
		got := time.Now()
		w.Pass(time.Minute)
		want("held by this process", mine, func(c queue.Contender) bool {
			return c.Own && !c.Kept && c.HeldSince.Sub(got).Abs() < time.Second && c.HeldSince.Sub(c.Since) > 50*time.Second
		})
		w.Must(mine.Unlock("a"))
		want("after Unlock", mine, nobody)
		keeper := newKeyed(t, w.Connect(), "/keys", lazy)
		w.Must(keeper.Do(ctx, "a", nothing))
		want("kept", keeper, func(c queue.Contender) bool { return c.Own && c.Kept && c.HeldSince.IsZero() })
		want("kept by another process", mine, func(c queue.Contender) bool { return !c.Own && !c.Kept })
		w.Want("Holder", expect.Err(mine.Holder(cancelled(ctx), "a")), context.Canceled)
	})
}

// A label that a node cannot have is written as it can, and makes no lock fail.
func TestOddLabel(t *testing.T) {
	run(t, func(w *world) {
		mx := newMutex(t, w.Connect(), lockPath)
		w.Must(mx.Lock(queue.WithLabel(w.Context(), "two\nlines "+strings.Repeat("x", 300))))
		all, err := mx.Contenders(w.Context())
		w.Must(err)
		if label := all[0].Label; !strings.HasPrefix(label, `two\x0alines xxx`) || !strings.HasSuffix(label, "x…") {
			t.Errorf("%+v", all)
		}
	})
}

// A contender whose data says that it does not listen, as earlier states of this module wrote it, is not asked, and its
// node stays as it is. Where the node does not say, or may not be read, Revoke sends the message.
func TestRevokeOfDeaf(t *testing.T) {
	run(t, func(w *world) {
		m := w.Connect()
		for data, deaf := range map[string]bool{
			`{"id":"web-3/1","revocable":false}`: true, `{"id":"web-3/1","revocable":true}`: false,
			`{"id":"web-3/1"}`: false, "web-3": false,
		} {
			l, err := newMutex(t, m, lockPath).Acquire(w.Context())
			w.Must(err)
			if own := w.Data(l.Path()); strings.Contains(own, "revocable") {
				t.Errorf("our own node has the data %s", own)
			}
			w.Write(l.Path(), data)
			want, message := error(nil), queue.RevokeMessage
			if deaf {
				want, message = zklock.ErrNotRevocable, data
			}
			w.Want("Revoke of "+data, zklock.Revoke(w.Context(), m, l.Path()), want)
			if got := w.Data(l.Path()); got != message {
				t.Errorf("data %s after a Revoke of %s", got, data)
			}
			w.Must(l.Release(w.Context()))
		}
		w.Make("/hidden", "")
		hidden := newMutex(t, w.Connect(session.WithACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...)), "/hidden")
		l, err := hidden.Acquire(w.Context())
		w.Must(err)
		w.Must(zklock.Revoke(w.Context(), m, l.Path()))
	})
}

// If the reply to the message is lost, the message is sent again.
func TestRevokeReplyLost(t *testing.T) {
	for _, arm := range []func(*zktest.Server, zktest.Match) *zktest.Fault{
		(*zktest.Server).CutBefore, (*zktest.Server).CutAfterCommit,
	} {
		run(t, func(w *world) {
			l, err := newMutex(t, w.Connect(), lockPath).Acquire(w.Context())
			w.Must(err)
			fault := arm(w.Server, zktest.On(zktest.OpSetData, lockPath))
			w.Must(zklock.Revoke(w.Context(), w.Connect(), l.Path()))
			w.Await(fault.Hit())
			w.Await(l.Revoked())
		})
	}
}
