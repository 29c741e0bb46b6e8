package zklock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/turnstile-go/turnstile/internal/tests/helpers/testserver"
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
				c.Session != 0 && c.Token != 0 && c.Since.Sub(came).Abs() < time.Second
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

// A label that a node cannot have is written as it can, and makes no lock fail.
func TestOddLabel(t *testing.T) {
	ctx := queue.WithLabel(patient(t), "two\nlines "+strings.Repeat("x", 300))
	mx := newMutex(t, connect(t), testserver.Path(t))
	must(t, mx.Lock(ctx))
	all, err := mx.Contenders(patient(t))
	must(t, err)
	if len(all) != 1 || !strings.HasPrefix(all[0].Label, `two\x0alines xxx`) || !strings.HasSuffix(all[0].Label, "x…") {
		t.Errorf("%+v", all)
	}
	must(t, mx.Unlock())
}
