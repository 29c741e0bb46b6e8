package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnstile-go/turnstile/session"
	"github.com/turnstile-go/turnstile/zktest"
)

// A delete whose caller has left is carried out, and its node does not count any more.
func TestCancelledDeleteIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUndoing(t, session.WithMaxNodes(1))
		_, err := u.s.Create(t.Context(), "/d/n", nil, session.Ephemeral)
		must(t, err)
		f := u.HoldReply(zktest.On(zktest.OpDelete, "/d/n"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- u.s.Delete(ctx, "/d/n", -1) }()
		<-f.Hit()
		cancel()
		wantErr(t, "delete", <-done, context.Canceled)
		f.Release()
		time.Sleep(time.Second)
		_, err = u.s.Create(t.Context(), "/d/n2", nil, session.Ephemeral)
		must(t, err)
	})
}
