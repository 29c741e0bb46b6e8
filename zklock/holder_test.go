package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/queue"
	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zklock"
	"github.com/turnstile-go/turnstile/zktest"
)

// Holder says who holds the lock, since when it is in the queue, and what this process knows of its own hold.
func TestHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *zktest.Server, connect func(...session.Option) *session.Manager) {
		ctx := t.Context()
		mine, other := newKeyed(t, connect(), keysDir), newKeyed(t, connect(), keysDir)
		want := func(when string, k *zklock.Keyed, ok func(queue.Contender) bool) {
			t.Helper()
			direct := newMutex(t, connect(), mine.Path("a"))
			c, err := k.Holder(ctx, "a")
			must(t, err)
			if d, err := direct.Holder(ctx); err != nil || d.Path != c.Path {
				t.Errorf("%s: a Mutex at the path says %+v, %v", when, d, err)
			}
			if !ok(c) {
				t.Errorf("%s: holder %+v", when, c)
			}
		}
		nobody := func(c queue.Contender) bool { return c.Path == "" }
		want("without a directory", mine, nobody)

		must(t, other.Lock(queue.WithLabel(ctx, "request 42"), "a"))
		came := time.Now()
		waits, cancel := context.WithCancel(ctx)
		waited := background(func() error { return mine.Lock(waits, "a") })
		time.Sleep(time.Minute)
		want("held by another process", mine, func(c queue.Contender) bool {
			return c.Holder && !c.Own && c.ID == queue.Identity() && c.Label == "request 42" && c.HeldSince.IsZero() &&
				c.Since.Sub(came).Abs() < time.Second
		})
		cancel()
		wantErr(t, "Lock", receive(t, "Lock", waited), context.Canceled)

		locked := background(func() error { return mine.Lock(ctx, "a") })
		time.Sleep(time.Minute)
		must(t, other.Unlock("a"))
		must(t, receive(t, "Lock", locked))
		got := time.Now()
		time.Sleep(time.Minute)
		want("held by this process", mine, func(c queue.Contender) bool {
			return c.Own && !c.Kept && c.HeldSince.Sub(got).Abs() < time.Second && c.HeldSince.Sub(c.Since) > 50*time.Second
		})
		must(t, mine.Unlock("a"))
		want("after Unlock", mine, nobody)

		keeper := newKeyed(t, connect(), keysDir, zklock.WithLazyRelease(time.Minute))
		must(t, keeper.Lock(ctx, "a"))
		must(t, keeper.Unlock("a"))
		want("kept", keeper, func(c queue.Contender) bool { return c.Own && c.Kept })

		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := mine.Holder(ended, "a")
		wantErr(t, "Holder", err, context.Canceled)
	})
}

// Done of a key ends with its Unlock and with its loss, and is closed without a hold.
func TestKeyedDone(t *testing.T) {
	inBubble(t, func(t *testing.T, server *zktest.Server, connect func(...session.Option) *session.Manager) {
		ctx, m := t.Context(), connect()
		k := newKeyed(t, m, keysDir)
		ended := func(done <-chan struct{}) bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		if !ended(k.Done("a")) {
			t.Error("not closed without a hold")
		}
		must(t, k.Lock(ctx, "a"))
		done := k.Done("a")
		if ended(done) || !ended(k.Done("b")) {
			t.Errorf("while a key is held: closed %v, and of another key %v", ended(done), ended(k.Done("b")))
		}
		must(t, k.Unlock("a"))
		if !ended(done) {
			t.Error("not closed by Unlock")
		}
		must(t, k.Lock(ctx, "a"))
		done = k.Done("a")
		keyedWorld{t: t, server: server, m: m}.expire()
		if !ended(done) {
			t.Error("not closed by the loss")
		}
		wantErr(t, "Unlock", k.Unlock("a"), session.ErrLost)
		wantKeys(t, "in the end", k, 0)
	})
}
